import type { ServerResponse } from 'node:http';
import { cutAnswer } from './answer-end.js';
import type { RelayResponse } from './client-messages.js';

/** A response that a relay writes to. */
export interface WrittenResponse extends RelayResponse {
  /** Whether it is over: the client has gone, or somebody else has answered. */
  readonly isOver: boolean;
  write(bytes: Uint8Array): void;
}

/**
 * Makes one of a response of HTTP/1.1 or HTTP/2: the latter says neither that it is full nor that it is gone, but `write` and the events
 * of both do.
 */
export const writtenResponse = (response: ServerResponse): WrittenResponse => {
  let isFull = false;
  // Whoever comes too late for its event finds it so.
  let isGone = response.destroyed;
  response.on('drain', () => (isFull = false)).once('close', () => (isGone = true));
  return {
    get isOver() {
      return isGone || response.writableEnded;
    },
    get writableNeedDrain() {
      return isFull;
    },
    on: (event, listener) => response.on(event, listener),
    off: (event, listener) => response.off(event, listener),
    destroy: () => cutAnswer(response),
    write: (bytes) => {
      isFull = !response.write(bytes);
    },
  };
};
