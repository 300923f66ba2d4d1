import type { Frame } from '../protocol/frame.js';
import { encode, encodeParts } from './messages/encode.js';
import type { MessageHead, PlainMessage } from './messages/feed-message.js';
import { createOpenBatch } from './messages/open-batch.js';

/** Sends the messages of an owner: the frames of one turn of the event loop together. */
export interface Outbox {
  /** Adds a frame. Its payload is copied at once. `headOf` returns the head of a message that begins with this frame. */
  frame(frame: Frame, headOf: (at: number) => MessageHead): void;
  /** Sends a message after the frames that were added. */
  message(message: PlainMessage): void;
  /** Sends the frames that were added. */
  flush(): void;
}

/**
 * Creates an {@link Outbox}.
 *
 * @param send - sends one message
 * @param maxBytes - size limit of a message
 */
export const createOutbox = (send: (bytes: Uint8Array) => void, maxBytes: number): Outbox => {
  const batch = createOpenBatch(maxBytes);
  let isDue = false;

  const flush = (): void => {
    const message = batch.seal();
    if (message) send(message);
  };

  const flushAfterTurn = (): void => {
    isDue = true;
    setImmediate(() => {
      isDue = false;
      flush();
    });
  };

  const addToNext = (frame: Frame, headOf: (at: number) => MessageHead): void => {
    flush();
    if (batch.add(frame, headOf)) return;
    for (const part of encodeParts(headOf(frame.receivedAt), frame, maxBytes)) send(part);
  };

  return {
    frame: (frame, headOf) => {
      if (!batch.add(frame, headOf)) addToNext(frame, headOf);
      if (!isDue) flushAfterTurn();
    },
    message: (message) => {
      flush();
      send(encode(message));
    },
    flush,
  };
};
