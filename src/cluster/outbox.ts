import { encode, encodeParts } from './messages/encode.js';
import type { FeedMessage } from './messages/feed-message.js';
import { createOpenBatch } from './messages/open-batch.js';

/** Sends the messages of an owner: the frames of one turn of the event loop together. */
export interface Outbox {
  /** Adds a message. The payloads of frames are copied at once. */
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
  const batch = createOpenBatch(maxBytes);
  let gen: number | undefined;
  let isDue = false;

  const flush = (): void => {
    const message = batch.seal();
    if (message) send(message);
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
      if (message.gen !== gen) flush();
      ({ gen } = message);
      for (const frame of message.batch) {
        if (batch.add(message, frame)) continue;
        flush();
        if (batch.add(message, frame)) continue;
        for (const part of encodeParts(message, frame, maxBytes)) send(part);
      }
      flushAfterTurn();
    },
    flush,
  };
};
