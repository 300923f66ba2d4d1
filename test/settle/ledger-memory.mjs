// Shows `ledger` many blocks of a node that falls back, and prints how many of them are still in memory, and how many
// parents were fetched.
//
//   node --expose-gc test/settle/ledger-memory.mjs
import { EMPTY, of, Subject } from 'rxjs';
import { ledger } from 'rx-trade-feed/settle';

const depth = 16;
const count = 2_000;
const block = (name, height) => ({ id: `${name}${height}`, parent: `${name}${height - 1}`, height });

/** The block at a place of the stream. The chain is at 1,000 when the fault begins. */
const kinds = {
  // A node that is 80 blocks behind, and each of its blocks is of another chain.
  lagging: (n) => block(`x${n}-`, 920 + (n % 20)),
  growing: (n) => block('x', n),
  balancer: (n) => block('a', 1_000 + (n >> 1) - (n % 2 ? 80 : 0)),
  'begun again': (n) => block(`x${Math.floor(n / 10)}-`, n % 10),
  'one height': (n) => ({ ...block(`x${n}-`, 1_000), parent: 'a999' }),
  'young tree': (n) => block(`x${n}-`, 980 + (n % 20)),
  'own parents': (n) => ({ id: `x${n}`, parent: `x${n + 1}`, height: 1_001 }),
};

const run = async (kind, canFetch) => {
  let [fetched, steps] = [0, 0];
  const live = [];
  const fetchParent = ({ id, height }) => {
    fetched += 1;
    const [, name, own] = /^(.*\D)(\d+)$/.exec(id);
    if (height <= 0) return EMPTY;
    const parent = block(name, Number(own) - 1);
    live.push(new WeakRef(parent));
    return of(parent);
  };
  const blocks$ = new Subject();
  blocks$
    .pipe(
      ledger({
        ...{ id: ({ id }) => id, parent: ({ parent }) => parent, height: ({ height }) => height, depth },
        ...{ entries: ({ id }) => [{ key: id }], at: () => steps, ...(canFetch && { fetchParent }) },
      }),
    )
    .subscribe(() => (steps += 1));
  const show = (each) => {
    live.push(new WeakRef(each));
    blocks$.next(each);
  };
  for (let height = kind === 'young tree' ? 995 : 900; height <= 1_000; height += 1) show(block('a', height));
  for (let n = 0; n < count; n += 1) show(kinds[kind](n));
  // A WeakRef keeps its target until the current task has ended.
  await new Promise((done) => setTimeout(done, 10));
  globalThis.gc();
  const kept = live.filter((each) => each.deref() !== undefined).length;
  // The subscription still needs its blocks.
  return { kind, canFetch, kept, fetched, isObserved: blocks$.observed };
};

const results = [];
for (const kind of Object.keys(kinds)) for (const canFetch of [true, false]) results.push(await run(kind, canFetch));
console.log(JSON.stringify({ depth, count, results }));
