import type { Observable } from 'rxjs';

/** A version of the key. */
export interface StoredKey {
  readonly value: string;
  /** Grows with each write of the key. */
  readonly revision: number;
}

/** The answer to a request, or the reason why there is none. `no-responders`: no replica receives requests for this subject. */
export type Reply = { readonly type: 'reply'; readonly data: Uint8Array } | { readonly type: 'no-responders' };

/**
 * What a cluster needs from a message broker: one value with compare-and-set, and messages that may be lost.
 *
 * Compare-and-set must be linearizable: all writes have one order, and a read returns the newest write before it. Messages of one publisher to one
 * subject must arrive in order. No message needs to be stored.
 */
export interface ClusterEngine {
  /** Emits whether the engine can be reached: at once, and on each change. Does not complete while the engine is in use. */
  readonly connected$: Observable<boolean>;
  /** Returns the newest version of a key; `undefined` if the key does not exist. Rejects if the engine did not answer. */
  read(key: string): Promise<StoredKey | undefined>;
  /**
   * Writes a key if its revision is the expected one.
   *
   * @param expected - the revision to replace; `undefined` creates the key
   * @returns the new revision; `undefined` if the key has another revision. Rejects if the result is unknown: the write may still happen
   */
  compareAndSet(key: string, value: string, expected: number | undefined): Promise<number | undefined>;
  /** Sends a message to all subscribers of a subject. Does not wait, and does nothing while the engine cannot be reached. */
  publish(subject: string, data: Uint8Array): void;
  /**
   * Emits the messages to a subject while there is a subscriber, also those of this replica. The bytes must not change afterwards. Errors if
   * the engine refuses the subscription: this ends the replica.
   */
  subscribe(subject: string): Observable<Uint8Array>;
  /** Sends a request to a replica that responds. Rejects if no answer arrives in time. */
  request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Reply>;
  /** Answers the requests to a subject while there is a subscription. The Observable emits nothing. */
  respond(subject: string, answer: (data: Uint8Array) => Uint8Array): Observable<never>;
}
