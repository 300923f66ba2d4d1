// The subscribers of the soak, on one shared connection: a pipeline with windows, a consumer that is much slower than the feed, and
// the count of the expected values.
import * as t from 'io-ts';
import { asapScheduler, filter, observeOn, Subject, takeUntil, tap, timer } from 'rxjs';
import {
  decodeWith,
  frames,
  mergeMapBounded,
  shareFeed,
  tradeFeedEvents$,
  tumblingWindow,
  whereBytes,
} from 'rx-trade-feed';
import { ExpectedValues } from './expected-values.mjs';

const Batch = t.type({
  batch: t.number,
  trades: t.array(t.type({ market: t.string, price: t.string, amount: t.string })),
});
const needle = '"market":"ETH-USD"';
/** Frames between two acknowledgements. */
const ACKNOWLEDGE_EVERY = 1_000;

/**
 * Creates the subscribers. Subscribe to each Observable of `all` once.
 *
 * @param capacity - how many frames wait for the slow consumer before the operator drops some
 * @param until$ - ends the feed; the slow consumer then processes the frames in its queue
 * @param onTaken - is called with every thousandth number
 */
export const consumers = ({ options, windowMs, capacity, until$, onTaken }) => {
  const expected = new ExpectedValues(needle, windowMs);
  const windows = [];
  const windowed = new Subject();
  const slow = { processed: 0, dropped: 0, reports: 0 };

  const feed$ = tradeFeedEvents$('market', options).pipe(takeUntil(until$), shareFeed({ lingerMs: 0 }));
  const windows$ = feed$.pipe(
    whereBytes(needle),
    decodeWith(Batch, { onInvalid: 'error' }),
    tumblingWindow({ lengthMs: windowMs }),
    // Store only numbers and codes: stored frames and failures would look like a leak.
    tap(({ start, end, count, complete, gaps }) => {
      windows.push({ start, end, count, complete, gapCodes: gaps.map(({ failure }) => failure.code) });
      windowed.next();
    }),
  );
  const slow$ = feed$.pipe(
    frames(),
    mergeMapBounded(() => timer(1).pipe(tap(() => (slow.processed += 1))), {
      concurrency: 2,
      capacity,
      onDrop: ({ dropped }) => {
        slow.dropped += dropped;
        slow.reports += 1;
      },
    }),
  );
  const counted$ = feed$.pipe(
    tap((event) => expected.event(event)),
    filter(({ type }) => type === 'frame'),
    tap(() => {
      const { received, last } = expected.account;
      if (received % ACKNOWLEDGE_EVERY === 0) onTaken(last);
    }),
  );
  return {
    expected,
    windows,
    slow,
    all: [slow$, counted$, windows$],
    /** Emits after each window, when the window has released its frames: until then its memory grows with its age. */
    windowed$: windowed.pipe(observeOn(asapScheduler)),
  };
};
