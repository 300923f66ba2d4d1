import { asyncScheduler, catchError, concat, defer, EMPTY, endWith, ignoreElements, interval, map, merge } from 'rxjs';
import { type Observable, of, type SchedulerLike, takeWhile, tap, throwError } from 'rxjs';
import { aScheduler, clampMs, objectWith, positiveMs, validated } from '../protocol/rules.js';
import type { DropReport } from './bounded/drop-report.js';
import { type FeedStats, FeedTally } from './items/feed-tally.js';

/** The options of {@link feedStats}. */
export interface FeedStatsOptions {
  /** The period, in ms. @defaultValue 1 000 */
  readonly everyMs?: number | undefined;
  /** The drop reports of bounded operators of this feed. @defaultValue none */
  readonly drops$?: Observable<DropReport> | undefined;
  /** The clock of the periods; for tests. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Counts frames, bytes, gaps, lost time, reconnects by cause, and drops.
 *
 * Emits {@link FeedStats} at the end of each period, also without frames. When the source completes or errors, the figures of the last period are
 * emitted first. Errors with `drops$`, too; the completion of `drops$` changes nothing. Memory: the figures.
 *
 * Apply it to the feed itself, after a `shareFeed`. Operators that drop or decode belong in another branch, because this operator would count
 * their output instead of the feed.
 *
 * ```ts
 * // source                        --f--f--f-----f--------
 * // feedStats({ everyMs: 10 })    ----------s---------s--
 * ```
 *
 * @param options - see {@link FeedStatsOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { Subject } from 'rxjs';
 * import { type DropReport, feedStats, frames, mergeMapBounded, shareFeed, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * const drops$ = new Subject<DropReport>();
 * const feed$ = tradeFeedEvents$('market').pipe(shareFeed());
 * const save = async (text: string) => console.log(text);
 *
 * feed$.pipe(frames(), mergeMapBounded((frame) => save(frame.text()), { onDrop: (drop) => drops$.next(drop) })).subscribe();
 * feed$.pipe(feedStats({ everyMs: 1_000, drops$ })).subscribe((stats) => console.log(stats));
 * ```
 */
export const feedStats = (options: FeedStatsOptions = {}): ((source: Observable<unknown>) => Observable<FeedStats>) => {
  const { everyMs = 1_000, drops$ = EMPTY, scheduler = asyncScheduler } = validated(options, rules);
  return (source) =>
    defer(() => {
      const tally = new FeedTally(scheduler.now());
      const read = () => tally.read(scheduler.now());
      return merge(
        source.pipe(
          tap((event) => tally.count(event)),
          last$,
        ),
        drops$.pipe(
          tap(({ dropped }) => tally.drop(dropped)),
          ignoreElements(),
        ),
        interval(clampMs(everyMs), scheduler),
      ).pipe(
        takeWhile((signal) => signal !== over, true),
        map(read),
        catchError((error: unknown) =>
          concat(
            defer(() => of(read())),
            throwError(() => error),
          ),
        ),
      );
    });
};

const over = Symbol('over');
const last$ = (source: Observable<unknown>): Observable<typeof over> => source.pipe(ignoreElements(), endWith(over));

const rules = {
  everyMs: positiveMs,
  drops$: objectWith('subscribe', 'an Observable of drop reports'),
  scheduler: aScheduler,
};
