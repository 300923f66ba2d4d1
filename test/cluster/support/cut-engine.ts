import { BehaviorSubject, combineLatest, filter, map, merge, NEVER, Subject, switchMap } from 'rxjs';
import type { ClusterEngine } from '../../../src/cluster/engine.js';
import type { LineStore, Stored } from '../../../src/log/line-store.js';

/** An engine whose connection can be cut: the replica knows then that the engine is away. */
export type CutEngine = ReturnType<typeof cutEngine>;

/** Returns the connection of one replica to an engine. */
export const cutEngine = (engine: ClusterEngine, hasStore = false) => {
  const isConnected$ = new BehaviorSubject(true);
  const isConnected = (): boolean => isConnected$.value;
  const call = async <T>(start: () => Promise<T>): Promise<T> => {
    if (!isConnected()) throw new Error('The engine is away.');
    const result = await start();
    return isConnected() ? result : new Promise<T>(() => undefined);
  };
  return {
    connected$: combineLatest([engine.connected$, isConnected$]).pipe(
      map((areConnected) => areConnected.every(Boolean)),
    ),
    read: (key) => call(() => engine.read(key)),
    compareAndSet: (key, value, expected) => call(() => engine.compareAndSet(key, value, expected)),
    publish: (subject, data) => (isConnected() ? engine.publish(subject, data) : undefined),
    subscribe: (subject) => engine.subscribe(subject).pipe(filter(isConnected)),
    request: (subject, data, timeoutMs) => call(() => engine.request(subject, data, timeoutMs)),
    respond: (subject, answer) =>
      isConnected$.pipe(switchMap((isGood) => (isGood ? engine.respond(subject, answer) : NEVER))),
    // A store that isn't reached doesn't answer, and publishes nothing.
    ...(hasStore && engine.line && { line: (...names: Names) => cutLine(engine.line!(...names), isConnected) }),
    cut: () => isConnected$.next(false),
    restore: () => isConnected$.next(true),
  } satisfies ClusterEngine & { readonly cut: () => void; readonly restore: () => void };
};

type Names = Parameters<NonNullable<ClusterEngine['line']>>;

const cutLine = (store: LineStore, isConnected: () => boolean): LineStore => {
  const call = async <T>(start: () => Promise<T>): Promise<T> => {
    if (!isConnected()) throw new Error('The engine is away.');
    return start();
  };
  const refused$ = new Subject<Stored>();
  return {
    stored$: merge(store.stored$, refused$),
    end: () => call(() => store.end()),
    append: (head, bytes, only) => {
      if (isConnected()) store.append(head, bytes, only);
      else refused$.next({ refused: 'away', error: new Error('The engine is away.') });
    },
    read: (...range) => store.read(...range),
    last: () => call(() => store.last()),
    exists: () => call(() => store.exists()),
    since: (at) => call(() => store.since(at)),
    extent: () => call(() => store.extent()),
  };
};
