import { isObservable, Observable, type Observer } from 'rxjs';
import { aFunction, checkRequired } from '../protocol/validate.js';
import { untilAborted } from './lifetime.js';

/** What the producer of a platform Observable calls. The signal aborts after the last subscriber or at the end. */
export type PlatformSubscriber<T> = Observer<T> & { readonly signal: AbortSignal };

/** The Observable of browsers and of RxJS 9: `subscribe` returns nothing, and a signal unsubscribes. */
export interface PlatformObservable<T> {
  /** Subscribes until the signal aborts. */
  readonly subscribe: (observer: Observer<T>, options: { signal: AbortSignal }) => void;
}

/** The class `Observable` of a browser or of RxJS 9, or its `ColdObservable`. `O` is its instance. */
export type ObservableConstructor<T, O> = new (producer: (subscriber: PlatformSubscriber<T>) => void) => O;

/**
 * Turns an Observable of RxJS 7 into one of the platform, whose `Observable.from` refuses it.
 *
 * Subscribers of an `Observable` share one connection until the last one leaves. Those of a `ColdObservable` open one
 * each and kick each other out. Emits, errors and completes with the source. Memory: the subscribers.
 *
 * @param Kind - the class, which decides how many connections there are
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { type Frame, tradeFeed$ } from 'rx-trade-feed';
 * import {
 *   type ObservableConstructor,
 *   type PlatformObservable,
 *   toPlatform,
 * } from 'rx-trade-feed/interop';
 *
 * declare const Observable: ObservableConstructor<
 *   Frame,
 *   PlatformObservable<Frame> & { first(): Promise<Frame> }
 * >;
 * console.log(
 *   (await toPlatform(Observable)(tradeFeed$('market')).first()).text(),
 * );
 * ```
 */
export const toPlatform = <T, O>(Kind: ObservableConstructor<T, O>): ((source: Observable<T>) => O) => {
  checkRequired({ Kind }, { Kind: { ...aFunction, allowed: 'the class Observable, or ColdObservable of RxJS 9' } });
  return (source) =>
    new Kind((subscriber) => {
      source.pipe(untilAborted(subscriber.signal)).subscribe(bound(subscriber));
    });
};

/**
 * Turns an Observable of the platform into one of RxJS 7.
 *
 * Emits, errors and completes with the source. Unsubscribing aborts. Returns an Observable of RxJS 7 unchanged.
 * @example
 * ```ts
 * import { fromPlatform, type PlatformObservable } from 'rx-trade-feed/interop';
 *
 * declare const clicks: PlatformObservable<unknown>; // button.when('click')
 * fromPlatform(clicks).subscribe(() => console.log('clicked'));
 * ```
 */
export const fromPlatform = <T>(source: PlatformObservable<T>): Observable<T> => {
  if (isObservable(source)) return source as Observable<T>;
  return new Observable((subscriber) => {
    const controller = new AbortController();
    // Comes before `subscribe`, because a source may emit synchronously and never stop.
    subscriber.add(() => controller.abort());
    source.subscribe(bound(subscriber), { signal: controller.signal });
  });
};

// The platform calls these functions without `this`.
const bound = <T>(observer: Observer<T>): Observer<T> => ({
  next: (value) => observer.next(value),
  error: (error: unknown) => observer.error(error),
  complete: () => observer.complete(),
});
