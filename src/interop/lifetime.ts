import {
  defer,
  fromEvent,
  type MonoTypeOperatorFunction,
  type Observable,
  type Observer,
  of,
  share,
  takeUntil,
} from 'rxjs';

/**
 * Completes when a signal aborts: `subscribe` of RxJS 7 ignores `{ signal }`.
 *
 * If the signal has already aborted, it doesn't subscribe, so it requests no ticket. Errors with the source.
 * All its subscribers share one listener on the signal, which the last one removes. Memory: none.
 *
 * @example
 * ```ts
 * import { tradeFeed$ } from 'rx-trade-feed';
 * import { untilAborted } from 'rx-trade-feed/interop';
 *
 * tradeFeed$('market')
 *   .pipe(untilAborted(AbortSignal.timeout(500)))
 *   .subscribe({ complete: () => console.log('over') });
 * ```
 */
export const untilAborted = <T>(signal: AbortSignal): MonoTypeOperatorFunction<T> =>
  takeUntil(defer(() => (signal.aborted ? of(signal) : abortOf(signal))));

const aborts = new WeakMap<AbortSignal, Observable<unknown>>();

// All share one listener, because Node warns of a leak above ten. It's there while anybody is subscribed.
const abortOf = (signal: AbortSignal): Observable<unknown> => {
  const abort$ = aborts.get(signal) ?? fromEvent(signal, 'abort').pipe(share());
  aborts.set(signal, abort$);
  return abort$;
};

/**
 * Subscribes until the end of a block: `using` refuses a Subscription of RxJS 7.
 * @param next - receives the values, or an observer: without its `error`, an error is unhandled and ends a Node process
 * @example
 * ```ts
 * import { tradeFeed$ } from 'rx-trade-feed';
 * import { subscribed } from 'rx-trade-feed/interop';
 *
 * using _ = subscribed(tradeFeed$('market'), (frame) =>
 *   console.log(frame.text()),
 * );
 * await new Promise((resolve) => setTimeout(resolve, 10_000));
 * ```
 */
export const subscribed = <T>(
  source: Observable<T>,
  next?: ((value: T) => void) | Partial<Observer<T>>,
): Disposable => {
  const subscription = source.subscribe(next);
  return { [Symbol.dispose]: () => subscription.unsubscribe() };
};
