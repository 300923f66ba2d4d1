// What the lines of a log tell: the records, and the gaps, statuses and times that a reader adds to them.
//
// In: the lines of the segments, in order, each segment with its header first; the tip, at the end of the log. Out: records.
// Never: a record twice or out of order, or a missing one without a gap in its place.
import type { LifecycleEvent, Watermark } from '../protocol/event.js';
import type { Frame } from '../protocol/frame.js';
import { logMeanings } from '../protocol/failures/classify.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import {
  afterEvent,
  afterItem,
  type FeedState,
  noFeed,
  openedIn,
  snapshotNotBefore,
  snapshotSince,
} from '../protocol/feed-state.js';
import { isTime } from '../protocol/type-guards.js';
import { LogError } from './log-error.js';
import {
  afterRecord,
  type Header,
  isOther,
  logGap,
  type Place,
  readHeader,
  type Recorded,
  readRecord,
  scan,
  stamped,
} from './lines.js';
import type { Tip } from './segments.js';

/**
 * What a log emits: a frame or an event with its offset; an event without one, which the reader adds (the status where it
 * begins, a gap in place of records that are gone, `log-writer-gone`); or the time that the log has reached. `position`
 * is the place after it: pass it as `from` to go on there.
 *
 * A log of a cluster also has its events, such as `owner-changed`.
 */
export type LogRecord =
  | ((Frame | LifecycleEvent) & { readonly offset: number; readonly position: LogPosition })
  | (LifecycleEvent & { readonly offset?: undefined; readonly position?: LogPosition | undefined })
  | Watermark;

/** Where a reader begins. `offset`: the next record; with the id of its log. `time`: epoch ms. */
export type From =
  'earliest' | 'latest' | (Pick<LogPosition, 'offset'> & Partial<LogPosition>) | { readonly time: number };

export const isFrom = (value: unknown): boolean => {
  if (value === 'earliest' || value === 'latest') return true;
  const { offset, time, log } = Object(value) as Readonly<Record<string, unknown>>;
  if (offset === undefined) return isTime(time);
  return Number.isSafeInteger(offset) && (offset as number) >= 0 && (log === undefined || typeof log === 'string');
};

export interface ReaderSettings {
  readonly from: From;
  readonly follow: boolean;
  readonly onDamage: 'gap' | 'error';
}

/** The place after a record: pass it as `from` to go on there. */
export interface LogPosition {
  /** The next offset. */
  readonly offset: number;
  /** The frames of the feed before it, stored or counted in a gap; `undefined` if that is unknown. */
  readonly frames?: number;
  /** The gaps before it without a number. */
  readonly holes?: number;
  /** The time of the record before it, in epoch ms. */
  readonly at?: number;
  /** The id of the log. */
  readonly log: string;
}

/** A writer that has not written its tip for so long has ended, or does not respond. */
export const goneMs = 2_000;

/** Where a line is. */
interface LineAt {
  readonly path: string;
  /** In bytes. */
  readonly position: number;
}

export class Records {
  readonly #settings: ReaderSettings;
  readonly #now: () => number;
  /** `undefined` before the first header. Its `frames` are NaN after damaged lines, up to the next header. */
  #place: Place | undefined;
  #log: string | undefined;
  #state: FeedState = noFeed;
  /** Says which records come before the place to begin; `undefined` once that is reached. */
  #isBefore: ((offset: number, at: number) => boolean) | undefined;
  #out: LogRecord[] = [];
  /** The last watermark; `undefined` until the end of the log was reached once. */
  #watermark: number | undefined;
  #isGone = false;
  #hasDamage = false;

  constructor(settings: ReaderSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
    const { from } = settings;
    if (typeof from === 'object')
      this.#isBefore = 'offset' in from ? (offset) => offset < from.offset : (_, at) => at < from.time;
    else this.#isBefore = () => from === 'latest';
  }

  /** The place after the last record; `undefined` before the first header. */
  get position(): LogPosition | undefined {
    const { offset, frames, holes, at } = this.#place ?? noPlace;
    const log = this.#log;
    if (log === undefined || offset < 0) return undefined;
    return (Number.isNaN(frames) ? { offset, at, log } : { offset, frames, holes, at, log }) as LogPosition;
  }

  /** How many records wait to be taken. */
  get length(): number {
    return this.#out.length;
  }

