import type { Writable } from 'node:stream';
import { waitForClose } from '../relay/http-response.js';

/** Collects the work that a shutdown waits for: connections that are closing, and responses to browsers that are being sent. */
export class PendingWork {
  readonly #closing = new Set<Promise<void>>();
  readonly #responses = new Set<Writable>();

  /** Adds a connection that is closing. */
  addClosing(closed: Promise<void>): void {
    this.#closing.add(closed);
    void closed.then(() => this.#closing.delete(closed));
  }

  /** Adds a response until it is closed. */
  addResponse(response: Writable): void {
    if (this.#responses.has(response)) return;
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
  }

  /** Waits for all connections and responses. A response is destroyed after one second; the transport limits each connection. */
  async end(): Promise<void> {
    await Promise.all([...this.#closing, ...Array.from(this.#responses, waitForClose)]);
  }
}
