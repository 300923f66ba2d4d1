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
  /** The clock: for items that have no time, and for those whose time is wrong. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Drops an item if its key is among the last `max` keys and arrived less than `ttlMs` ago.
 *
 * Use it where connections overlap: one replaces another, or the same frames arrive over two. Repeating an item doesn't
 * renew its key. An item's time is the `receivedAt` of its frame, even if it's decoded or from a log; anything else
 * takes the scheduler's time. Late items don't turn time back, and an item timed ahead of the scheduler's clock doesn't
 * move it. If the clock was turned back by `ttlMs` or more, all keys are forgotten. Lifecycle events pass unchanged. Errors when `key` throws.
 * Completes and errors with the source. Memory: at most `max` keys, no items.
 * ```ts
 * // source                                      --a-b-a-gap-a-b--|
 * // distinctRecent(item => item, { ttlMs: 8 })  --a-b---gap-a-b--|
 * // a and b arrived again after 10
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
      const isNew = newness(max, ttlMs, () => scheduler.now());
      return source.pipe(filter((event) => isLifecycle(event) || isNew(key(event as ItemOf<E>), timeOf(event))));
    });
};

const newness = (max: number, ttlMs: number, clock: () => number) => {
  const firstSeen = new Map<unknown, number>();
  // In order of arrival, because finding the oldest entry of a Map gets slow after many deletions.
  const inOrder = new Ring<unknown>();
  const time = new ItemTime(ttlMs, clock);

  const removeOldest = (): void => {
    firstSeen.delete(inOrder.shift());
  };
  const isOldestExpired = (): boolean =>
    inOrder.size > 0 && time.now - (firstSeen.get(inOrder.oldest) as number) >= ttlMs;

  return (key: unknown, at: number | undefined): boolean => {
    if (time.move(at) === 'back') {
      firstSeen.clear();
      inOrder.clear();
    }
    while (isOldestExpired()) removeOldest();
    if (firstSeen.has(key)) return false;
    if (inOrder.size === max) removeOldest();
    firstSeen.set(key, time.now);
    inOrder.push(key);
    return true;
  };
};

/** The time of the items, in epoch ms, which no single wrong time moves far from where the others are. */
class ItemTime {
  now = -Infinity;
  private readonly trustMs: number;
  private readonly clock: () => number;
  /** The last reading of the clock. An earlier time needs no other one. */
  private read = -Infinity;

  constructor(trustMs: number, clock: () => number) {
    this.trustMs = trustMs;
    this.clock = clock;
  }

  /** @param time - that of an item; `undefined` if it has none */
  move(time: number | undefined): 'on' | 'back' {
    const at = this.believed(time ?? this.clock());
    // A late item is ignored, unless it's the clock that went back, or an item of an old log was ahead of the others.
    const isBack = this.now - at >= this.trustMs && Math.abs(this.clock() - this.now) >= this.trustMs;
    if (isBack || at > this.now) this.now = at;
    return isBack ? 'back' : 'on';
  }

  private believed(time: number): number {
    if (time <= this.read) return time;
    const before = this.read;
    this.read = this.clock();
    if (time <= this.read) return time;
    // Nothing arrives before its time. This item is as late as the one before it.
    return this.now === -Infinity ? this.read : this.now + Math.max(0, this.read - before);
  }
}
