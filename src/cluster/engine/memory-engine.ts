import { NEVER, Observable, of, Subject, concat } from 'rxjs';
import type { ClusterEngine, Reply, StoredKey } from './cluster-engine.js';

/**
 * Creates an engine for replicas of one process. For tests, and to try a cluster without a broker.
 *
 * Pass the same engine to all replicas. Messages arrive in a later microtask, in order, and are never lost.
 *
 * @example
 * ```ts
 * import { createFeedCluster, memoryEngine } from 'rx-trade-feed/cluster';
 *
 * const engine = memoryEngine();
 * const first = createFeedCluster('market', { engine, account: 'main' });
 * const second = createFeedCluster('market', { engine, account: 'main' });
 * ```
 */
export const memoryEngine = (): ClusterEngine => {
  const keys = new Map<string, StoredKey>();
  const subjects = new Map<string, Subject<Uint8Array>>();
  const responders = new Map<string, Set<(data: Uint8Array) => Uint8Array>>();
  // Revisions of all keys are one sequence, so that a key that was deleted never has the same revision again.
  let revisions = 0;

  const subjectOf = (name: string): Subject<Uint8Array> => entryOf(subjects, name, () => new Subject());

  return {
    connected$: concat(of(true), NEVER),
    read: async (key) => Promise.resolve(keys.get(key)),
    compareAndSet: async (key, value, expected) => {
      await Promise.resolve();
      if (keys.get(key)?.revision !== expected) return undefined;
      revisions += 1;
      keys.set(key, { value, revision: revisions });
      return revisions;
    },
    publish: (subject, data) => queueMicrotask(() => subjects.get(subject)?.next(data)),
    subscribe: (subject) => subjectOf(subject).asObservable(),
    request: async (subject, data): Promise<Reply> => {
      await Promise.resolve();
      const [answer] = responders.get(subject) ?? [];
      return answer === undefined ? { type: 'no-responders' } : { type: 'reply', data: answer(data) };
    },
    respond: (subject, answer) =>
      new Observable<never>(() => {
        const answers = entryOf(responders, subject, () => new Set());
        answers.add(answer);
        return () => answers.delete(answer);
      }),
  };
};

const entryOf = <T>(map: Map<string, T>, name: string, create: () => T): T => {
  const entry = map.get(name) ?? create();
  map.set(name, entry);
  return entry;
};
