import { isUtf8 } from 'node:buffer';
import type { Gap } from '../../protocol/event.js';
import { readFailure } from '../../protocol/read-failure.js';
import { type Feed, feeds } from '../../protocol/feed.js';
import type { AnyFrame } from '../../protocol/frame.js';
import { type Replayed, ReplayedFrame, type ReplayedGap } from '../items/replayed.js';

/**
 * Makes the line of a frame, newline included: the one that `rx-trade-feed listen --json` writes. The payload stands there as text,
 * or in base64 when it was sent as binary or is no UTF-8, so every byte survives.
 *
 * @throws TypeError for a frame that was made by hand with a field that no frame has
 */
export const frameLine = (frame: AnyFrame): string => {
  const { feed, connection, receivedAt, isBinary, data } = frame;
  if (!Number.isFinite(connection) || !Number.isFinite(receivedAt) || !feeds.includes(feed))
    throw new TypeError('a frame has a feed, and numbers as `connection` and `receivedAt`');
  // Parts put together take three quarters of the time that JSON.stringify takes for the whole.
  const head = `{"type":"frame","feed":"${feed}","connection":${connection},"receivedAt":${receivedAt},"isBinary":${isBinary},"encoding":`;
  return isBinary || !isUtf8(data)
    ? `${head}"base64","data":"${asBuffer(data).toString('base64')}"}\n`
    : `${head}"utf8","data":${JSON.stringify(frame.text())}}\n`;
};

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Makes the line of a gap, newline included: its own fields alone. */
export const gapLine = ({ type, from, to, durationMs, failure }: Gap): string =>
  `${JSON.stringify({ type, from, to, durationMs, failure })}\n`;

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
      return frameOf(fields, offset);
    case 'gap':
      return gapOf(fields, offset);
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

interface FrameFields {
  readonly feed: Feed;
  readonly connection: number;
  readonly receivedAt: number;
  readonly isBinary: boolean;
  readonly encoding: 'utf8' | 'base64';
  readonly data: string;
}

type Fields = Readonly<Record<string, unknown>>;

const isNumber = (value: unknown): value is number => typeof value === 'number';

const check: (isRight: boolean, otherwise: string) => asserts isRight = (isRight, otherwise) => {
  if (!isRight) throw new TypeError(otherwise);
};

const objectIn = (line: Buffer): Fields => {
  check(isUtf8(line), 'it is no UTF-8');
  let value: unknown;
  try {
    value = JSON.parse(line.toString('utf8'));
  } catch {
    // The message of a SyntaxError shows the text that it is about, which is a payload.
    throw new TypeError('it is no JSON');
  }
  check(typeof value === 'object' && value !== null, 'it is no JSON object');
  return value as Fields;
};

const frameOf = ({ feed, connection, receivedAt, isBinary, encoding, data }: Partial<FrameFields>, offset: number) => {
  const isRight =
    feeds.includes(feed as Feed) &&
    isNumber(connection) &&
    isNumber(receivedAt) &&
    typeof isBinary === 'boolean' &&
    (encoding === 'utf8' || encoding === 'base64') &&
    typeof data === 'string';
  check(isRight, 'a field of its frame is missing or wrong');
  return new ReplayedFrame(feed as Feed, Buffer.from(data, encoding), isBinary, receivedAt, connection, offset);
};

const gapOf = ({ from, to, durationMs, failure }: Fields, offset: number): ReplayedGap => {
  check(isNumber(from) && isNumber(to) && isNumber(durationMs), 'a time of its gap is missing or wrong');
  return { type: 'gap', from, to, durationMs, failure: readFailure(failure), offset };
};
