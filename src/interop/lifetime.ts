import { defer, fromEvent, type MonoTypeOperatorFunction, type Observable, type Observer, of, takeUntil } from 'rxjs';

/**
 * Completes when a signal aborts: `subscribe` of RxJS 7 ignores `{ signal }`.
 *
 * If the signal has already aborted, it doesn't subscribe, so it requests no ticket. Errors with the source.
 * Leaves no listener on the signal. Memory: none.
 *
 * @example
 * ```ts
 * import { tradeFeed$ } from 'rx-trade-feed';
 * import { untilAborted } from 'rx-trade-feed/interop';
 *
 * tradeFeed$('market').pipe(untilAborted(AbortSignal.timeout(500))).subscribe({ complete: () => console.log('over') });
 * ```
 */
export const untilAborted = <T>(signal: AbortSignal): MonoTypeOperatorFunction<T> =>
  takeUntil(defer(() => (signal.aborted ? of(signal) : fromEvent(signal, 'abort'))));

/**
 * Subscribes until the end of a block: `using` refuses a Subscription of RxJS 7.
 * @param next - receives the values, or an observer: without its `error`, an error is unhandled and ends a Node process
 * @example
 * ```ts
 * import { tradeFeed$ } from 'rx-trade-feed';
 * import { subscribed } from 'rx-trade-feed/interop';
 *
 * using _ = subscribed(tradeFeed$('market'), (frame) => console.log(frame.text()));
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
