import { asyncScheduler, defer, filter, type MonoTypeOperatorFunction, type SchedulerLike } from 'rxjs';
import { aFunction, aScheduler, positiveCount, positiveMs, validated } from '../protocol/rules.js';
import { isLifecycle, type ItemOf, timeOf } from './items/item.js';
import type { Settled } from './window/feed-window.js';
import { Ring } from './bounded/ring.js';

/** How much is remembered, and for how long. */
export interface DistinctRecentOptions {
  /** How many keys are remembered, 1 or more. @defaultValue 10 000 */
  readonly max?: number | undefined;
  /** How long a key is remembered, in ms. @defaultValue 60 000 */
  readonly ttlMs?: number | undefined;
  /** The clock for items that do not know their time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Drops an item whose key came before, among the last `max` keys and less than `ttlMs` ago.
 *
 * For the overlap when one connection takes over from another, and for frames that come over two ways. A repeat does not make
 * its key younger. Time is that of the items: `receivedAt` of a frame or of what was decoded from it, so a recording is judged by its own
 * time; it never goes back. The scheduler's clock serves for anything else. Events around the frames pass through.
 * Errors with what `key` throws; completes and errors with the source. Holds at most `max` keys, no items.
 *
 * ```ts
 * // source                                      --a-b-a-gap-a-b--|
 * // distinctRecent(item => item, { ttlMs: 8 })  --a-b---gap-a-b--|   a and b came again after 10
 * ```
 *
 * @param key - what tells items apart, compared as the keys of a `Map`: a text or a number, not an object made for each item
 * @param options - see {@link DistinctRecentOptions}
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
  key: (item: ItemOf<Settled<E>>) => unknown,
  options: DistinctRecentOptions = {},
): MonoTypeOperatorFunction<E> => {
  validated({ key }, { key: aFunction });
  const given = validated(options, {
    max: positiveCount,
    ttlMs: positiveMs,
    scheduler: aScheduler,
  });
  const { max, ttlMs, scheduler } = { max: 10_000, ttlMs: 60_000, scheduler: asyncScheduler, ...given };

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
  // The oldest of a Map is slow to find once many were deleted before it.
  const inOrder = new Ring<unknown>();
  let now = -Infinity;

  const forgetOldest = (): void => {
    firstSeen.delete(inOrder.shift());
  };
  const isOldestExpired = (): boolean => inOrder.size > 0 && now - (firstSeen.get(inOrder.oldest) ?? now) >= ttlMs;

  return (key, at) => {
    if (at > now) now = at;
    while (isOldestExpired()) forgetOldest();
    if (firstSeen.has(key)) return false;
    if (inOrder.size === max) forgetOldest();
    firstSeen.set(key, now);
    inOrder.push(key);
    return true;
  };
};
