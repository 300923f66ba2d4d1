import { isUtf8 } from 'node:buffer';
import { type PayloadWriter, writeFrameLine } from '../../protocol/event-line.js';
import { feeds } from '../../protocol/contract.js';
import type { AnyFrame } from '../../protocol/frame.js';
import { isTime } from '../../protocol/type-guards.js';

/**
 * Returns the line of a frame, without the newline: see `src/protocol/event-line.ts`.
 *
 * @throws TypeError if user code created the frame with a wrong field, because no reader accepts such a line
 */
export const writeFrame = (frame: AnyFrame, start?: string): string => {
  if (!isWritable(frame)) throw new TypeError('a frame has a feed, and numbers as `connection` and `receivedAt`');
  return writeFrameLine(frame, bufferWriter, start);
};

export const isWritable = ({ feed, connection, receivedAt }: AnyFrame): boolean =>
  Number.isFinite(connection) && isTime(receivedAt) && feeds.includes(feed);

const bufferWriter: PayloadWriter = {
  isUtf8,
  toBase64: ({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
};
