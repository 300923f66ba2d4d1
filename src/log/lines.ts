// The lines of a log: a header for each segment, and one for each record, which is complete when it has its newline.
import { isAscii, isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import { bytesOfJson, endOfDigits, hasAt, numberIn, viewOf, viewOfText } from '../frames/json-bytes.js';
import { writeFrame } from '../operators/node/write-frame.js';
import { isFrame, isLifecycle, isOfEngine, timeOf } from '../operators/items/item.js';
import { type LineFields, readEventLine, readFrame, readGap, writeEventLine } from '../protocol/event-line.js';
import type { ClusterLifecycleEvent, Gap, LifecycleEvent } from '../protocol/event.js';
import type { Feed } from '../protocol/feed.js';
import { type AnyFrame, Frame } from '../protocol/frame.js';
import { gapOfMissed, type Snapshot } from '../protocol/feed-state.js';
import type { Countable, Head, Place } from '../protocol/place.js';
import { isTime, tryCall } from '../protocol/type-guards.js';
import { logMeanings } from './log-error.js';

/** What a log stores: frames, and all events but watermarks. */
export type Stored = AnyFrame | Exclude<ClusterLifecycleEvent, { readonly type: 'watermark' }>;

/** Whether a writer takes a value: a frame, or an event with a time of the feed. */
export const isStorable = (value: unknown): value is AnyFrame | ClusterLifecycleEvent =>
  (isFrame(value) || (isLifecycle(value) && !isOfEngine(value))) && isTime(stamped(value));

/** A frame or an event of a log, with its offset. */
export type Recorded = (Frame | ClusterLifecycleEvent) & { readonly offset: number };

/** A place of which only the offset is certain: a user has passed it, or JSON, which has `null` instead of NaN. */
type PartOfPlace = Pick<Place, 'offset'> & { readonly [Name in keyof Place]?: Place[Name] | undefined };

/** Returns the place alone, without other fields. */
export const placeOf = ({ line = '', gen = 0, offset, frames, holes, at = 0, complete = at }: PartOfPlace): Place => ({
  ...{ line, gen, offset, frames: frames ?? NaN, holes: holes ?? NaN, at, complete },
});

/** A generation of a writer, at a place in its line. */
export type Generation = Omit<Head, 'count'>;

/** The first line of a segment, which is no record: the place before it, and the generation that writes it. */
export interface SegmentHead extends Generation {
  /** The status of the feed before this segment. */
  readonly state: Snapshot;
}

/** Returns the place before a segment. Another generation has written the record before the first one of a writer. */
export const placeBefore = (head: Generation): Place => ({
  ...placeOf(head),
  gen: head.offset === head.began ? head.after : head.gen,
});

// The last field of each line in a folder is the CRC-32 of the bytes before it: a changed bit is always found. Its length
// is always the same, so that it is written into bytes that are there already.
const [newline, space, quote, comma, zero, letterA, brace] = [0x0a, 0x20, 0x22, 0x2c, 0x30, 0x61, 0x7d];
const sealStart = ',"crc":';
const unsealedEnd = `${sealStart}          }\n`;
const sealLength = unsealedEnd.length - 1;

/** Turns lines with room for their checksums into bytes. One conversion is faster than one for each line. */
export const sealedBytes = (lines: string): Buffer => {
  const bytes = Buffer.from(lines);
  const isText = bytes.length === lines.length;
  for (let from = 0, to = 0; from < bytes.length; from = to + 1) {
    // In a text, it is found faster.
    to = isText ? lines.indexOf('\n', from) : bytes.indexOf(newline, from);
    putNumber(bytes, to - 2, crc32(partOf(bytes, from, to - sealLength)));
  }
  return bytes;
};

// `subarray` takes twice the time.
const partOf = ({ buffer, byteOffset }: Buffer, from: number, to: number): Uint8Array =>
  new Uint8Array(buffer, byteOffset + from, to - from);

/** Writes a number whose last digit is at a place. Halves of it are small integers, which are divided much faster. */
const putNumber = (bytes: Buffer, last: number, value: number): void => {
  let high = Math.floor(value / 100_000);
  let rest = value - high * 100_000;
  for (let place = last; place === last || rest > 0 || high > 0; place -= 1) {
    if (place === last - 5) [rest, high] = [high, 0];
    bytes[place] = zero + (rest % 10);
    rest = Math.floor(rest / 10);
  }
};

/** Whether the checksum that begins at a place has the value of the bytes before it. */
const isSealed = (bytes: Buffer, from: number, at: number): boolean => {
  if (at <= from || bytes[at + sealLength - 1] !== brace) return false;
  const last = at + sealLength - 2;
  let value = 0;
  for (let place = at + sealStart.length; place <= last; place += 1) {
    const byte = bytes[place] as number;
    const digit = byte - zero;
    // Spaces are in front only, and no zeros.
    if (value === 0 && place < last && byte === space) continue;
    if (digit < 0 || digit > 9 || (digit === 0 && value === 0 && place < last)) return false;
    value = value * 10 + digit;
  }
  return value === crc32(partOf(bytes, from, at));
};

/** A record whose beginning is valid. */
export interface Scanned {
  readonly offset: number;
  /** The log time, in epoch ms. */
  readonly at: number;
  /** When it happened, in epoch ms, by the clock of that moment. */
  readonly time: number;
  /** `undefined` for a frame, which is read only where it is needed: by {@link Lines.frame}. */
  readonly event: Recorded | undefined;
  /** Where the payload of a frame begins, if its fields are those of the {@link FrameHead}. */
  readonly dataAt: number | undefined;
}

/** A frame whose JSON isn't parsed. */
export class RawFrame {
  readonly type = 'frame';
  readonly feed: Feed;
  readonly connection: number;
  readonly receivedAt: number;
  readonly offset: number;
  readonly position: Place | undefined = undefined;
  /** Where its fields are, from the type on and without braces. The reader writes others there when it reads on. */
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;

  constructor({ feed, connection }: Pick<Frame, 'feed' | 'connection'>, { time, offset }: Scanned, fields: Fields) {
    this.feed = feed;
    this.connection = connection;
    this.receivedAt = time;
    this.offset = offset;
    this.bytes = fields.bytes;
    this.from = fields.from;
    this.to = fields.to;
  }
}

type Fields = Pick<RawFrame, 'bytes' | 'from' | 'to'>;

/** The fields of the last frame: most frames differ from the one before only in their numbers and their payload. */
interface FrameHead extends Pick<Frame, 'feed' | 'connection' | 'isBinary'> {
  /** What is between its offset and its time, and from there to its payload. */
  readonly start: DataView;
  readonly end: DataView;
  readonly encoding: 'utf8' | 'base64';
}

const [lineStart, sealView] = [viewOfText('{"offset":'), viewOfText(sealStart)];

/** The complete lines in bytes, one after the other. */
export class Lines {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  readonly #areSealed: boolean;
  readonly #areAscii: boolean;
  /** The end of the complete lines. */
  readonly end: number;
  /** The bytes after them. */
  readonly rest: Buffer;
  /** Where the next line begins. */
  position = 0;
  /** The current line: where it begins, and where its text ends, in front of a checksum. */
  #from = 0;
  #to = 0;
  #isSealed = false;
  /** Whether its checksum is right, and its bytes are UTF-8. */
  #isValid = false;
  #head: FrameHead | undefined;

  /** @param areSealed - whether a line without a checksum is damaged. In a file that no log has written, it isn't */
  constructor(bytes: Buffer, areSealed = false) {
    this.end = bytes.lastIndexOf(newline) + 1;
    this.rest = bytes.subarray(this.end);
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.#areSealed = areSealed;
    this.#areAscii = isAscii(partOf(bytes, 0, this.end));
  }

  /** Goes to the next line; `false` at the end. */
  next(): boolean {
    const [bytes, from] = [this.#bytes, this.position];
    if (from >= this.end) return false;
    const to = bytes.indexOf(newline, from);
    const at = to - sealLength;
    this.#isSealed = hasAt(this.#view, at, sealView);
    const isWhole = this.#isSealed ? isSealed(bytes, from, at) : !this.#areSealed;
    this.#isValid = isWhole && (this.#areAscii || isUtf8(partOf(bytes, from, to)));
    this.#from = from;
    this.#to = this.#isSealed ? at : to;
    this.position = to + 1;
    return true;
  }

  /** The line without its checksum; `undefined` if that is wrong, or the line isn't UTF-8. */
  get line(): string | undefined {
    if (!this.#isValid) return undefined;
    const text = this.#bytes.toString('utf8', this.#from, this.#to);
    return this.#isSealed ? `${text}}` : text;
  }

  /** Scans the line; `undefined` if it's no record. */
  scan(): Scanned | undefined {
    if (!this.#isValid || !(this.#isSealed || this.#bytes[this.#to - 1] === brace)) return undefined;
    return (this.#head && this.#scanAlike(this.#head)) ?? this.#scanAny(this.line as string);
  }

  /** Scans a frame that differs from the last one in its numbers and its payload only: most do. */
  #scanAlike({ start, end }: FrameHead): Scanned | undefined {
    const [bytes, from] = [this.#view, this.#from];
    const offsetAt = from + lineStart.byteLength;
    const offsetEnd = endOfDigits(bytes, offsetAt);
    const timeAt = offsetEnd + start.byteLength;
    if (!hasAt(bytes, from, lineStart) || !hasAt(bytes, offsetEnd, start)) return undefined;
    const timeEnd = endOfDigits(bytes, timeAt);
    if (!hasAt(bytes, timeEnd, end)) return undefined;
    const [offset, time] = [numberIn(bytes, offsetAt, offsetEnd), numberIn(bytes, timeAt, timeEnd)];
    if (Number.isNaN(offset + time)) return undefined;
    return { offset, at: time, time, event: undefined, dataAt: timeEnd + end.byteLength };
  }

  #scanAny(line: string): Scanned | undefined {
    const match = format.exec(line);
    if (match === null) return undefined;
    const [{ length }, offset, logTime, type, feed, connection, receivedAt, isBinary, encoding] = match;
    const event = type === 'frame' ? undefined : readRecord(line);
    if (type === 'frame' ? receivedAt === undefined : event === undefined) return undefined;
    const time = event === undefined ? Number(receivedAt) : stamped(event);
    // An event may have a field `at` as well, after its type.
    const at = Number(logTime ?? time);
    if (!isTime(at)) return undefined;
    const isRegular = encoding !== undefined && isTime(time) && isTime(Number(connection));
    if (isRegular)
      this.#head = {
        start: viewOfText(`,"type":"frame","feed":"${feed}","connection":${connection},"receivedAt":`),
        end: viewOfText(`,"isBinary":${isBinary},"encoding":"${encoding}","data":"`),
        feed: feed as Feed,
        connection: Number(connection),
        isBinary: isBinary === 'true',
        encoding: encoding as FrameHead['encoding'],
      };
    return { offset: Number(offset), at, time, event, dataAt: isRegular ? this.#from + length : undefined };
  }

  /** Reads the frame of the line; `undefined` if it's damaged. */
  frame({ offset, time, dataAt }: Scanned): Recorded | undefined {
    const data = dataAt === undefined ? undefined : this.#payload(dataAt, this.#isSealed ? this.#to : this.#to - 1);
    // Not as a log writes it: other fields may follow.
    if (data === undefined) return readRecord(this.line);
    const { feed, isBinary, connection } = this.#head as FrameHead;
    return withOffset(new Frame(feed, data, isBinary, time, connection), offset);
  }

  /** Returns the frame of the line without reading its payload; `undefined` unless it's as a log writes it. */
  raw(scanned: Scanned): RawFrame | undefined {
    const bytes = this.#bytes;
    const to = this.#isSealed ? this.#to : this.#to - 1;
    if (scanned.dataAt === undefined || bytes[to - 1] !== quote) return undefined;
    const next = endOfDigits(this.#view, this.#from + lineStart.byteLength) + 1;
    // A log time may come between the offset and the type.
    const from = bytes[next + 1] === letterA ? bytes.indexOf(comma, next) + 1 : next;
    return new RawFrame(this.#head as FrameHead, scanned, { bytes, from, to });
  }

  /** @param to - the end of the line, where a string ends with its quote */
  #payload(from: number, to: number): Buffer | undefined {
    const { encoding } = this.#head as FrameHead;
    const isText = encoding === 'utf8' && this.#bytes[to - 1] === quote;
    const parsed = (): Buffer =>
      Buffer.from(JSON.parse(this.#bytes.toString('utf8', from - 1, to)) as string, encoding);
    return (isText ? bytesOfJson(this.#view, from, to - 1) : undefined) ?? tryCall(parsed);
  }
}

// The order of the first keys is fixed, so a frame is scanned without `JSON.parse`.
const number = String.raw`(-?\d[\d.e+-]*)`;
const format = new RegExp(
  String.raw`^\{"offset":(\d{1,16}),(?:"at":${number},)?"type":"([a-z-]+)"` +
    String.raw`(?:,"feed":"(\w+)","connection":${number},"receivedAt":${number},(?:"isBinary":(true|false),"encoding":"(utf8|base64)","data":")?)?`,
);

/** Returns a header with room for its checksum. */
export const sealableHeader = (header: SegmentHead): string => headerLine(header).slice(0, -2) + unsealedEnd;

export const headerLine = ({ offset, ...fields }: SegmentHead): string =>
  `${JSON.stringify({ offset, type: 'segment', v: 1, ...fields })}\n`;

/** Reads a header; `undefined` for any other line. */
export const readHeader = (line: string | undefined): SegmentHead | undefined => {
  const fields = objectIn(line);
  if (fields?.['type'] !== 'segment' || !Number.isSafeInteger(fields['offset'])) return undefined;
  const { line: id, gen, after, began, frames, holes, at, complete, state } = fields as unknown as SegmentHead;
  const areNumbers = [gen, after, began, frames, holes, at, complete].every((each) => typeof each === 'number');
  if (!areNumbers || typeof id !== 'string' || !Array.isArray(state)) return undefined;
  const events = state.map((event) => readEventLine(JSON.stringify(event), 0) as LifecycleEvent);
  return { ...(fields as unknown as SegmentHead), state: events };
};

/** Returns when a record happened, in epoch ms. */
export const stamped = (record: unknown): number => timeOf(record) as number;

/**
 * Returns the line of a record.
 *
 * @param time - when it happened, in epoch ms
 * @param at - its log time, in epoch ms, which differs if a clock was set back
 */
export const recordLine = (offset: number, record: Stored, time: number, at: number): string =>
  lineOf(record, startOfLine(offset, time, at), '}\n');

/** Returns the same with room for its checksum, which {@link sealedBytes} fills in. */
export const sealableLine = (offset: number, record: Stored, time: number, at: number): string =>
  lineOf(record, startOfLine(offset, time, at), unsealedEnd);

const startOfLine = (offset: number, time: number, at: number): string =>
  at === time ? `"offset":${offset},` : `"offset":${offset},"at":${at},`;

const lineOf = (record: Stored, start: string, end: string): string =>
  record.type === 'frame' ? writeFrame(record, start, end) : `{${start}${eventLine(record).slice(1, -1)}${end}`;

// A custom source may have the type behind other fields.
const eventLine = ({ type, ...fields }: Exclude<Stored, AnyFrame>): string =>
  writeEventLine({ type, ...fields } as LifecycleEvent);

// `Object.assign` takes 200 ns more.
const withOffset = (record: object, offset: number): Recorded => {
  (record as { offset: number }).offset = offset;
  return record as Recorded;
};

/**
 * Reads a record; `undefined` for a line that is none.
 *
 * @param offset - in a file whose lines have none
 */
export const readRecord = (line: string | undefined, offset?: number): Recorded | undefined => {
  const fields = objectIn(line);
  const record = fields && tryCall(() => recordIn(fields, line as string));
  return record && withOffset(record, offset ?? (fields['offset'] as number));
};

const recordIn = (fields: LineFields, line: string): object | undefined => {
  if (fields['type'] === 'frame') return readFrame(fields, payloads);
  if (fields['type'] !== 'gap') return readEventLine(line, 0) ?? (isLifecycle(fields) ? { ...fields } : undefined);
  // The log time of a gap is no field of it.
  const { at: _at, ...gap } = fields;
  return readGap(gap);
};

const payloads = {
  utf8: (text: string) => Buffer.from(text, 'utf8'),
  base64: (text: string) => Buffer.from(text, 'base64'),
};

/** Reads JSON; `undefined` for any other text. */
export const jsonIn = (text: string): unknown => tryCall(() => JSON.parse(text) as unknown);

const objectIn = (line: string | undefined): LineFields | undefined => {
  const value = jsonIn(line ?? '');
  return typeof value === 'object' && value !== null ? (value as LineFields) : undefined;
};

/** Whether a line of a file is empty, or has a type that this version doesn't know. */
export const isOther = (line: string | undefined): boolean => {
  if (line === '' || line === '\r') return true;
  const type = objectIn(line)?.['type'];
  return typeof type === 'string' && !knownTypes.includes(type);
};

const knownTypes = ['frame', 'gap', 'opened', 'disconnected', 'stopped', 'reconnecting'];

export const aFrame: Countable = { type: 'frame' };
export const aHole: Countable = { type: 'gap' };

/** Creates a gap of the log itself, between two times in epoch ms. */
export const logGap = (meaning: keyof typeof logMeanings, from: number, to: number, frames?: number): Gap =>
  gapOfMissed({ from, to, frames }, logMeanings[meaning]);
