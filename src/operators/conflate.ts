import { asyncScheduler, defer, filter, interval, type OperatorFunction, type SchedulerLike } from 'rxjs';
import type { LifecycleEvent } from '../protocol/event.js';
import {
  aFunction,
  aScheduler,
  checkRequired,
  MAX_TIMER_MS,
  positiveCount,
  type Rule,
  validated,
} from '../protocol/rules.js';
import { Conflated } from './items/conflated.js';
import type { Settled } from './window/feed-window.js';
import { type Gatherer, gathered } from './timing/collect.js';
import { type Held, Holding } from './memory/holding.js';
import { isLifecycle, type ItemOf } from './items/item.js';

/** How `conflate` is bounded and timed. */
export interface ConflateOptions {
  /** The most keys that wait for the end of a period. When there are as many, all are emitted at once. @defaultValue 100 000 */
  readonly maxKeys?: number | undefined;
  /** Keeps the period. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Emits the newest value of each key, once a period, with the number of values that it stands for.
 *
 * Conflation in the meaning of market data: a consumer that wants the latest state gets at most one value a key and period, and nothing
 * newer is held back for longer than that. Every value is counted in exactly one {@link Conflated}. Periods begin with the subscription; a
 * period emits its keys in the order in which they first came, and nothing when none came. What happens around the frames (`gap`
 * and the like) passes through in its place: what waits is emitted before it. A watermark waits with the values that it covers.
 * When the source completes or errors, it emits what waits first, then does the same. Errors when `key` throws.
 *
 * Holds one value for each key of the period, at most `maxKeys`.
 *
 * ```ts
 * // - is 100 ms; a, b, c: values of one key; p, q: of another; g: a gap
 * // source              -a-p-b-------c-g-----q--------
 * // everyMs: 1000       ----------U----V--------------W
 * // U: b, which stands for 2, and p; V: c, and then g; W: q
 * ```
 *
 * @param key - tells what a value is a value of, compared as by a `Map`; called once for each value
 * @param everyMs - the period in ms
 * @param options - see {@link ConflateOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { conflate, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * // Of each connection the newest frame, ten times a second.
 * tradeFeedEvents$('market')
 *   .pipe(conflate((frame) => frame.connection, 100))
 *   .subscribe((event) => {
 *     if (event.type === 'conflated') console.log(event.value.text(), `and ${event.count - 1} older ones`);
 *   });
 * ```
 */
export const conflate = <E, K>(
  key: (item: ItemOf<Settled<E>>) => K,
  everyMs: number,
  options: ConflateOptions = {},
): OperatorFunction<E, Extract<Settled<E>, LifecycleEvent> | Conflated<ItemOf<Settled<E>>, K>> => {
  checkRequired({ key, everyMs }, { key: aFunction, everyMs: aPeriod });
  const { maxKeys, scheduler } = {
    ...defaults,
    ...validated(options, { maxKeys: positiveCount, scheduler: aScheduler }),
  };
  return (source) =>
    defer(() => {
      const newest = newestOf(key, maxKeys);
      const ticks = interval(everyMs, scheduler).pipe(filter(() => newest.release()));
      return gathered(source, newest, () => ticks);
    });
};

const defaults = Object.freeze({ maxKeys: 100_000, scheduler: asyncScheduler });

const aPeriod: Rule = {
  allowed: `a number of ms, above 0 and at most ${MAX_TIMER_MS}`,
  is: (v) => typeof v === 'number' && v > 0 && v <= MAX_TIMER_MS,
};

type Out<E, K> = Extract<E, LifecycleEvent> | Conflated<ItemOf<E>, K>;

/** Gathers the newest value of each key. */
interface Newest<E, K> extends Gatherer<E, Out<E, K>> {
  /** The period is over. Says whether something came in it. */
  release(): boolean;
}

const newestOf = <E, K>(key: (item: ItemOf<E>) => K, maxKeys: number): Newest<E, K> => {
  const holding = new Holding<ItemOf<E>>();
  let waiting = new Map<K, Waiting<ItemOf<E>>>();
  let ready: Out<E, K>[] = [];
  let watermark: Out<E, K> | undefined;

  const release = (): boolean => {
    holding.settle();
    for (const [itsKey, { held, count }] of waiting) ready.push(new Conflated(itsKey, held.value, count));
    holding.clear();
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
          watermark = event as Extract<E, LifecycleEvent>;
          return false;
        }
        release();
        ready.push(event as Extract<E, LifecycleEvent>);
        return true;
      }
      const item = event as ItemOf<E>;
      const itsKey = key(item);
      const held = holding.hold(item);
      const known = waiting.get(itsKey);
      if (known !== undefined) {
        holding.release(known.held);
        known.held = held;
        known.count += 1;
        return false;
      }
      waiting.set(itsKey, { held, count: 1 });
      return waiting.size >= maxKeys && release();
    },
    *closed() {
      const batch = ready;
      ready = [];
      yield* batch;
    },
  };
};

/** The newest value of a key. */
interface Waiting<T> {
  held: Held<T>;
  count: number;
}
