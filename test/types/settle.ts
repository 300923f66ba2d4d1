import * as t from 'io-ts';
import { decodeWith, type Decoded, type FeedEvent, type Frame, frames, type Gap, tumblingWindow } from 'rx-trade-feed';
import { tradeFeed$, tradeFeedEvents$, type Watermark } from 'rx-trade-feed';
import { feedLog } from 'rx-trade-feed/log';
import { ledger, type LedgerStep, type Outcome, outcomeStats, type OutcomeStats, settle } from 'rx-trade-feed/settle';
import { map, type Observable } from 'rxjs';
import { emits } from './emits.js';

const Tx = t.type({ hash: t.string, from: t.string });
type Tx = t.TypeOf<typeof Tx>;
declare const blocks$: Observable<{ hash: string; parentHash: string; number: bigint; transactions: Tx[] }>;
type Lifecycle = Exclude<FeedEvent, { type: 'frame' } | { type: 'watermark' }>;

// The key is inferred from the entries.
const ledger$ = blocks$.pipe(
  ledger({
    id: (block) => block.hash,
    parent: (block) => block.parentHash,
    height: (block) => Number(block.number),
    fetchParent: () => blocks$,
    entries: (block) =>
      block.transactions.map(({ hash, from }) => ({ key: hash, slot: from, failed: from === '' || undefined })),
  }),
);
emits<LedgerStep<string> | Gap | Watermark>()(ledger$);

// The types of the item and of the kept value are inferred. An outcome carries the item by default.
const decoded$ = tradeFeedEvents$('raw').pipe(decodeWith(Tx));
emits<Lifecycle | Watermark | Outcome<Decoded<Tx>, string>>()(
  decoded$.pipe(settle(ledger$, { key: ({ value }) => value.hash, withinMs: 1 })),
);
emits<Lifecycle | Watermark | Outcome<number, string>>()(
  decoded$.pipe(
    settle(ledger$, { key: ({ value }) => value.hash, keep: ({ frame }) => frame.data.length, withinMs: 1 }),
  ),
);
emits<OutcomeStats>()(
  decoded$.pipe(
    settle(ledger$, { key: ({ value }) => value.hash, slot: ({ value }) => value.from, withinMs: 1 }),
    tumblingWindow({ lengthMs: 1, ...outcomeStats }),
    map(({ value }) => value),
  ),
);
feedLog('day')
  .read$()
  .pipe(settle(ledger$, { key: (frame) => frame.text(), withinMs: 1 }));

// A second line is a ledger.
const other$ = tradeFeedEvents$('raw').pipe(
  map((event): LedgerStep<string> | Exclude<FeedEvent, Frame> =>
    event.type === 'frame' ? { type: 'ledger', at: 1, confirmed: [{ key: 'a' }] } : event,
  ),
);
tradeFeedEvents$('raw').pipe(settle(other$, { key: (frame) => frame.text(), withinMs: 1 }));

// @ts-expect-error -- a feed without events: every outcome would look certain
tradeFeed$('raw').pipe(settle(ledger$, { key: (frame) => frame.text(), withinMs: 1 }));
// @ts-expect-error -- the events were removed
tradeFeedEvents$('raw').pipe(frames(), settle(ledger$, { key: (frame: Frame) => frame.text(), withinMs: 1 }));
// @ts-expect-error -- the ledger has texts as keys
tradeFeedEvents$('raw').pipe(settle(ledger$, { key: (frame) => frame.receivedAt, withinMs: 1 }));
// @ts-expect-error -- withinMs is required
settle(ledger$, { key: () => 'a' });