  /** Returns the records that wait. */
  take(): LogRecord[] {
    const records = this.#out;
    this.#out = [];
    const { at = -Infinity } = this.#place ?? {};
    // Whoever has received a watermark needs one more for the time to go on.
    if (this.#watermark !== undefined && at > this.#watermark) {
      this.#watermark = at;
      records.push({ type: 'watermark', at });
    }
    return records;
  }

  /** A file is a log without headers and offsets. */
  beginFile(): void {
    this.#place ??= { offset: 0, frames: 0, holes: 0 };
    this.#log = '';
  }

  /** @param first - the offset in the name of the segment */
  header(line: Buffer, first: number, where: LineAt): void {
    const header = readHeader(line);
    if (header === undefined) {
      this.damaged(where);
      this.#place = { offset: first, holes: 0, ...this.#place, frames: NaN };
      this.#log ??= '';
      return;
    }
    const { from } = this.#settings;
    const { offset, frames, holes, at } = header;
    const place = { offset, frames, holes, at };
    const isFirst = this.#place === undefined;
    const wanted = isFirst && typeof from === 'object' && 'offset' in from ? from : undefined;
    const known = this.#log || wanted?.log || header.log;
    const next = this.#place?.offset ?? wanted?.offset ?? offset;
    this.#log = header.log;
    const { frames: ofWanted = NaN, holes: holesOfWanted = 0 } = wanted ?? {};
    const before = this.#place ?? (wanted && { ...wanted, frames: ofWanted, holes: holesOfWanted });
    if (isFirst || offset > next || known !== header.log) {
      this.#place = place;
      this.#state = header.state.reduce((state, event) => afterEvent(state, event, stamped(event)), noFeed);
    } else if (offset === next) this.#place = place;
    if (known !== header.log) this.#lost(before, place, false);
    else if (offset > next && !(isFirst && wanted === undefined) && !hasOwnGap(header, next))
      this.#lost(before, place, true);
    this.#hasDamage = false;
  }

