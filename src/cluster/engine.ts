import { concat, filter, map, NEVER, Observable, of, Subject } from 'rxjs';
import { type LineSpec, type LineStore, liveSubject, retention } from '../log/line-store.js';
import { type LineMemory, memoryLine } from '../log/memory-line.js';

/** A version of the key. */
export interface StoredKey {
  readonly value: string;
  /** Grows with each write of the key. */
  readonly revision: number;
}

/** A failure that belongs to no call: a message that the engine refused to publish, or why it's unreachable. */
export interface EngineFailure {
  readonly operation: 'connect' | 'publish';
  /** Its message goes into the operator's log. */
  readonly error: unknown;
}

/** The answer to a request, or why there is none. `no-responders`: no replica receives requests on this subject. */
export type Reply = { readonly type: 'reply'; readonly data: Uint8Array } | { readonly type: 'no-responders' };

/**
 * Connects a cluster to a message broker, which stores one value with compare-and-set, and may lose messages.
 *
 * Compare-and-set must be linearizable: all writes have one order, and reading returns the newest write before it.
 * Messages of one publisher to one subject must arrive in order. Messages needn't be stored.
 */
export interface ClusterEngine {
  /**
   * Emits whether the engine is reachable: at once, and on each change. Completes, or errors with the reason, when the
   * connection was closed for good, which ends the replica.
   */
  readonly connected$: Observable<boolean>;
  /** Emits failures that belong to no call. @defaultValue none */
  readonly failures$?: Observable<EngineFailure> | undefined;
  /**
   * Returns the newest version of a key; `undefined` if the key doesn't exist. Rejects if the engine doesn't answer.
   */
  read(key: string): Promise<StoredKey | undefined>;
  /**
   * Writes a key if its revision is the expected one.
   *
   * @param expected - the revision to replace; `undefined` creates the key
   * @returns the new revision; `undefined` if the key has another one. Rejects if the result is unknown: the
   *   write may still happen
   */
  compareAndSet(key: string, value: string, expected: number | undefined): Promise<number | undefined>;
  /** Returns the server's current size limit of a message in bytes. If it's `undefined`, `batchBytes` is the limit. */
  maxMessageBytes?(): number | undefined;
  /**
   * Sends a message to all subscribers of a subject. Does nothing while the engine is unreachable. Throws, or returns a
   * promise that rejects, if the engine refuses the message. The message is then lost, and the numbers of the next one
   * show followers how much they missed.
   */
  publish(subject: string, data: Uint8Array): unknown;
  /**
   * Emits the messages to a subject while there's a subscriber, including this replica's own. The bytes must not change
   * afterwards. Errors if the engine refuses the subscription, which ends the replica.
   */
  subscribe(subject: string): Observable<Uint8Array>;
  /** Sends a request to a replica that responds. Rejects if no answer arrives in time. */
  request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Reply>;
  /** Answers requests to a subject while subscribed. Emits nothing. */
  respond(subject: string, answer: (data: Uint8Array) => Uint8Array): Observable<never>;
  /**
   * Returns a store for the last minute of an account's messages, from which replicas fetch what they missed. Stores of
   * one account share the messages. What is appended also arrives at subscribers of the subject
   * `rtf.v2.<account>.feed`. Without a store, replicas `publish` to that subject, and emit a gap for what they missed.
   */
  line?(spec: LineSpec): LineStore;
}

/**
 * Creates an engine for replicas in one process, for tests and for trying a cluster before you have a broker.
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
  const messages$ = new Subject<{ readonly to: string; readonly data: Uint8Array }>();
  const responders = new Set<readonly [subject: string, answer: (data: Uint8Array) => Uint8Array]>();
  const lines = new Map<string, LineMemory>();
  // All keys share one sequence, so a deleted key never gets the same revision again.
  let revisions = 0;

  const publish = (to: string, data: Uint8Array): void => queueMicrotask(() => messages$.next({ to, data }));

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
    publish,
    subscribe: (subject) =>
      messages$.pipe(
        filter(({ to }) => to === subject),
        map(({ data }) => data),
      ),
    request: async (subject, data): Promise<Reply> => {
      await Promise.resolve();
      const [, answer] = [...responders].find(([name]) => name === subject) ?? [];
      return answer === undefined ? { type: 'no-responders' } : { type: 'reply', data: answer(data) };
    },
    respond: (...responder) =>
      new Observable<never>(() => {
        responders.add(responder);
        return () => responders.delete(responder);
      }),
    line: (spec) => {
      const subject = liveSubject(spec);
      const line = lines.get(subject) ?? { messages: [], bytes: 0, limits: spec, oldestKept: retention(spec) };
      lines.set(subject, line);
      return memoryLine(line, (data) => publish(subject, data));
    },
  };
};
