import { asyncScheduler, Observable, type SchedulerLike, type SubjectLike, type Subscriber, timer } from 'rxjs';
import { aScheduler, clampMs, durationMs, validated } from '../protocol/validate.js';
import { contextHere, shareIn } from './items/async-context.js';
import { FeedFollower } from './items/follow-feed.js';

/** The options of {@link shareFeed}. */
export interface ShareFeedOptions {
  /**
   * How long to keep the connection open after the last subscriber has left, in ms. 0 closes it at once.
   * @defaultValue 1 000
   */
  readonly lingerMs?: number | undefined;
  /** The clock of `lingerMs`; for tests. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Shares one connection among all subscribers: an account only gets one live connection (contract, section 3.2).
 *
 * The first subscriber opens the connection; later ones get the values from then on. If they join while it settles,
 * they first get its `opened`, with the `disconnected` of an outage that goes on. The connection closes `lingerMs` after
 * the last subscriber has left, unless another one comes before. Completes and errors with the source, for all
 * subscribers; subscribing after that starts a new attempt, with a new ticket. Keep the Observable and share that: each
 * call of `shareFeed` opens its own connection. In Node the source runs in the async context in which you call
 * `shareFeed`, and each subscriber's callbacks in that of its `subscribe`. Memory: the subscribers.
 * ```ts
 * // source              --a--b--c--d--     subscribed once
 * // subscriber 1        --a--b!
 * // subscriber 2        ----^b--c!         closed lingerMs later
 * ```
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { frames, gaps, shareFeed, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * const feed$ = tradeFeedEvents$('market').pipe(shareFeed({ lingerMs: 5_000 }));
 * feed$.pipe(frames()).subscribe((frame) => console.log(frame.text()));
 * feed$
 *   .pipe(gaps())
 *   .subscribe(({ failure }) =>
 *     console.log(`frames may be missing: ${failure.code}`),
 *   );
 * ```
 */
export const shareFeed = (options: ShareFeedOptions = {}): (<E>(source: Observable<E>) => Observable<E>) => {
  const { home, scheduler, resetOnRefCountZero } = settingsOf(options);
  return <E>(source: Observable<E>) =>
    source.pipe(shareIn<E>(home, { connector: () => feedFanOut(() => scheduler.now()), resetOnRefCountZero }));
};

/** Like {@link shareFeed}, for a caller that itself tells late subscribers what the status of the feed is. */
export const shareConnection = (options: ShareFeedOptions = {}): (<E>(source: Observable<E>) => Observable<E>) => {
  const { home, resetOnRefCountZero } = settingsOf(options);
  return <E>(source: Observable<E>) => source.pipe(shareIn<E>(home, { connector: fanOut, resetOnRefCountZero }));
};

const settingsOf = (options: ShareFeedOptions) => {
  const rules = { lingerMs: durationMs, scheduler: aScheduler };
  const { lingerMs = 1_000, scheduler = asyncScheduler } = validated(options, rules);
  const resetOnRefCountZero = lingerMs === 0 ? true : () => timer(clampMs(lingerMs), scheduler);
  return { home: contextHere(), scheduler, resetOnRefCountZero };
};

/**
 * Creates a connector for a feed. To a late subscriber, the first frame would prove that nothing is missing, so while
 * the connection settles it receives the events that say so.
 */
const feedFanOut = <E>(now: () => number): SubjectLike<E> => {
  const feed = new FeedFollower();
  const subject = fanOut<E>();
  return {
    ...subject,
    subscribe: (observer) => {
      for (const event of feed.joinedAt(now())) observer.next?.(event as E);
      return subject.subscribe(observer);
    },
    next: (value) => {
      feed.next(value);
      subject.next(value);
    },
  };
};

/**
 * Creates a connector for `share`. A Subject creates a closure and an iterator for each value, which costs more than
 * the subscribers do. Unlike a Subject, this doesn't repeat its end to later subscribers.
 */
export const fanOut = <T>(): SubjectLike<T> => {
  let subscribers: readonly Subscriber<T>[] = [];
  const values$ = new Observable<T>((subscriber) => {
    subscribers = [...subscribers, subscriber];
    return () => (subscribers = subscribers.filter((other) => other !== subscriber));
  });
  return {
    subscribe: (observer) => values$.subscribe(observer),
    next: (value) => {
      for (const subscriber of subscribers) subscriber.next(value);
    },
    error: (error) => subscribers.forEach((subscriber) => subscriber.error(error)),
    complete: () => subscribers.forEach((subscriber) => subscriber.complete()),
  };
};
