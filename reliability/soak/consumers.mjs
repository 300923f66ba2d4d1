// On one shared connection: a pipeline with windows, a consumer that is slower than the feed by far, and the books.
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
import { Truth } from './truth.mjs';

const Batch = t.type({
  batch: t.number,
  trades: t.array(t.type({ market: t.string, price: t.string, amount: t.string })),
});
const needle = '"market":"ETH-USD"';
/** Frames between two acknowledgements. */
const TOLD_EVERY = 1_000;

/**
 * Makes the consumers: `all` of them to be subscribed once, and what they found.
 *
 * @param capacity - how many frames wait for the slow consumer before some are dropped
 * @param until$ - ends the feed; the slow consumer works off what waited for it
 * @param onTaken - told of every thousandth number
 */
export const consumers = ({ options, windowMs, capacity, until$, onTaken }) => {
  const truth = new Truth(needle, windowMs);
  const windows = [];
  const windowed = new Subject();
  const slow = { processed: 0, dropped: 0, reports: 0 };
  const open = deferred();
  const waiting = { number: Infinity, resolve: () => {} };

  const feed$ = tradeFeedEvents$('market', options).pipe(takeUntil(until$), shareFeed({ lingerMs: 0 }));
  const windows$ = feed$.pipe(
    whereBytes(needle),
    decodeWith(Batch, { onInvalid: 'error' }),
    tumblingWindow({ lengthMs: windowMs }),
    // Only figures are kept: frames, and failures with their stacks, would be the soak's own leak.
    tap(({ start, end, count, complete, gaps }) => {
      windows.push({ start, end, count, complete, told: gaps.map(({ failure }) => failure.code) });
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
    tap((event) => {
      truth.see(event);
      if (event.type === 'opened') open.resolve();
    }),
    filter(({ type }) => type === 'frame'),
    tap(() => {
      const { received, last } = truth.ledger;
      if (received % TOLD_EVERY === 0) onTaken(last);
      if (last >= waiting.number) waiting.resolve();
    }),
  );
  return {
    truth,
    windows,
    slow,
    all: [slow$, counted$, windows$],
    /** Behind each window, when its frames are let go: what it holds grows with its age. */
    windowed$: windowed.pipe(observeOn(asapScheduler)),
    opened: open.promise,
    /** Resolves when a number has come. */
    reached: (number) =>
      new Promise((resolve) => {
        Object.assign(waiting, { number, resolve });
        if (truth.ledger.last >= number) resolve();
      }),
  };
};

const deferred = () => {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
};
