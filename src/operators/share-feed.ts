import { asyncScheduler, type Observable, type SchedulerLike, share, timer } from 'rxjs';
import { aScheduler, clampMs, durationMs, validated } from '../protocol/rules.js';

/** The options of {@link shareFeed}. */
export interface ShareFeedOptions {
  /** How long the connection stays open after the last subscriber unsubscribed, in ms. 0 closes it at once. @defaultValue 1 000 */
  readonly lingerMs?: number | undefined;
  /** The clock of `lingerMs`; for tests. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Shares one connection among all subscribers: an account can have only one live connection (contract, section 3.2).
 *
 * The first subscriber opens the connection. A later subscriber receives the values that follow its subscription. The connection is closed
 * `lingerMs` after the last subscriber unsubscribed, unless another one subscribes before. Emits, completes and errors with the source, for all
 * subscribers. A subscriber after that starts a new attempt, with a new ticket. Memory: the subscribers.
 *
 * Share one Observable: each call of `shareFeed` creates a separate connection.
 *
 * ```ts
 * // source              --a--b--c--d--     subscribed once
 * // subscriber 1        --a--b!
 * // subscriber 2        ----^b--c!         closed lingerMs later
 * ```
 *
 * @param options - see {@link ShareFeedOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { frames, gaps, shareFeed, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * const feed$ = tradeFeedEvents$('market').pipe(shareFeed({ lingerMs: 5_000 }));
 * feed$.pipe(frames()).subscribe((frame) => console.log(frame.text()));
 * feed$.pipe(gaps()).subscribe((gap) => console.log(`${gap.durationMs} ms without frames`));
 * ```
 */
export const shareFeed = (options: ShareFeedOptions = {}): (<E>(source: Observable<E>) => Observable<E>) => {
  const { lingerMs = 1_000, scheduler = asyncScheduler } = validated(options, {
    lingerMs: durationMs,
    scheduler: aScheduler,
  });
  const resetOnRefCountZero = lingerMs === 0 ? true : () => timer(clampMs(lingerMs), scheduler);
  return (source) => source.pipe(share({ resetOnRefCountZero }));
};
