import {
  asyncScheduler,
  catchError,
  concat,
  defer,
  EMPTY,
  endWith,
  ignoreElements,
  interval,
  map,
  merge,
  type Observable,
  of,
  type SchedulerLike,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import type { FailureCode } from '../protocol/failures/meanings.js';
import { type FeedState, isOfRelay, newlyLostMs } from '../protocol/feed-state.js';
import { aScheduler, clampMs, objectWith, positiveMs, validated } from '../protocol/validate.js';
import type { DropReport } from './bounded/bounded-queue.js';
import { bytesOf, isFrame, isLifecycle } from './items/item.js';
import { FeedFollower } from './items/follow-feed.js';

/** The options of {@link feedStats}. */
export interface FeedStatsOptions {
  /** The period, in ms. @defaultValue 1 000 */
  readonly everyMs?: number | undefined;
  /** Drop reports from the bounded operators on this feed. @defaultValue none */
  readonly drops$?: Observable<DropReport> | undefined;
  /** The clock of the periods; for tests. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The figures of a feed: for one period, and since you subscribed. */
export interface FeedStats {
  readonly type: 'stats';
  /** When the period began, in epoch ms. */
  readonly from: number;
  /** When the period ended, in epoch ms. */
  readonly to: number;
  /** Frames in this period. */
  readonly frames: number;
  /** Bytes in this period. */
  readonly bytes: number;
  readonly framesPerSecond: number;
  readonly bytesPerSecond: number;
  /** Frames since you subscribed. */
  readonly totalFrames: number;
  /** Bytes since you subscribed. */
  readonly totalBytes: number;
  /** Outages that began or ended since you subscribed. */
  readonly gaps: number;
  /**
   * How long these outages lasted in full, in ms. An ongoing outage counts up to the last watermark, or up to now if
   * there is none.
   */
  readonly lostMs: number;
  /** How often the feed has reconnected since you subscribed, by the code of the failure before. */
  readonly reconnects: Readonly<Partial<Record<FailureCode, number>>>;
  /** Values that bounded operators reported as dropped since you subscribed, plus frames that a relay skipped. */
  readonly dropped: number;
}

/**
 * Counts frames, bytes, gaps, lost time, reconnects by cause, and drops.
 *
 * Emits {@link FeedStats} at the end of each period, even if no frame arrived. When the source completes or errors, the
 * figures of the last period come out first. Also errors with `drops$`, but doesn't mind when that completes. Memory:
 * the figures. Apply it to the feed itself, right after `shareFeed`: behind operators that drop or decode, it would
 * count what they emit.
 * ```ts
 * // source                        --f--f--f-----f--------
 * // feedStats({ everyMs: 10 })    ----------s---------s--
 * ```
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { Subject } from 'rxjs';
 * import {
 *   type DropReport,
 *   feedStats,
 *   frames,
 *   mergeMapBounded,
 *   shareFeed,
 *   tradeFeedEvents$,
 * } from 'rx-trade-feed';
 *
 * const drops$ = new Subject<DropReport>();
 * const feed$ = tradeFeedEvents$('market').pipe(shareFeed());
 * const save = async (text: string) => console.log(text);
 *
 * const onDrop = (drop: DropReport) => drops$.next(drop);
 * feed$
 *   .pipe(
 *     frames(),
 *     mergeMapBounded((frame) => save(frame.text()), { onDrop }),
 *   )
 *   .subscribe();
 * feed$
 *   .pipe(feedStats({ everyMs: 1_000, drops$ }))
 *   .subscribe((stats) => console.log(stats));
 * ```
 */
export const feedStats = (options: FeedStatsOptions = {}): ((source: Observable<unknown>) => Observable<FeedStats>) => {
  const { everyMs = 1_000, drops$ = EMPTY, scheduler = asyncScheduler } = validated(options, rules);
  return (source) =>
    defer(() => {
      const tally = new FeedTally(scheduler.now());
      const read = (): FeedStats => tally.read(scheduler.now());
      const counted$ = source.pipe(
        tap((event) => tally.count(event)),
        ignoreElements(),
        endWith(over),
      );
      const dropped$ = drops$.pipe(
        tap(({ dropped }) => tally.drop(dropped)),
        ignoreElements(),
      );
      return merge(counted$, dropped$, interval(clampMs(everyMs), scheduler)).pipe(
        takeWhile((signal) => signal !== over, true),
        map(read),
        catchError((error: unknown) =>
          concat(
            of(read()),
            throwError(() => error),
          ),
        ),
      );
    });
};

const over = Symbol('over');

const rules = {
  everyMs: positiveMs,
  drops$: objectWith('subscribe', 'an Observable of drop reports'),
  scheduler: aScheduler,
};

class FeedTally {
  readonly #feed = new FeedFollower();
  #dropped = 0;
  #frames = 0;
  #bytes = 0;
  /** The figures when the period began. */
  #before: { readonly at: number; readonly frames: number; readonly bytes: number };

  constructor(now: number) {
    this.#before = { at: now, frames: 0, bytes: 0 };
  }

  count(event: unknown): void {
    this.#feed.next(event);
    if (!isFrame(event) && isLifecycle(event)) return;
    this.#frames += 1;
    this.#bytes += bytesOf(event);
  }

  drop(dropped: number): void {
    this.#dropped += dropped;
  }

  /** Ends the period, begins the next one, and returns the figures. */
  read(to: number): FeedStats {
    const { totals } = this.#feed.state;
    const { at: from, ...before } = this.#before;
    const [totalFrames, totalBytes] = [this.#frames, this.#bytes];
    const [frames, bytes] = [totalFrames - before.frames, totalBytes - before.bytes];
    this.#before = { at: to, frames: totalFrames, bytes: totalBytes };
    const perSecond = (count: number): number => (to > from ? (count * 1_000) / (to - from) : 0);
    return {
      type: 'stats',
      from,
      to,
      frames,
      bytes,
      framesPerSecond: perSecond(frames),
      bytesPerSecond: perSecond(bytes),
      totalFrames,
      totalBytes,
      ...lossesOf(this.#feed.state, to),
      reconnects: totals.reconnects,
      dropped: this.#dropped + totals.missed,
    };
  }
}

/** The outages up to `now`, in epoch ms. */
export const lossesOf = (state: FeedState, now: number): Pick<FeedStats, 'gaps' | 'lostMs'> => {
  const { outage, watermark, totals } = state;
  // While the relay can't be reached, the feed itself may well be up, so this isn't an outage yet.
  const open = outage && !isOfRelay(outage) ? { from: outage.from, to: watermark ?? now } : undefined;
  return {
    gaps: totals.gaps + (open ? 1 : 0),
    lostMs: totals.lostMs + (open ? newlyLostMs(totals, open.from, open.to) : 0),
  };
};
