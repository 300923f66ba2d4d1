import { isUtf8 } from 'node:buffer';
import { feeds } from '../../protocol/contract.js';
import type { AnyFrame } from '../../protocol/frame.js';
import { isTime } from '../../protocol/type-guards.js';

/**
 * Returns the line of a frame, without the newline: see `src/protocol/event-line.ts`.
 *
 * @param start - fields that come first: `"offset":1,`
 * @param end - what follows the last field
 * @throws TypeError if user code created the frame with a wrong field, because no reader accepts such a line
 */
export const writeFrame = (frame: AnyFrame, start = '', end = '}'): string => {
  if (!isWritable(frame)) throw new TypeError('a frame has a feed, and numbers as `connection` and `receivedAt`');
  const text = frame.isBinary ? undefined : exactText(frame);
  const head = headOf(frame, start);
  return text === undefined
    ? `${head}"base64","data":"${base64Of(frame.data)}"${end}`
    : `${head}"utf8","data":${JSON.stringify(text)}${end}`;
};

// Concatenating takes 3/4 of the time that JSON.stringify takes for all fields.
const headOf = ({ feed, connection, receivedAt, isBinary }: AnyFrame, start: string): string =>
  `{${start}"type":"frame","feed":"${feed}","connection":${connection},"receivedAt":${receivedAt},"isBinary":${isBinary},"encoding":`;

/** What the line of a text frame has before its payload, and after it. */
export const startOfTextLine = (frame: AnyFrame): string => `${headOf(frame, '')}"utf8","data":"`;
export const endOfTextLine = '"}';

export const isWritable = ({ feed, connection, receivedAt }: AnyFrame): boolean =>
  Number.isFinite(connection) && isTime(receivedAt) && feeds.includes(feed);

// A replacement character may hide invalid bytes. Only then do the bytes have to be checked.
const exactText = (frame: AnyFrame): string | undefined => {
  const text = frame.text();
  return text.includes('\ufffd') && !isUtf8(frame.data) ? undefined : text;
};

const base64Of = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');
