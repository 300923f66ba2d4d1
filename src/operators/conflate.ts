import { asyncScheduler, defer, filter, interval, type OperatorFunction, type SchedulerLike } from 'rxjs';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import { aFunction, aScheduler, checkRequired, positiveCount, timerMs, validated } from '../protocol/rules.js';
import { Conflated } from './items/conflated.js';
import { isLifecycle, type ItemOf, type NotInferred } from './items/item.js';
import { withOwnBytes } from './own-bytes.js';
import { collect$, type Collector } from './timing/collect.js';

/** The options of {@link conflate}. */
export interface ConflateOptions {
  /** The maximum number of keys in a period. When it is reached, all values are emitted at once. @defaultValue 100 000 */
  readonly maxKeys?: number | undefined;
  /** The clock of the periods. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Emits the newest value of each key once per period, with the number of values of the key in that period.
 *
 * Conflation as in market data: a consumer of the latest state receives at most one value per key and period. No value waits longer than a
 * period. Each value counts in exactly one {@link Conflated}. The first period begins with the subscription. At the end of a period, the keys are
 * emitted in the order in which they first arrived; a period without values emits nothing.
 *
 * Lifecycle events such as `gap` keep their place: waiting values are emitted before them. A watermark waits with the values before it.
 * When the source completes or errors, waiting values are emitted first. Errors when `key` throws.
 *
 * Memory: one value for each key of the period, at most `maxKeys`.
 *
 * ```ts
 * // - is 100 ms; a, b, c: values of one key; p, q: of another; g: a gap
 * // source              -a-p-b-------c-g-----q--------
 * // everyMs: 1000       ----------U----V--------------W
 * // U: b (2 values) and p; V: c, and then g; W: q
 * ```
 *
 * @param key - returns the key of a value, such as its symbol; keys are compared as by a `Map`. Called once per value
 * @param everyMs - the period in ms
 * @param options - see {@link ConflateOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { conflate, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * // Ten times a second: the newest frame of each connection.
 * tradeFeedEvents$('market')
 *   .pipe(conflate((frame) => frame.connection, 100))
 *   .subscribe((event) => {
 *     if (event.type === 'conflated') console.log(event.value.text(), `and ${event.count - 1} older ones`);
 *   });
 * ```
 */
export const conflate = <E, K>(
  key: (item: ItemOf<NotInferred<E>>) => K,
  everyMs: number,
  options: ConflateOptions = {},
): OperatorFunction<E, Extract<NotInferred<E>, ClusterLifecycleEvent> | Conflated<ItemOf<NotInferred<E>>, K>> => {
  checkRequired({ key, everyMs }, { key: aFunction, everyMs: timerMs });
  const { maxKeys, scheduler } = {
    ...defaults,
    ...validated(options, { maxKeys: positiveCount, scheduler: aScheduler }),
  };
  return (source) =>
    defer(() => {
      const newest = newestOf(key, maxKeys);
      const ticks = interval(everyMs, scheduler).pipe(filter(() => newest.release()));
      return collect$(source, newest, () => ticks);
    });
};

const defaults = Object.freeze({ maxKeys: 100_000, scheduler: asyncScheduler });

type Out<E, K> = Extract<E, ClusterLifecycleEvent> | Conflated<ItemOf<E>, K>;

/** Collects the newest value of each key. */
interface Newest<E, K> extends Collector<E, Out<E, K>> {
  /** Ends the period. Returns whether there is something to emit. */
  release(): boolean;
}

const newestOf = <E, K>(key: (item: ItemOf<E>) => K, maxKeys: number): Newest<E, K> => {
  let waiting = new Map<K, Waiting<ItemOf<E>>>();
  let ready: Out<E, K>[] = [];
  let watermark: Out<E, K> | undefined;

  const release = (): boolean => {
    for (const [itemKey, { value, count }] of waiting) ready.push(new Conflated(itemKey, value, count));
    waiting = new Map();
    if (watermark !== undefined) ready.push(watermark);
    watermark = undefined;
    return ready.length > 0;
  };

  return {
    release,
    end: release,
    add: (event) => {
      if (isLifecycle(event)) {
        if (event.type === 'watermark' && waiting.size > 0) {
          watermark = event as Extract<E, ClusterLifecycleEvent>;
          return false;
        }
        release();
        ready.push(event as Extract<E, ClusterLifecycleEvent>);
        return true;
      }
      const item = event as ItemOf<E>;
      const itemKey = key(item);
      const value = withOwnBytes(item);
      const known = waiting.get(itemKey);
      if (known !== undefined) {
        known.value = value;
        known.count += 1;
        return false;
      }
      waiting.set(itemKey, { value, count: 1 });
      return waiting.size >= maxKeys && release();
    },
    *drain() {
      const batch = ready;
      ready = [];
      yield* batch;
    },
  };
};

/** The newest value of a key, and the number of values of the key in this period. */
interface Waiting<T> {
  value: T;
  count: number;
}
