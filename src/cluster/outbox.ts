import type { Frame } from '../protocol/frame.js';
import { encode, encodeParts, frameBytes, headBytesOf } from './messages/encode.js';
import type { FeedMessage } from './messages/feed-message.js';

/** Sends the messages of an owner: the frames of one turn of the event loop together. */
export interface Outbox {
  add(message: FeedMessage): void;
  /** Sends what has been added. */
  flush(): void;
}

/**
 * Creates an {@link Outbox}.
 *
 * @param send - sends one message
 * @param maxBytes - size limit of a message
 */
export const createOutbox = (send: (bytes: Uint8Array) => void, maxBytes: number): Outbox => {
  let first: Extract<FeedMessage, { readonly kind: 'batch' }> | undefined;
  let batch: Frame[] = [];
  let size = 0;
  let isDue = false;

  const flush = (): void => {
    if (first === undefined) return;
    const message = { ...first, batch };
    [first, batch, size] = [undefined, [], 0];
    send(encode(message));
  };

  const flushAfterTurn = (): void => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      flush();
    });
  };

  return {
    add: (message) => {
      if (message.kind !== 'batch') {
        flush();
        return send(encode(message));
      }
      for (const frame of message.batch) {
        const bytes = frameBytes(frame);
        if (size + bytes > maxBytes || first?.gen !== message.gen) flush();
        if (headBytesOf(message) + bytes > maxBytes) {
          for (const part of encodeParts(message, frame, maxBytes)) send(part);
          continue;
        }
        if (first === undefined) [first, size] = [message, headBytesOf(message)];
        batch.push(frame);
        size += bytes;
      }
      flushAfterTurn();
    },
    flush,
  };
};
