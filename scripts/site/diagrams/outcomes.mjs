// The diagrams of the outcomes: real runs of `ledger` and `settle` in virtual time.
import { filter, of } from 'rxjs';
import { ledger, settle } from 'rx-trade-feed/settle';
import { runDiagram, sourceOf, unitMs } from './run.mjs';

/**
 * Reads a line of blocks. `o` is an empty block, `/` an empty one that takes the place of the block before, and a letter a block with this trade.
 * `A` has the slot of `a`. The node doesn't show the block at `missedAt`: the ledger fetches it. The trade `failed` was mined and reverted.
 */
const chainOf = (line, { missedAt, failed }) => {
  const chain = [];
  [...line].forEach((letter, slot) => {
    if (letter === '-') return;
    const isFork = letter === '/';
    const [parent, height] = isFork
      ? [chain.at(-1).parent, chain.at(-1).height]
      : [chain.at(-1)?.id, (chain.at(-1)?.height ?? 0) + 1];
    const isEmpty = isFork || letter === 'o';
    const at = slot * unitMs;
    chain.push({
      ...{ at, id: chain.length, parent, height, trades: isEmpty ? [] : [letter], isShown: at !== missedAt },
      ...{
        kind: isEmpty ? 'event' : 'value',
        label: isFork ? 'fork' : isEmpty ? '' : letter === failed ? `${letter} failed` : letter,
      },
    });
  });
  return chain;
};

/** Runs a feed and the blocks of a chain. */
const outcomesOf = (feed, blocks, options = {}) => {
  const chain = chainOf(blocks, options);
  const shown = chain.filter(({ isShown }) => isShown).map((block) => ({ ...block, value: block }));
  const settled = (source$, scheduler) => {
    const ledger$ = sourceOf(shown, scheduler).pipe(
      ledger({
        id: ({ id }) => id,
        parent: ({ parent }) => parent,
        height: ({ height }) => height,
        fetchParent: ({ parent }) => of(chain.find(({ id }) => id === parent)),
        entries: ({ trades }) =>
          trades.map((key) => ({ key, slot: key.toLowerCase(), failed: key === options.failed || undefined })),
      }),
    );
    return source$.pipe(
      settle(ledger$, {
        ...{ key: (frame) => frame.text(), slot: (frame) => frame.text().toLowerCase(), keep: () => undefined },
        ...{ withinMs: 1_000, graceMs: 300, rememberMs: 400 },
      }),
      filter(({ type }) => type === 'outcome'),
    );
  };
  const name = 'settle(ledger$, …)';
  const show = (outcome) => ({ label: labelOf(outcome), kind: 'window' });
  const { end, rows } = runDiagram({ source: feed, pipelines: [{ name, apply: settled, show }], endMs: 2_600 });
  const [source, outcomes] = rows;
  const blockRow = { name: 'blocks', messages: shown };
  return { end, rows: [{ ...source, name: 'feed' }, blockRow, outcomes] };
};

const labelOf = ({ state, key, leadMs, by, because, late }) =>
  [
    `${key} ${state}`,
    ...(leadMs === undefined ? [] : [`lead ${leadMs} ms`]),
    ...(by === undefined ? [] : [`by ${by}`]),
    ...(because === undefined ? [] : [`${because.side} ${because.why}`]),
    ...(late ? ['late'] : []),
  ].join(', ');

/** Each outcome by its name: the title, the feed, the blocks, and the options of `chainOf`. */
const outcomes = {
  confirmed: ['the ledger has the trade', 'O---a-------------b', 'o---o---a---o---b---o---o'],
  failed: ['the trade was mined, but it was not executed', 'O---a---A', 'o---o---o---a---o---o', { failed: 'a' }],
  replaced: ['the ledger has another trade of the slot', 'O---a---A', 'o---o---o---A---o---o'],
  expired: ['no block had the trade within its time', 'O---a', 'o---o---o---o---o---o'],
  reorged: ['another block takes the place of its block', 'O---a', 'o---o---a-----/-----a'],
  unseen: ['the open feed did not show the trade', 'O', 'o---o---a---o---o---o'],
  unknown: ['the feed may have shown it, but was down', 'O---a--X-----O', 'o---o---a---b---o---o'],
  late: ['the node missed a block, which the ledger fetched', 'O---a', 'o---o---a---o---o---o', { missedAt: 800 }],
};

export const outcomeDiagrams = Object.fromEntries(
  Object.entries(outcomes).map(([name, [title, ...run]]) => [
    `outcome-${name}`,
    { title: `${name}: ${title}`, run: () => outcomesOf(...run) },
  ]),
);
