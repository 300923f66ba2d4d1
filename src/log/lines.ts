// The lines of a log: a header for each segment, and one line for each record. A record is complete when it has its newline.
import { isUtf8 } from 'node:buffer';
import { writeFrame } from '../operators/node/write-frame.js';
import { isFrame, isLifecycle, timeOf } from '../operators/items/item.js';
import { type LineFields, readEventLine, readFrame, readGap, writeEventLine } from '../protocol/event-line.js';
import type { ClusterLifecycleEvent, Gap, LifecycleEvent } from '../protocol/event.js';
import type { AnyFrame, Frame } from '../protocol/frame.js';
import { gapOfMissed, type Snapshot } from '../protocol/feed-state.js';
import { isTime } from '../protocol/type-guards.js';
import { logMeanings } from '../protocol/failures/classify.js';

export const newline = 0x0a;

/** What a log stores: frames, and all events but watermarks. */
export type Stored = AnyFrame | Exclude<ClusterLifecycleEvent, { readonly type: 'watermark' }>;

/** The place between two records. */
export interface Place {
  /** The next offset. */
  readonly offset: number;
  /** The frames of the feed before it: stored, or counted in a gap. */
  readonly frames: number;
  /** The gaps before it with an unknown number of frames. */
  readonly holes: number;
  /** The log time of the record before it, in epoch ms; `undefined` at the beginning of a log. */
  readonly at?: number | undefined;
}

/** The first line of a segment. It is no record. */
export interface Header extends Place {
  /** The id of the log: another one if the folder was emptied. */
  readonly log: string;
  /** The boot of the machine, to notice a power failure. */
  readonly boot: string;
  /** The status of the feed before this segment. */
  readonly state: Snapshot;
  /** After a power failure: the end of the remaining records; `null` if none remain. */
  readonly after?: number | null | undefined;
}

export const headerLine = ({ offset, ...fields }: Header): string =>
  `${JSON.stringify({ offset, type: 'segment', v: 1, ...fields })}\n`;

/** Reads a header; `undefined` for any other line. */
export const readHeader = (line: Buffer): Header | undefined => {
  const fields = objectIn(line);
  if (fields?.['type'] !== 'segment' || !Number.isSafeInteger(fields['offset'])) return undefined;
  const { frames, holes, log, boot, state } = fields as unknown as Header;
  if (typeof frames !== 'number' || typeof holes !== 'number' || typeof log !== 'string' || typeof boot !== 'string')
    return undefined;
  if (!Array.isArray(state)) return undefined;
  const events = state.map((event) => readEventLine(JSON.stringify(event), 0) as LifecycleEvent);
  return { ...(fields as unknown as Header), state: events };
};

/** Returns when a record happened, in epoch ms. */
export const stamped = (record: unknown): number => timeOf(record) as number;

/**
 * Returns the line of a record.
 *
 * @param at - its log time, in epoch ms, if that is not its own time: a clock was set back
 */
export const recordLine = (offset: number, record: Stored, at: number): string => {
  const line = record.type === 'frame' ? writeFrame(record) : eventLine(record);
  return `{"offset":${offset},${at === stamped(record) ? '' : `"at":${at},`}${line.slice(1)}\n`;
};

// A custom source may have the type behind other fields.
const eventLine = ({ type, ...fields }: Exclude<Stored, AnyFrame>): string =>
  writeEventLine({ type, ...fields } as LifecycleEvent);

/** What a scan needs of a line. */
export interface Scanned {
  readonly offset: number;
  readonly isFrame: boolean;
  /** The log time, in epoch ms. */
  readonly at: number;
}

