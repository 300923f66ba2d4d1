import { EventEmitter } from 'node:events';
import type { Writable } from 'node:stream';
import { destroyResponse } from '../relay/http-response.js';
import type { RelayResponse } from '../relay/index.js';

/** The most text that is handed to Nest in one turn of the event loop, before the response is looked at again. */
const mostInOneTurn = 64 * 1024;

/**
 * What a relay sees of a response that Nest writes to.
 *
 * Nest takes every message at once, into a queue without a brake, and writes it some ticks later; at 4 Mi characters it drops the client.
 * So this one says that it is full when the response is, and also when a good deal was handed over in this turn.
 */
export class SseResponse extends EventEmitter implements RelayResponse {
  readonly #response: Writable | undefined;
  #handedOver = 0;

  constructor(response: Writable | undefined) {
    super();
    this.#response = response;
  }

  get writableNeedDrain(): boolean {
    return this.#handedOver >= mostInOneTurn || this.#response?.writableNeedDrain === true;
  }

  /** Is told of what is handed to Nest. */
  handOver(length: number): void {
    // By then it is at the response, unless that is full.
    if (this.#handedOver === 0) setImmediate(() => this.#nextTurn());
    this.#handedOver += length;
  }

  /** Passes on that the response has drained; gives a function that ends this. */
  listen(): () => void {
    const onDrain = () => this.emit('drain');
    this.#response?.on('drain', onDrain);
    return () => this.#response?.off('drain', onDrain);
  }

  destroy(): void {
    if (this.#response) destroyResponse(this.#response);
  }

  #nextTurn(): void {
    const wasFull = this.#handedOver >= mostInOneTurn;
    this.#handedOver = 0;
    if (wasFull && !this.writableNeedDrain) this.emit('drain');
  }
}
