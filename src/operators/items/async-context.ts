// In: subscribers from different requests. Out: shared work in the async context of its creator, and each subscriber's
// callbacks in the subscriber's own: what `AsyncLocalStorage` keeps, such as the request of a logger or a span.
// Never: a static import of Node, because pages import these operators too. There they do nothing.
import { from, type MonoTypeOperatorFunction, Observable, of, share, type ShareConfig, Subscriber } from 'rxjs';

/** What every `AsyncLocalStorage` of the process keeps at one place. */
export type AsyncContext = NonNullable<ReturnType<typeof contextHere>>;

/** Returns the context of the caller; `undefined` outside Node. */
export const contextHere = () => {
  const { process } = globalThis as { readonly process?: Partial<NodeJS.Process> };
  const hooks = process?.getBuiltinModule?.('node:async_hooks');
  return hooks && new hooks.AsyncResource('rx-trade-feed');
};

/** Calls a function in a context. What it starts, such as timers and sockets, belongs to that context as well. */
export const runIn = <T>(context: AsyncContext | undefined, act: () => T): T =>
  context === undefined ? act() : context.runInAsyncScope(act);

/**
 * Delivers values, errors and the completion to each subscriber in the context in which it has subscribed, whoever
 * causes them.
 */
export const inOwnContext = <T>(): MonoTypeOperatorFunction<T> => inContextOf(undefined);

/**
 * Shares like `share` of RxJS, for subscribers from different requests. The source belongs to the context of its owner.
 * In that of its first subscriber, the request would live for as long as the source.
 *
 * @param home - the owner's context
 */
export const shareIn = <T>(
  home: AsyncContext | undefined,
  config: ShareConfig<T> = {},
): MonoTypeOperatorFunction<T> => {
  if (home === undefined) return share(config);
  const { resetOnRefCountZero: reset = true } = config;
  // The source must not end in the context of the last subscriber either.
  const resetOnRefCountZero = () =>
    new Observable((subscriber) => {
      const reset$ = typeof reset === 'function' ? from(reset()) : of(reset);
      runIn(home, () => reset$.subscribe(subscriber));
    });
  return (source) => source.pipe(share({ ...config, resetOnRefCountZero }), inContextOf(home));
};

/** @param home - where to subscribe to the source */
const inContextOf =
  <T>(home: AsyncContext | undefined): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      const own = contextHere();
      const isSame = own === undefined || areEmpty(home, own);
      const observer = isSame ? subscriber : new InContext(subscriber, own);
      runIn(isSame ? undefined : home, () => source.subscribe(observer));
    });

/** Returns the context of the caller for work that runs in another one; `undefined` if it makes no difference. */
export const contextOutside = (home: AsyncContext | undefined): AsyncContext | undefined => {
  const own = contextHere();
  return own === undefined || areEmpty(home, own) ? undefined : own;
};

// Entering a context takes 25 ns, twice as long as `share` takes for a frame, and most programs have none.
const areEmpty = (home: AsyncContext | undefined, own: AsyncContext): boolean =>
  home !== undefined && isEmpty(home) && isEmpty(own);

/** Enters the subscriber's context for each call. */
class InContext<T> extends Subscriber<T> {
  readonly #subscriber: Subscriber<T>;
  readonly #own: AsyncContext;

  constructor(subscriber: Subscriber<T>, own: AsyncContext) {
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- no observer can leave a source that emits at once
    super(subscriber);
    this.#subscriber = subscriber;
    this.#own = own;
  }

  protected override _next(value: T): void {
    this.#own.runInAsyncScope(deliver<T>, undefined, this.#subscriber, value);
  }

  protected override _error(error: unknown): void {
    this.#own.runInAsyncScope(() => super._error(error));
  }

  protected override _complete(): void {
    this.#own.runInAsyncScope(() => super._complete());
  }
}

// Not a closure, because it runs for each frame.
const deliver = <T>(subscriber: Subscriber<T>, value: T): void => subscriber.next(value);

/**
 * Returns whether no storage has a value in a context. Node keeps the values, or a map of them, in properties of the
 * resource, next to its two ids. If another runtime has them elsewhere, no context counts as empty.
 */
const isEmpty = (context: AsyncContext): boolean => {
  const keys = Object.getOwnPropertySymbols(context);
  const stores = keys.filter(({ description = '' }) => !description.includes('async_id'));
  return stores.length < keys.length && stores.every((key) => Reflect.get(context, key) === undefined);
};
