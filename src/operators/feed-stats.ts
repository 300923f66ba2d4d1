import { asyncScheduler, catchError, concat, defer, EMPTY, endWith, ignoreElements, interval, map, merge } from 'rxjs';
import { type Observable, of, type SchedulerLike, takeWhile, tap, throwError } from 'rxjs';
import { aScheduler, clampMs, objectWith, positiveMs, validated } from '../protocol/rules.js';
import type { DropReport } from './bounded/drop-report.js';
import { type FeedStats, FeedTally } from './items/feed-tally.js';

/** What is counted, and how often it is told. */
export interface StatsOptions {
  /** The period, in ms. @defaultValue 1 000 */
  readonly everyMs?: number | undefined;
  /** The reports of bounded operators further down, which drop what they cannot hold. @defaultValue none */
  readonly drops$?: Observable<DropReport> | undefined;
  /** For tests: what keeps the time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Counts what comes: frames, bytes, gaps, lost time, reconnects by cause, drops.
 *
 * Emits {@link FeedStats} at the end of each period, also of one without frames, and for the rest when the source completes or errors:
 * then it does the same. Errors with `drops$` too, whose completion changes nothing. Holds the figures alone. Put it beside the pipeline that does
 * the work, behind a `shareFeed`, or an operator that drops or decodes would be counted instead of the feed.
 *
 * ```ts
 * // source                        --f--f--f-----f--------
 * // feedStats({ everyMs: 10 })    ----------s---------s--
 * ```
 *
 * @param options - see {@link StatsOptions}
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
export const feedStats = (options: StatsOptions = {}): ((source: Observable<unknown>) => Observable<FeedStats>) => {
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
