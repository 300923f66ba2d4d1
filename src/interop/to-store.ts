import { catchError, concatWith, finalize, NEVER, type Observable, of, tap } from 'rxjs';
import { contextHere, shareIn } from '../operators/items/async-context.js';

/** What `useSyncExternalStore` of React takes. */
export interface FeedStore<T> {
  /** Calls a listener after each change. Returns a function that removes it. */
  readonly subscribe: (listener: () => void) => () => void;
  /** Returns the newest value. After an error it throws that, until the last listener has left. */
  readonly getSnapshot: () => T;
}

/**
 * Keeps the newest value of an Observable for React and others that read a value and listen for changes.
 *
 * Subscribes for its first listener, unsubscribes after its last one, and keeps the value. Each value calls all
 * listeners: pass a conflated or sampled feed. Memory: one value.
 * @param initial - the value until the source emits
 * @example
 * ```ts
 * import { connectionStatus, tradeFeedEvents$ } from 'rx-trade-feed';
 * import { toStore } from 'rx-trade-feed/interop';
 *
 * const store = toStore(undefined)(
 *   tradeFeedEvents$('market').pipe(connectionStatus()),
 * );
 * // In React: useSyncExternalStore
 * store.subscribe(() => console.log(store.getSnapshot()?.state));
 * ```
 */
export const toStore =
  <I>(initial: I): (<T>(source: Observable<T>) => FeedStore<I | T>) =>
  <T>(source: Observable<T>) => {
    let state: { readonly value: I | T; readonly failure?: { readonly error: unknown } } = { value: initial };
    const changes$ = source.pipe(
      tap((value) => (state = { value })),
      catchError((error: unknown) => of((state = { ...state, failure: { error } }))),
      // A listener that joins after the end mustn't subscribe again.
      concatWith(NEVER),
      // Forgets the error but keeps the value, for a page that tries again.
      finalize(() => (state = { value: state.value })),
      shareIn(contextHere()),
    );
    return {
      subscribe: (listener) => {
        const subscription = changes$.subscribe(() => listener());
        return () => subscription.unsubscribe();
      },
      getSnapshot: () => {
        if (state.failure) throw state.failure.error;
        return state.value;
      },
    };
  };
