import { BehaviorSubject, filter, NEVER, Observable, switchMap } from 'rxjs';
import type { ClusterEngine } from '../../../src/cluster/engine.js';

/** An engine whose connection can be cut. */
export interface CutEngine extends ClusterEngine {
  /** `refused`: the replica knows that the engine is away. `black-hole`: nothing arrives, and it doesn't know why. */
  readonly cut: (how: 'refused' | 'black-hole') => void;
  readonly restore: () => void;
}

type Link = 'good' | 'refused' | 'black-hole';

/** Returns the connection of one replica to an engine. */
export const cutEngine = (engine: ClusterEngine): CutEngine => {
  const link$ = new BehaviorSubject<Link>('good');
  const whileGood = <T>(source$: Observable<T>): Observable<T> => source$.pipe(filter(() => link$.value === 'good'));
  const call = async <T>(start: () => Promise<T>): Promise<T> => {
    if (link$.value === 'refused') throw new Error('The engine is away.');
    const result = link$.value === 'good' ? await start() : undefined;
    // A black hole also swallows the results of earlier calls.
    return link$.value === 'good' ? (result as T) : new Promise<T>(() => undefined);
  };
  return {
    connected$: new Observable((subscriber) => link$.subscribe((link) => subscriber.next(link !== 'refused'))),
    read: (key) => call(() => engine.read(key)),
    compareAndSet: (key, value, expected) => call(() => engine.compareAndSet(key, value, expected)),
    publish: (subject, data) => (link$.value === 'good' ? engine.publish(subject, data) : undefined),
    subscribe: (subject) => whileGood(engine.subscribe(subject)),
    request: (subject, data, timeoutMs) => call(() => engine.request(subject, data, timeoutMs)),
    // The engine keeps a replica's subscription in a black hole, so it answers too late.
    respond: (subject, answer) =>
      link$.pipe(
        switchMap((link) => {
          if (link === 'refused') return NEVER;
          return engine.respond(subject, link === 'good' ? answer : () => new Uint8Array());
        }),
      ),
    cut: (how) => link$.next(how),
    restore: () => link$.next('good'),
  };
};
