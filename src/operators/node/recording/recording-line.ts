import { isUtf8 } from 'node:buffer';
import type { Gap } from '../../../protocol/event.js';
import {
  type LineFields,
  parseLine,
  type PayloadReader,
  readFrame,
  readGap,
  writeEventLine,
} from '../../../protocol/event-line.js';
import { feeds } from '../../../protocol/contract.js';
import type { AnyFrame } from '../../../protocol/frame.js';
import { isTime } from '../../../protocol/type-guards.js';
import { type Replayed, ReplayedFrame, type ReplayedGap } from '../../items/item.js';
import { writeFrame } from '../write-frame.js';

export const frameLine = (frame: AnyFrame): string => `${writeFrame(frame)}\n`;

export const gapLine = ({ type, from, to, durationMs, failure }: Gap): string =>
  `${writeEventLine({ type, from, to, durationMs, failure })}\n`;

/**
 * Reads a line, whose bytes are copied; `undefined` for a line of another type. Throws a TypeError that explains the
 * problem without showing the payload.
 *
 * @param offset - the offset in the recording after the line
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

/** Returns when a line was written, in epoch ms; `undefined` if the line contains no time. */
export const timeIn = (line: Buffer): number | undefined => {
  const { receivedAt, to, at } = objectIn(line);
  return [receivedAt, to, at].find(isTime);
};

const types = [
  ...['frame', 'gap', 'ticket-requested', 'ticket-issued', 'opened', 'disconnected', 'reconnecting'],
  ...['dropped', 'stopped'],
];
const starts = types.map((type) => `{"type":"${type}"`);

export const startBytes = Math.max(...starts.map(({ length }) => length));

/** Returns whether a file with this start may be a recording. A crash may have torn its first line. */
export const isRecordingStart = (start: string): boolean =>
  starts.some((known) => start.startsWith(known) || known.startsWith(start));

const check: (isRight: boolean, otherwise: string) => asserts isRight = (isRight, otherwise) => {
  if (!isRight) throw new TypeError(otherwise);
};

const objectIn = (line: Buffer): LineFields => {
  check(isUtf8(line), "it isn't UTF-8");
  const value = parseLine(line.toString('utf8'));
  check(typeof value === 'object' && value !== null, "it isn't a JSON object");
  return value as LineFields;
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
