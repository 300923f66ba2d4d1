// The diagrams of the outcomes: real runs of `ledger` and `settle` in virtual time.
import { filter, of, tap, VirtualTimeScheduler } from 'rxjs';
import { ledger, settle } from 'rx-trade-feed/settle';
import { messagesOf, sourceOf } from './run.mjs';

/**
 * Runs a feed and the blocks of a chain. A trade is a letter, and `A` has the slot of `a`.
 *
 * `blocks` are `[at, trades, how]`. `how` is `fork` for a block that takes the place of the one before, and `missed` for one that the node
 * does not show: the ledger fetches it.
 */
const outcomesOf = ({ feed, blocks, endMs = 2_600, ...options }) => {
  const scheduler = new VirtualTimeScheduler(undefined, endMs);
  const chain = [];
  for (const [at, trades, how] of blocks) {
    const before = chain.at(-1);
    const [parent, height] = how === 'fork' ? [before.parent, before.height] : [before?.id, (before?.height ?? 0) + 1];
    const kind = trades === '' ? 'event' : 'value';
    const label = `${trades || 'empty'}${how === 'fork' ? ', fork' : ''}`;
    chain.push({ at, id: chain.length, parent, height, trades, kind, label, isShown: how !== 'missed' });
  }
  const shown = chain.filter(({ isShown }) => isShown);
  const ledger$ = sourceOf(
    shown.map((block) => ({ at: block.at, value: block })),
    scheduler,
  ).pipe(
    ledger({
      id: ({ id }) => id,
      parent: ({ parent }) => parent,
      height: ({ height }) => height,
      fetchParent: ({ parent }) => of(chain.find(({ id }) => id === parent)),
      entries: ({ trades }) => [...trades].map((key) => ({ key, slot: key.toLowerCase() })),
      scheduler,
    }),
  );
  const messages = messagesOf(feed);
  const outcomes = [];
  sourceOf(messages, scheduler)
    .pipe(
      settle(ledger$, {
        ...{ key: (frame) => frame.text(), slot: (frame) => frame.text().toLowerCase(), keep: () => undefined },
        ...{ withinMs: 1_000, graceMs: 300, rememberMs: 400, scheduler, ...options },
      }),
      filter(({ type }) => type === 'outcome'),
      tap((value) => outcomes.push({ at: scheduler.now(), label: labelOf(value), kind: 'window' })),
    )
    .subscribe();
  scheduler.flush();
  const rows = [
    { name: 'feed', messages },
    { name: 'ledger, a mark for each block', messages: shown.map(({ at, label, kind }) => ({ at, label, kind })) },
    { name: 'settle(ledger$, { key, slot, withinMs: 1_000, graceMs: 300 })', messages: outcomes },
  ];
  return { end: endMs, rows };
};

const labelOf = ({ state, key, leadMs, by, because, late }) =>
  [
    `${key} ${state}`,
    ...(leadMs === undefined ? [] : [`lead ${leadMs} ms`]),
    ...(by === undefined ? [] : [`by ${by}`]),
    ...(because === undefined ? [] : [`${because.side} ${because.why}`]),
    ...(late ? ['late'] : []),
  ].join(', ');

const diagramOf = (title, settings) => ({ title, run: () => outcomesOf(settings) });

export const outcomeDiagrams = {
  'outcome-confirmed': diagramOf('confirmed: the ledger has the trade', {
    feed: 'O---a-------------b-------',
    blocks: [
      [0, ''],
      [400, ''],
      [800, 'a'],
      [1_200, ''],
      [1_600, 'b'],
      [2_000, ''],
      [2_400, ''],
    ],
  }),
  'outcome-replaced': diagramOf('replaced: the ledger has another trade of the slot', {
    feed: 'O---a---A-----------------',
    blocks: [
      [0, ''],
      [400, ''],
      [800, ''],
      [1_200, 'A'],
      [1_600, ''],
      [2_000, ''],
    ],
  }),
  'outcome-expired': diagramOf('expired: no block had the trade within its time', {
    feed: 'O---a---------------------',
    blocks: [
      [0, ''],
      [400, ''],
      [800, ''],
      [1_200, ''],
      [1_600, ''],
      [2_000, ''],
    ],
  }),
  'outcome-reorged': diagramOf('reorged: another block takes the place of the one with the trade', {
    feed: 'O---a---------------------',
    blocks: [
      [0, ''],
      [400, ''],
      [800, 'a'],
      [1_400, '', 'fork'],
      [2_000, 'a'],
    ],
  }),
  'outcome-unseen': diagramOf('unseen: the ledger has a trade that the open feed did not show', {
    feed: 'O-------------------------',
    blocks: [
      [0, ''],
      [400, ''],
      [800, 'a'],
      [1_200, ''],
      [1_600, ''],
      [2_000, ''],
    ],
  }),
  'outcome-unknown': diagramOf('unknown: the feed may have shown the trade, but was down', {
    feed: 'O---a--X-----O------------',
    blocks: [
      [0, ''],
      [400, ''],
      [800, 'a'],
      [1_200, 'b'],
      [1_600, ''],
      [2_000, ''],
    ],
  }),
  'outcome-late': diagramOf('late: the node missed a block, and the ledger fetched it', {
    feed: 'O---a---------------------',
    blocks: [
      [0, ''],
      [400, ''],
      [800, 'a', 'missed'],
      [1_200, ''],
      [1_600, ''],
      [2_000, ''],
    ],
  }),
};
