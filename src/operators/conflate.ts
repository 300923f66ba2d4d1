import { asyncScheduler, defer, filter, interval, type OperatorFunction, type SchedulerLike } from 'rxjs';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import { aFunction, aScheduler, checkRequired, positiveCount, timerMs, validated } from '../protocol/validate.js';
import { BatchCollector, collect$ } from './items/collect.js';
import { Conflated, isLifecycle, type ItemOf, type NotInferred, withOwnBytes } from './items/item.js';

/** The options of {@link conflate}. */
export interface ConflateOptions {
  /** How many keys a period can have. The operator emits early once it has that many. @defaultValue 100 000 */
  readonly maxKeys?: number | undefined;
  /** The clock of the periods. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Emits the newest value of each key once per period, and says how many values the key had in that period.
 *
 * This is conflation as in market data: you get at most one value per key and period, and each value counts in exactly
 * one {@link Conflated}. The first period begins when you subscribe. Keys come out in the order they first arrived; an
 * empty period emits nothing.
 *
 * Lifecycle events such as `gap` keep their place: waiting values come out before them. A watermark waits with the
 * values before it. When the source completes or errors, waiting values come out first. Errors when `key` throws.
 * Memory: one value per key of the period, at most `maxKeys`.
 * ```ts
 * // - is 100 ms; a, b, c: values of one key; p, q: of another; g: a gap
 * // source              -a-p-b-------c-g-----q--------
 * // everyMs: 1000       ----------U----V--------------W
 * // U: b (2 values) and p; V: c, and then g; W: q
 * ```
 *
 * @param key - returns the key of a value, such as its symbol; compared as in a `Map`, called once per value
 * @param everyMs - the period in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { conflate, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * // Ten times a second: the newest frame of each connection.
 * tradeFeedEvents$('market')
 *   .pipe(conflate((frame) => frame.connection, 100))
 *   .subscribe((event) => {
 *     if (event.type === 'conflated')
 *       console.log(event.value.text(), `and ${event.count - 1} older ones`);
 *   });
 * ```
 */
export const conflate = <E, K>(
  key: (item: ItemOf<NotInferred<E>>) => K,
  everyMs: number,
  options: ConflateOptions = {},
): OperatorFunction<E, Extract<NotInferred<E>, ClusterLifecycleEvent> | Conflated<ItemOf<NotInferred<E>>, K>> => {
  checkRequired({ key, everyMs }, { key: aFunction, everyMs: timerMs });
  const rules = { maxKeys: positiveCount, scheduler: aScheduler };
  const { maxKeys = 100_000, scheduler = asyncScheduler } = validated(options, rules);
  return (source) =>
    defer(() => {
      const newest = new NewestValues<E, K>(key, maxKeys);
      const ticks = interval(everyMs, scheduler).pipe(filter(() => newest.release()));
      return collect$(source, newest, () => ticks);
    });
};

type EventOf<E> = Extract<E, ClusterLifecycleEvent>;

class NewestValues<E, K> extends BatchCollector<EventOf<E> | Conflated<ItemOf<E>, K>> {
  readonly #key: (item: ItemOf<E>) => K;
  readonly #maxKeys: number;
  #waiting = new Map<K, { value: ItemOf<E>; count: number }>();
  #watermark: EventOf<E> | undefined;

  constructor(key: (item: ItemOf<E>) => K, maxKeys: number) {
    super();
    this.#key = key;
    this.#maxKeys = maxKeys;
  }

  add(event: unknown): boolean {
    if (!isLifecycle(event)) return this.#addItem(event as ItemOf<E>);
    if (event.type === 'watermark' && this.#waiting.size > 0) {
      this.#watermark = event as EventOf<E>;
      return false;
    }
    this.release();
    this.ready.push(event as EventOf<E>);
    return true;
  }

  override end(): void {
    this.release();
  }

  /** Ends the period. Returns whether there's something to emit. */
  release(): boolean {
    for (const [key, { value, count }] of this.#waiting) this.ready.push(new Conflated(key, value, count));
    this.#waiting = new Map();
    if (this.#watermark !== undefined) this.ready.push(this.#watermark);
    this.#watermark = undefined;
    return this.ready.length > 0;
  }

  #addItem(item: ItemOf<E>): boolean {
    const key = this.#key(item);
    const count = (this.#waiting.get(key)?.count ?? 0) + 1;
    this.#waiting.set(key, { value: withOwnBytes(item), count });
    return this.#waiting.size >= this.#maxKeys && this.release();
  }
}
