import { EventEmitter } from 'node:events';
import type { Writable } from 'node:stream';
import { destroyResponse } from '../relay/http-response.js';
import type { RelayResponse } from '../relay/index.js';

/** How many characters Nest may receive in one turn of the event loop, before the state of the response is read again. */
const maxPerTurn = 64 * 1024;

/**
 * Reports to a relay the backpressure of a response that Nest writes to.
 *
 * Nest accepts every message into a queue without backpressure, and writes it some ticks later. At 4 Mi characters it drops the client. So
 * this class reports that it is full when the response is full, and when Nest has received `maxPerTurn` characters in this turn.
 */
export class SseResponse extends EventEmitter implements RelayResponse {
  readonly #response: Writable | undefined;
  #acceptedChars = 0;

  constructor(response: Writable | undefined) {
    super();
    this.#response = response;
  }

  get writableNeedDrain(): boolean {
    return this.#acceptedChars >= maxPerTurn || this.#response?.writableNeedDrain === true;
  }

  /** Counts characters that Nest receives. */
  handOver(length: number): void {
    // In the next turn Nest has written them to the response, unless the response is full.
    if (this.#acceptedChars === 0) setImmediate(() => this.#nextTurn());
    this.#acceptedChars += length;
  }

  /** Forwards `drain` of the response. Returns a function that removes the listener. */
  listen(): () => void {
    const onDrain = () => this.emit('drain');
    this.#response?.on('drain', onDrain);
    return () => this.#response?.off('drain', onDrain);
  }

  destroy(): void {
    if (this.#response) destroyResponse(this.#response);
  }

  #nextTurn(): void {
    const wasFull = this.#acceptedChars >= maxPerTurn;
    this.#acceptedChars = 0;
    if (wasFull && !this.writableNeedDrain) this.emit('drain');
  }
}
