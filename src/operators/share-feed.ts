import { asyncScheduler, type Observable, type SchedulerLike, share, timer } from 'rxjs';
import { aScheduler, clampMs, durationMs, validated } from '../protocol/rules.js';

/** How a connection is shared. */
export interface ShareOptions {
  /** How long the connection stays open after the last subscriber left, in ms. 0 closes it at once. @defaultValue 1 000 */
  readonly lingerMs?: number | undefined;
  /** For tests: what keeps the time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Gives all subscribers of a process one connection: an account has no second one (contract, section 3.2).
 *
 * The first subscriber opens it, later ones join live: they see what comes from then on. It is closed `lingerMs` after the last
 * one left, and kept if another comes before that. Emits, completes and errors with the source: a stop (an error) and a completion reach
 * everyone, and whoever subscribes after that tries again, with a new ticket. Holds nothing but its subscribers. Share one Observable: each
 * call makes a connection of its own.
 *
 * ```ts
 * // source              --a--b--c--d--     subscribed once
 * // subscriber 1        --a--b!
 * // subscriber 2        ----^b--c!         closed lingerMs later
 * ```
 *
 * @param options - see {@link ShareOptions}
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
export const shareFeed = (options: ShareOptions = {}): (<E>(source: Observable<E>) => Observable<E>) => {
  const { lingerMs = 1_000, scheduler = asyncScheduler } = validated(options, {
    lingerMs: durationMs,
    scheduler: aScheduler,
  });
  const resetOnRefCountZero = lingerMs === 0 ? true : () => timer(clampMs(lingerMs), scheduler);
  return (source) => source.pipe(share({ resetOnRefCountZero }));
};
