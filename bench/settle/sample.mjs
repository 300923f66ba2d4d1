// One sample: the CPU time of a trade with its step and outcome, in ns, or the memory of one that waits, in bytes.
//
//   node bench/settle/sample.mjs <way>
//   node --expose-gc bench/settle/sample.mjs <way> memory
import { Subject } from 'rxjs';
import { Decoded, Frame } from '../../dist/index.js';
import { settle } from '../../dist/settle/index.js';
import { cpuNs } from '../support/cpu.mjs';

const [way, what = 'time'] = process.argv.slice(2);
const perBlock = 2_000;
const everyMs = 400;
const begin = 1_700_000_000_000;
const data = Buffer.alloc(8);

/** The trades of a block. Nine of ten are confirmed; the rest expire. */
const tradesOf = (block) =>
  Array.from({ length: perBlock }, (_, n) => {
    const at = begin + block * everyMs + Math.floor(n / 5);
    const hash = `0x${(block * perBlock + n).toString(16).padStart(64, '0')}`;
    return new Decoded({ hash, slot: `${hash.slice(-20)}:1` }, new Frame('raw', data, false, at, 1));
  });
const entriesOf = (trades) =>
  trades.filter((_, n) => n % 10 > 0).map(({ value: { hash, slot } }) => ({ key: hash, slot }));

/** The bare join: a Map of the trades that wait, without bounds, gaps and reorganizations. */
const byHand = () => {
  const waiting = new Map();
  const outcomes = [];
  let emitted = 0;
  return {
    next: (trade) => waiting.set(trade.value.hash, trade.frame.receivedAt),
    step: (at, entries) => {
      for (const { key } of entries) {
        const seenAt = waiting.get(key);
        if (seenAt === undefined) continue;
        waiting.delete(key);
        outcomes.push({ key, leadMs: at - seenAt });
      }
      for (const [key, seenAt] of waiting) {
        if (seenAt + 10_000 >= at) break;
        waiting.delete(key);
        outcomes.push({ key, leadMs: undefined });
      }
      emitted += outcomes.splice(0).length;
    },
    counted: () => emitted,
  };
};

const ours = (more) => () => {
  const [feed$, ledger$] = [new Subject(), new Subject()];
  let outcomes = 0;
  feed$
    .pipe(
      settle(ledger$, {
        key: ({ value }) => value.hash,
        keep: () => undefined,
        withinMs: 10_000,
        maxTrades: 1_000_000,
        ...more,
      }),
    )
    .subscribe(({ type }) => type === 'outcome' && (outcomes += 1));
  feed$.next({ type: 'opened', at: begin, feed: 'raw', connection: 1 });
  ledger$.next({ type: 'watermark', at: begin });
  return {
    next: (trade) => feed$.next(trade),
    step: (at, confirmed) => {
      ledger$.next({ type: 'ledger', at, confirmed, depth: 12 });
      ledger$.next({ type: 'watermark', at });
    },
    counted: () => outcomes,
  };
};

const join = { map: byHand, settle: ours({}), slots: ours({ slot: ({ value }) => value.slot }) }[way]();

if (what === 'memory') {
  const count = 200_000;
  const trades = Array.from({ length: count / perBlock }, (_, block) => tradesOf(block).map((trade) => trade)).flat();
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  for (const [n, { value, frame }] of trades.entries())
    join.next(new Decoded(value, new Frame('raw', frame.data, false, begin + 1 + Math.floor(n / 1_000), 1)));
  join.step(begin + 300, []);
  globalThis.gc();
  console.log(JSON.stringify({ way, bytes: (process.memoryUsage().heapUsed - before) / count, of: trades.length }));
  process.exit();
}

let block = 0;
/** Joins some blocks. Returns the CPU time; what creates the trades does not count. */
const run = (blocks) => {
  const prepared = Array.from({ length: blocks }, (_, n) => {
    const trades = tradesOf(block + n);
    return { trades, entries: entriesOf(trades), at: begin + (block + n + 1) * everyMs };
  });
  block += blocks;
  const before = cpuNs();
  for (const { trades, entries, at } of prepared) {
    for (const trade of trades) join.next(trade);
    join.step(at, entries);
  }
  return cpuNs(before);
};

for (let n = 0; n < 4; n += 1) run(25);
let spent = 0;
for (let n = 0; n < 6; n += 1) spent += run(25);
console.log(JSON.stringify({ way, ns: spent / (6 * 25 * perBlock), outcomes: join.counted() }));
process.exit();
