import { filter, map, type MonoTypeOperatorFunction, type Observable, type OperatorFunction } from 'rxjs';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import { aFunction, checkRequired } from '../protocol/validate.js';
import { isLifecycle, type ItemOf, type NotInferred } from './items/item.js';

/**
 * Maps the values of a feed, such as frames or what {@link decodeWith} emits, and leaves its events alone.
 *
 * Emits whatever `fn` returns, even `undefined`. Errors when `fn` throws, as `map` does. Completes and errors with the
 * source. Memory: none. Windows know the time of a frame and of a {@link Decoded}. Any other value counts when it
 * arrives, so keep the frame if the time matters, as below. If a value has the `type` and time of an event, it's taken
 * for one.
 * ```ts
 * // source                 --1--opened--2--gap--|
 * // mapValues(n => n * 10) --10-opened--20-gap--|
 * ```
 *
 * @param fn - receives a frame, or a value that an operator created
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import * as t from 'io-ts';
 * import { of } from 'rxjs';
 * import { Decoded, decodeWith, Frame, mapValues } from 'rx-trade-feed';
 *
 * of(new Frame('market', Buffer.from('{"price":"3000"}'), false, Date.now(), 1))
 *   .pipe(
 *     decodeWith(t.type({ price: t.string })),
 *     mapValues(({ value, frame }) => new Decoded(Number(value.price), frame)),
 *   )
 *   .subscribe(({ value }) => console.log(value)); // 3000
 * ```
 */
export const mapValues = <E, R>(
  fn: (value: ItemOf<NotInferred<E>>) => R,
): OperatorFunction<E, Extract<NotInferred<E>, ClusterLifecycleEvent> | R> => {
  checkRequired({ fn }, { fn: aFunction });
  return (source) =>
    source.pipe(
      map((event) =>
        isLifecycle(event)
          ? (event as Extract<NotInferred<E>, ClusterLifecycleEvent>)
          : fn(event as ItemOf<NotInferred<E>>),
      ),
    );
};

/**
 * Drops the values of a feed that a predicate refuses, and leaves its events alone.
 *
 * Unlike `filter`, it keeps the events that windows and {@link gaps} need. Errors when `predicate` throws. Completes
 * and errors with the source. Memory: none. To filter frames before parsing them, use {@link whereField}.
 * ```ts
 * // source                     --1--opened--2--gap--3--|
 * // filterValues(n => n > 1)   -----opened--2--gap--3--|
 * ```
 *
 * @param predicate - receives a frame, or a value that an operator created. A type guard narrows the type
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import * as t from 'io-ts';
 * import { from } from 'rxjs';
 * import { decodeWith, filterValues, Frame } from 'rx-trade-feed';
 *
 * const frame = (text: string) =>
 *   new Frame('market', Buffer.from(text), false, Date.now(), 1);
 *
 * from([frame('{"price":3000}'), frame('{"price":10}')])
 *   .pipe(
 *     decodeWith(t.type({ price: t.number })),
 *     filterValues(({ value }) => value.price > 100),
 *   )
 *   .subscribe(({ value }) => console.log(value.price)); // 3000
 * ```
 */
export function filterValues<E, V extends ItemOf<NotInferred<E>>>(
  predicate: (value: ItemOf<NotInferred<E>>) => value is V,
): OperatorFunction<E, Extract<NotInferred<E>, ClusterLifecycleEvent> | V>;
export function filterValues<E>(predicate: (value: ItemOf<NotInferred<E>>) => boolean): MonoTypeOperatorFunction<E>;
export function filterValues(predicate: (value: unknown) => boolean) {
  checkRequired({ predicate }, { predicate: aFunction });
  return (source: Observable<unknown>) => source.pipe(filter((event) => isLifecycle(event) || predicate(event)));
}
