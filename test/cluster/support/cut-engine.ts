import { BehaviorSubject, filter, NEVER, switchMap } from 'rxjs';
import type { ClusterEngine } from '../../../src/cluster/engine.js';

/** An engine whose connection can be cut: the replica knows then that the engine is away. */
export type CutEngine = ReturnType<typeof cutEngine>;

/** Returns the connection of one replica to an engine. */
export const cutEngine = (engine: ClusterEngine) => {
  const isConnected$ = new BehaviorSubject(true);
  const isConnected = (): boolean => isConnected$.value;
  const call = async <T>(start: () => Promise<T>): Promise<T> => {
    if (!isConnected()) throw new Error('The engine is away.');
    const result = await start();
    return isConnected() ? result : new Promise<T>(() => undefined);
  };
  return {
    connected$: isConnected$,
    read: (key) => call(() => engine.read(key)),
    compareAndSet: (key, value, expected) => call(() => engine.compareAndSet(key, value, expected)),
    publish: (subject, data) => (isConnected() ? engine.publish(subject, data) : undefined),
    subscribe: (subject) => engine.subscribe(subject).pipe(filter(isConnected)),
    request: (subject, data, timeoutMs) => call(() => engine.request(subject, data, timeoutMs)),
    respond: (subject, answer) =>
      isConnected$.pipe(switchMap((isGood) => (isGood ? engine.respond(subject, answer) : NEVER))),
    cut: () => isConnected$.next(false),
    restore: () => isConnected$.next(true),
  } satisfies ClusterEngine & { readonly cut: () => void; readonly restore: () => void };
};
