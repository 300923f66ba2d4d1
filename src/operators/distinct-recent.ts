import { asyncScheduler, defer, filter, type MonoTypeOperatorFunction, type SchedulerLike } from 'rxjs';
import { aFunction, aScheduler, checkRequired, positiveCount, positiveMs, validated } from '../protocol/validate.js';
import { Ring } from './bounded/ring.js';
import { isLifecycle, type ItemOf, type NotInferred, timeOf } from './items/item.js';

/** The options of {@link distinctRecent}. */
export interface DistinctRecentOptions {
  /** How many keys to remember, 1 or more. @defaultValue 10 000 */
  readonly max?: number | undefined;
  /** How long to remember a key, in ms. @defaultValue 60 000 */
  readonly ttlMs?: number | undefined;
  /** The clock for items that have no time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Drops an item if its key is among the last `max` keys and arrived less than `ttlMs` ago.
 *
 * Use it where connections overlap: one replaces another, or the same frames arrive over two. Repeating an item doesn't
 * renew its key. An item's time is the `receivedAt` of its frame, even if it's decoded or from a log; anything else
 * takes the scheduler's time. Time never goes back. Lifecycle events pass unchanged. Errors when `key` throws.
 * Completes and errors with the source. Memory: at most `max` keys, no items.
 * ```ts
 * // source                                      --a-b-a-gap-a-b--|
 * // distinctRecent(item => item, { ttlMs: 8 })  --a-b---gap-a-b--|   a and b arrived again after 10
 * ```
 *
 * @param key - returns the key of an item, compared as in a `Map`: a text or a number, not a new object each time
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { from } from 'rxjs';
 * import { distinctRecent, Frame } from 'rx-trade-feed';
 *
 * const frame = (text: string, connection: number) =>
 *   new Frame('market', Buffer.from(text), false, Date.now(), connection);
 *
 * from([frame('a', 1), frame('b', 1), frame('b', 2), frame('c', 2)])
 *   .pipe(distinctRecent((each) => each.text()))
 *   .subscribe((each) => console.log(each.text())); // a, b, c
 * ```
 */
export const distinctRecent = <E>(
  key: (item: ItemOf<NotInferred<E>>) => unknown,
  options: DistinctRecentOptions = {},
): MonoTypeOperatorFunction<E> => {
  checkRequired({ key }, { key: aFunction });
  const rules = { max: positiveCount, ttlMs: positiveMs, scheduler: aScheduler };
  const { max = 10_000, ttlMs = 60_000, scheduler = asyncScheduler } = validated(options, rules);
  return (source) =>
    defer(() => {
      const isNew = newness(max, ttlMs);
      return source.pipe(
        filter((event) => isLifecycle(event) || isNew(key(event as ItemOf<E>), timeOf(event) ?? scheduler.now())),
      );
    });
};

const newness = (max: number, ttlMs: number): ((key: unknown, at: number) => boolean) => {
  const firstSeen = new Map<unknown, number>();
  // In order of arrival, because finding the oldest entry of a Map gets slow after many deletions.
  const inOrder = new Ring<unknown>();
  let now = -Infinity;

  const removeOldest = (): void => {
    firstSeen.delete(inOrder.shift());
  };
  const isOldestExpired = (): boolean => inOrder.size > 0 && now - (firstSeen.get(inOrder.oldest) ?? now) >= ttlMs;

  return (key, at) => {
    if (at > now) now = at;
    while (isOldestExpired()) removeOldest();
    if (firstSeen.has(key)) return false;
    if (inOrder.size === max) removeOldest();
    firstSeen.set(key, now);
    inOrder.push(key);
    return true;
  };
};