// The order of the first keys is fixed, so a frame is scanned without `JSON.parse`.
const start =
  /^\{"offset":(\d{1,16}),(?:"at":(-?[\d.e+]+),)?"type":"([a-z-]+)"(?:,"feed":"\w+","connection":[\d.e+-]+,"receivedAt":(-?[\d.e+]+),)?/;
const maxStartBytes = 160;

/** Scans a line; `undefined` if it is no record. */
export const scan = (bytes: Buffer, from: number, to: number): Scanned | undefined => {
  const [match, offset, at, type, receivedAt] =
    start.exec(bytes.toString('latin1', from, Math.min(to, from + maxStartBytes))) ?? [];
  if (match === undefined || bytes[to - 1] !== closingBrace) return undefined;
  if (type === 'frame')
    return receivedAt === undefined
      ? undefined
      : { offset: Number(offset), isFrame: true, at: Number(at ?? receivedAt) };
  const event = readRecord(bytes.subarray(from, to));
  if (event === undefined) return undefined;
  // An event may have a field `at` as well, after its type.
  return { offset: Number(offset), isFrame: false, at: at === undefined ? stamped(event) : Number(at) };
};

const closingBrace = 0x7d;

/** A frame or an event of a log, with its offset. */
export type Recorded = (Frame | ClusterLifecycleEvent) & { readonly offset: number };

/** Reads a record; `undefined` for a line that is none. Its bytes are copied. */
export const readRecord = (line: Buffer, offset?: number): Recorded | undefined => {
  try {
    const fields = objectIn(line);
    if (fields === undefined) return undefined;
    const event = eventIn(fields);
    return event && Object.assign(event, { offset: offset ?? (fields['offset'] as number) });
  } catch {
    // A field is wrong. The reader reports the line as damaged.
    return undefined;
  }
};

/** Whether a line of a file is empty, or has a type that this version does not know. */
export const isOther = (line: Buffer): boolean => {
  if (line.length === 0 || (line.length === 1 && line[0] === 0x0d)) return true;
  const type = objectIn(line)?.['type'];
  return typeof type === 'string' && !knownTypes.includes(type);
};

const knownTypes = ['frame', 'gap', 'opened', 'disconnected', 'stopped', 'reconnecting'];

const eventIn = (fields: LineFields): Frame | ClusterLifecycleEvent | undefined => {
  if (fields['type'] === 'frame') return readFrame(fields, payloads);
  const { offset: _offset, at, ...others } = fields;
  // The log time of a gap is no field of it.
  if (fields['type'] === 'gap') return readGap(others);
  const rest = { ...others, at };
  const event = readEventLine(JSON.stringify(rest), 0) as LifecycleEvent | undefined;
  return event ?? (isLifecycle(rest) ? rest : undefined);
};

/** Returns the place after a record. */
export const afterRecord = (place: Place, record: Countable, at: number): Place => {
  const { offset, frames, holes } = place;
  const counted = record.type === 'frame' ? 1 : record.type === 'gap' ? record.missed : 0;
  return counted === undefined
    ? { offset: offset + 1, frames, holes: holes + 1, at }
    : { offset: offset + 1, frames: frames + counted, holes, at };
};

type Countable = { readonly type: string; readonly missed?: number };

const payloads = {
  utf8: (text: string) => Buffer.from(text, 'utf8'),
  base64: (text: string) => Buffer.from(text, 'base64'),
};

const objectIn = (line: Buffer): LineFields | undefined => {
  if (!isUtf8(line)) return undefined;
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as LineFields) : undefined;
  } catch {
    // Not JSON: the reader reports the line as damaged.
    return undefined;
  }
};

interface GapFields {
  readonly from: number;
  readonly to: number;
  readonly missed?: number | undefined;
}

/** Creates a gap of the log itself. Times in epoch ms. */
export const logGap = (meaning: keyof typeof logMeanings, { from, to, missed }: GapFields): Gap =>
  gapOfMissed({ from, to, frames: missed }, logMeanings[meaning]);

export const isStored = (event: unknown): event is Stored =>
  (isFrame(event) || (isLifecycle(event) && event.type !== 'watermark')) && isTime(timeOf(event));
