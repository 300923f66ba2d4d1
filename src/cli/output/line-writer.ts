import type { Writable } from 'node:stream';
import { of, Subject } from 'rxjs';
import { lineQueue, type QueuedLine } from './line-queue.js';
import { written } from './written.js';

/** Writes lines to a stream that may be slow. */
export interface LineWriter {
  /** Writes a line, or keeps it until the stream takes more. Never waits. */
  write(line: QueuedLine): void;
  /** Lines that were dropped so far, because the stream was too slow. */
  readonly dropped: number;
  /**
   * Resolves when all is written or the stream is broken. When the time is over first, what is left is dropped.
   *
   * @param withinMs - how long to wait @defaultValue as long as it takes
   */
  flush(withinMs?: number): Promise<void>;
}

/** How a line writer behaves when its stream is slow. */
export interface LineWriterOptions {
  /** How much may wait for the stream, in bytes; beyond it the oldest lines are dropped. */
  readonly maxBytes: number;
  /** Told when lines begin to be dropped. */
  readonly onDropping: () => void;
  /** Told how many were dropped when the stream takes more; the line that it gives is written in their place. */
  readonly onDropped: (lines: number) => string | undefined;
}

/**
 * Makes a writer that keeps reading and writing apart: a slow reader of stdout must not slow the reading of the socket down
 * (the service answers that with 1013), and must not fill the memory either. So there is a queue with a bound, and a count of
 * what was lost.
 */
export const lineWriter = (stream: Writable, { maxBytes, onDropping, onDropped }: LineWriterOptions): LineWriter => {
  const queue = lineQueue();
  const emptied = new Subject<void>();
  let dropped = 0;
  let droppedHere = 0;

  const drop = (): void => {
    if (droppedHere === 0) onDropping();
    droppedHere += 1;
    dropped += 1;
  };
  const tellDropped = (): void => {
    if (droppedHere === 0) return;
    const instead = onDropped(droppedHere);
    droppedHere = 0;
    if (instead !== undefined) stream.write(instead);
  };
  const drain = (): void => {
    tellDropped();
    while (queue.length > 0 && !stream.writableNeedDrain) stream.write(queue.shift());
    if (queue.length === 0) emptied.next();
  };
  stream.on('drain', drain);

  return {
    write: (line) => {
      if (queue.length === 0 && !stream.writableNeedDrain) {
        stream.write(line);
        return;
      }
      queue.push(line);
      while (queue.bytes > maxBytes) {
        queue.shift();
        drop();
      }
    },
    get dropped() {
      return dropped;
    },
    flush: async (withinMs) => {
      await written(stream, queue.length === 0 ? of(undefined) : emptied, withinMs);
      stream.off('drain', drain);
      while (queue.shift() !== undefined) drop();
      tellDropped();
    },
  };
};
