import { isUtf8 } from 'node:buffer';
import type { Gap } from '../../protocol/event.js';
import { type LineFields, type PayloadReader, readFrame, readGap, writeEventLine } from '../../protocol/event-line.js';
import { feeds } from '../../protocol/feed.js';
import type { AnyFrame } from '../../protocol/frame.js';
import { type Replayed, ReplayedFrame, type ReplayedGap } from '../items/replayed.js';
import { writeFrame } from './write-frame.js';

/** Makes the line of a frame, newline included. */
export const frameLine = (frame: AnyFrame): string => `${writeFrame(frame)}\n`;

/** Makes the line of a gap, newline included: its own fields alone. */
export const gapLine = ({ type, from, to, durationMs, failure }: Gap): string =>
  `${writeEventLine({ type, from, to, durationMs, failure })}\n`;

/**
 * Reads a line.
 *
 * @param line - its bytes; what is made of them holds bytes of its own
 * @param offset - the byte of the recording right behind it
 * @returns `undefined` for a line of another type, which a recording may hold
 * @throws TypeError that says what is wrong, and never shows the payload
 */
export const readLine = (line: Buffer, offset: number): Replayed | undefined => {
  const fields = objectIn(line);
  switch (fields['type']) {
    case 'frame':
      return replayedFrame(fields, offset);
    case 'gap':
      return replayedGap(fields, offset);
    default:
      check(typeof fields['type'] === 'string', 'it has no `type`');
      return undefined;
  }
};

/** When a line was written, as far as it says so, in epoch ms. */
export const timeIn = (line: Buffer): number | undefined => {
  const { receivedAt, to, at } = objectIn(line);
  return [receivedAt, to, at].find(isNumber);
};

const types = [
  ...['frame', 'gap', 'ticket-requested', 'ticket-issued', 'opened', 'disconnected', 'reconnecting'],
  ...['dropped', 'stopped'],
];
const starts = types.map((type) => `{"type":"${type}"`);

/** How many bytes of a file {@link isRecordingStart} wants to see. */
export const startBytes = Math.max(...starts.map(({ length }) => length));

/** Tells whether a file may be a recording by how it begins; it may have been torn in its very first line. */
export const isRecordingStart = (start: string): boolean =>
  starts.some((known) => start.startsWith(known) || known.startsWith(start));

const isNumber = (value: unknown): value is number => typeof value === 'number';

const check: (isRight: boolean, otherwise: string) => asserts isRight = (isRight, otherwise) => {
  if (!isRight) throw new TypeError(otherwise);
};

const objectIn = (line: Buffer): LineFields => {
  check(isUtf8(line), 'it is not UTF-8');
  const value = parsed(line.toString('utf8'));
  check(typeof value === 'object' && value !== null, 'it is not a JSON object');
  return value as LineFields;
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The message of a SyntaxError shows the text, which may be a payload.
    throw new TypeError('it is not JSON');
  }
};

const bufferReader: PayloadReader<Buffer> = {
  utf8: (text) => Buffer.from(text, 'utf8'),
  base64: (text) => Buffer.from(text, 'base64'),
};

const replayedFrame = (fields: LineFields, offset: number): ReplayedFrame => {
  const { feed, data, isBinary, receivedAt, connection } = readFrame(fields, bufferReader);
  check(feeds.includes(feed), 'a field of the frame is missing or wrong');
  return new ReplayedFrame(feed, data, isBinary, receivedAt, connection, offset);
};

const replayedGap = (fields: LineFields, offset: number): ReplayedGap => {
  const { type, from, to, durationMs, failure } = readGap(fields);
  return { type, from, to, durationMs, failure, offset };
};
