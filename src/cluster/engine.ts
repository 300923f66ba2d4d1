import { concat, NEVER, Observable, of, Subject } from 'rxjs';

/** A version of the key. */
export interface StoredKey {
  readonly value: string;
  /** Grows with each write of the key. */
  readonly revision: number;
}

/**
 * A failure of an engine that belongs to no call: a message that it refused to publish, or why it cannot be reached.
 */
export interface EngineFailure {
  readonly operation: 'connect' | 'publish';
  /** Its message goes to the log of the operator. */
  readonly error: unknown;
}

/**
 * The answer to a request, or the reason why there is none. `no-responders`: no replica receives requests for this
 * subject.
 */
export type Reply = { readonly type: 'reply'; readonly data: Uint8Array } | { readonly type: 'no-responders' };

/**
 * What a cluster needs from a message broker: one value with compare-and-set, and messages that may be lost.
 *
 * Compare-and-set must be linearizable: all writes have one order, and a read returns the newest write before it.
 * Messages of one publisher to one subject must arrive in order. No message needs to be stored.
 */
export interface ClusterEngine {
  /**
   * Emits whether the engine can be reached: at once, and on each change. Completes, or errors with the reason, when
   * the connection was closed for good: this ends the replica.
   */
  readonly connected$: Observable<boolean>;
  /** Emits failures that belong to no call. @defaultValue none */
  readonly failures$?: Observable<EngineFailure> | undefined;
  /**
   * Returns the newest version of a key; `undefined` if the key does not exist. Rejects if the engine did not answer.
   */
  read(key: string): Promise<StoredKey | undefined>;
  /**
   * Writes a key if its revision is the expected one.
   *
   * @param expected - the revision to replace; `undefined` creates the key
   * @returns the new revision; `undefined` if the key has another revision. Rejects if the result is unknown: the write
   * may still happen
   */
  compareAndSet(key: string, value: string, expected: number | undefined): Promise<number | undefined>;
  /**
   * Returns the size limit of a message in bytes that the server announces now; `undefined` without one. Without it,
   * `batchBytes` is the limit.
   */
  maxMessageBytes?(): number | undefined;
  /**
   * Sends a message to all subscribers of a subject. Does nothing while the engine cannot be reached. Throws, or
   * returns a promise that rejects, if the engine refuses the message. That message is lost, and followers see by the
   * numbers of the next one how much they missed.
   */
  publish(subject: string, data: Uint8Array): unknown;
  /**
   * Emits the messages to a subject while there is a subscriber, also those of this replica. The bytes must not change
   * afterwards. Errors if the engine refuses the subscription: this ends the replica.
   */
  subscribe(subject: string): Observable<Uint8Array>;
  /** Sends a request to a replica that responds. Rejects if no answer arrives in time. */
  request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Reply>;
  /** Answers the requests to a subject while there is a subscription. The Observable emits nothing. */
  respond(subject: string, answer: (data: Uint8Array) => Uint8Array): Observable<never>;
}

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
