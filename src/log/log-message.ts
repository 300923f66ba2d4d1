// A message of a log in a store: like a segment of a folder, it has a header line, and then the lines of records.
import type { Snapshot } from '../protocol/feed-state.js';
import type { Head, Place } from '../protocol/place.js';
import { readHeader, type SegmentHead } from './lines.js';

/** The header of a message. */
export interface LogHead extends Head {
  /** The id of the writer: two that begin at once may take the same generation. */
  readonly writer: string;
  /** The status of the feed before the message. */
  readonly state: Snapshot;
  /** The place after the message. */
  readonly next: Place;
  /** A record that is too large for one message is in adjacent ones. */
  readonly part: number;
  readonly parts: number;
  /** Up to when the feed is complete, in epoch ms, if no record says so. */
  readonly reached?: number | undefined;
  /** Whether its writer has ended. */
  readonly closed?: boolean | undefined;
}

const newline = 0x0a;

export const encodeMessage = (head: LogHead, body: Uint8Array): Uint8Array =>
  Buffer.concat([Buffer.from(`${JSON.stringify({ type: 'segment', v: 2, ...head })}\n`), body]);

/** Reads the header of a message; `undefined` if another program has published it. */
export const logHeadOf = (bytes: Uint8Array): LogHead | undefined => {
  const header = readHeader(Buffer.from(viewOf(bytes).subarray(0, bodyAt(bytes))).toString()) as
    (SegmentHead & Partial<LogHead>) | undefined;
  if (header === undefined) return undefined;
  const { count, part, parts } = header;
  const areNumbers = [count, part, parts].every((each) => Number.isSafeInteger(each));
  return areNumbers && typeof header.writer === 'string' ? (header as unknown as LogHead) : undefined;
};

/** The lines of a message, without its header. */
export const bodyOf = (bytes: Uint8Array): Buffer => viewOf(bytes).subarray(bodyAt(bytes));

const bodyAt = (bytes: Uint8Array): number => {
  const end = viewOf(bytes).indexOf(newline);
  return end < 0 ? bytes.byteLength : end + 1;
};

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength);