  /** Emits the gap in place of the records between two places, and the status after it. */
  #lost(before: Place | undefined, { offset, frames, holes, at }: Place, isSameLog: boolean): void {
    const to = at ?? this.#now();
    if (isSameLog && this.#isBefore?.(offset - 1, to) === true) return;
    this.#isBefore = undefined;
    const missed = isSameLog && before?.holes === holes ? frames - before.frames : NaN;
    const gap = logGap(this.#hasDamage ? 'damaged' : 'behind', {
      from: Math.min(before?.at ?? to, to),
      to,
      missed: missed >= 0 ? missed : undefined,
    });
    const { events } = this.#state;
    const status = snapshotNotBefore(events, to);
    for (const event of openedIn(events) ? [...status, gap] : [gap, ...status]) this.#add(event);
  }

  /** Returns whether the line is a record. */
  line(bytes: Buffer, from: number, to: number, where: LineAt): boolean {
    const { offset: next } = this.#place as Place;
    const scanned = scan(bytes, from, to);
    if (scanned === undefined) return this.damaged(where);
    const { offset, isFrame, at } = scanned;
    if (offset < next) return false;
    const isSkipped = isFrame && this.#isBefore?.(offset, at) === true;
    // Frames before the place to begin are not parsed.
    const record = isSkipped ? undefined : readRecord(bytes.subarray(from, to));
    if (record === undefined && !isSkipped) return this.damaged(where);
    this.#record(record, offset, at);
    return true;
  }

  /** A line of a file: its offset is its number. */
  fileLine(line: Buffer, where: LineAt): void {
    const place = this.#place as Place;
    const { offset } = place;
    const record = readRecord(line, offset);
    if (record !== undefined) return this.#record(record, offset, Math.max(stamped(record), place.at ?? -Infinity));
    this.#place = { ...place, offset: offset + 1 };
    if (isOther(line)) return;
    if (offset === 0) throw notALog(where.path);
    this.damaged(where);
  }

  /** @param record - `undefined` for a frame before the place to begin */
  #record(record: Recorded | undefined, offset: number, at: number): void {
    const isBefore = this.#isBefore?.(offset, at) === true;
    let place = this.#place as Place;
    if (offset > place.offset || this.#hasDamage) {
      this.#hasDamage = false;
      if (this.#isBefore === undefined) this.#add(logGap('damaged', { from: Math.min(place.at ?? at, at), to: at }));
      place = { ...place, offset, frames: NaN };
    }
    if (!isBefore) this.#begin();
    if (!isBefore && this.#isGone) this.#writerIsBack(record);
    this.#place = afterRecord(place, record ?? aFrame, at);
    if (record === undefined) {
      this.#state = afterItem(this.#state, at);
      return;
    }
    this.#state =
      record.type === 'frame'
        ? afterItem(this.#state, record.receivedAt, record)
        : afterEvent(this.#state, record, place.at);
    if (isBefore) return;
    const emitted = record as Recorded & { position?: LogPosition };
    // `Object.assign` takes 200 ns more.
    emitted.position = this.position as LogPosition;
    this.#out.push(emitted as LogRecord);
  }

  /** Adds an event that the log does not have. */
  #add(event: LifecycleEvent): void {
    this.#out.push({ ...event, offset: undefined, position: this.position });
  }

  /** Adds the status of the feed after the last record. */
  #addStatus(): void {
    const at = this.#place?.at;
    if (at !== undefined) for (const event of snapshotSince(this.#state.events, at)) this.#add(event);
  }

  /** The place to begin is reached: first the status of the feed there. */
  #begin(): void {
    if (this.#isBefore === undefined) return;
    this.#isBefore = undefined;
    this.#addStatus();
  }

  /** Returns `false`. */
  damaged(where: LineAt): false {
    if (this.#settings.onDamage === 'error') throw damageAt(where);
    this.#hasDamage = true;
    return false;
  }

  /** Adds what the end of the log tells: the place to begin, the time, or that the writer is gone. */
  atEnd(readTip: () => Tip | undefined): void {
    const { from, follow } = this.#settings;
    if (this.#place === undefined) return;
    if (this.#isBefore !== undefined && typeof from === 'object' && 'offset' in from) {
      // With the id of the log, a power failure has removed only what this reader has received.
      const isUnknown = this.#place.offset < from.offset && from.log === undefined;
      this.#begin();
      const at = this.#place.at ?? this.#now();
      if (isUnknown) this.#add(logGap('behind', { from: at, to: at }));
    } else if (from === 'latest') this.#begin();
    if (follow && this.#isBefore === undefined) this.#tip(readTip(), this.#place);
  }

  #tip(tip: Tip | undefined, { offset, at: last = -Infinity }: Place): void {
    // A tip that is ahead is about records that are not read yet.
    if (tip === undefined || tip.offset > offset || tip.log !== this.#log) return;
    const at = Math.max(tip.at, last);
    const isGone = tip.closed || this.#now() - tip.writtenAt > goneMs;
    if (isGone && !this.#isGone)
      this.#add({
        ...{ type: 'disconnected', at },
        failure: createFailure(logMeanings.writerGone, { stage: 'stream', endedAt: at }),
      });
    // After a pause of the same writer nothing is missing. Another one says itself how it goes on.
    if (!isGone && this.#isGone && tip.run < offset) this.#writerIsBack();
    this.#isGone ||= isGone;
    if (isGone || at <= (this.#watermark ?? -Infinity)) return;
    this.#watermark = at;
    this.#out.push({ type: 'watermark', at });
  }

  /** @param record - the first one since then. It may itself tell how the feed goes on */
  #writerIsBack(record?: Recorded): void {
    this.#isGone = false;
    if (record === undefined || record.type === 'frame' || record.type === 'gap') this.#addStatus();
  }
}

const aFrame = { type: 'frame' };
const noPlace: Place = { offset: -1, frames: NaN, holes: 0 };

export const damageAt = ({ path, position }: LineAt): LogError =>
  new LogError('log-corrupt', `The line at byte ${position} of ${path} is damaged.`, { path, lineAt: position });

export const notALog = (path: string): LogError =>
  new LogError(
    'log-corrupt',
    `The file ${path} is not a log: its first line is not one that \`rx-trade-feed listen --json\` or a recording contains.`,
    { path, lineAt: 0 },
  );

/** After a power failure the log itself has the gap, for a reader that was at the end. */
const hasOwnGap = ({ after }: Header, next: number): boolean => typeof after === 'number' && next >= after;
