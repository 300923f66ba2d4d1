// A reader of a log: history and live are one loop over the same bytes.
//
// In: a place to begin, and the bytes of the segments. Out: records in the order of their offsets, each once.
// Never: an offset twice or out of order, or a missing offset without a gap in its place.
import { constants } from 'node:buffer';
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
import type { Bell } from './bell.js';
import { LogError, toLogError } from './log-error.js';
import {
  afterRecord,
  type Header,
  isOther,
  logGap,
  newline,
  type Place,
  readHeader,
  type Recorded,
  readRecord,
  scan,
  stamped,
} from './lines.js';
import {
  type Disk,
  filesOf,
  headOf,
  listSegments,
  readAll,
  readPadded,
  type Segment,
  segmentPath,
  type Tip,
  tipPath,
} from './segments.js';

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

/** What a reader uses of its machine. A simulation has another one. */
export interface ReaderMachine {
  readonly disk: Disk;
  readonly now: () => number;
  readonly bell: Bell;
  readonly gunzip: (bytes: Buffer) => Promise<Buffer>;
  /** Resolves in another turn of the event loop. */
  readonly turn: () => Promise<unknown>;
  readonly bufferBytes: number;
}

const listMs = 100;
/** A writer that has not written its tip for so long has ended, or does not respond. */
export const goneMs = 2_000;

/** An open segment. */
interface Current extends Segment {
  readonly fd: number | undefined;
  /** The content of a compressed segment. */
  readonly bytes: Buffer | undefined;
  /** The position of the next line. */
  position: number;
  hasHeader: boolean;
  hasRecords: boolean;
}

export class LogReader {
  readonly #path: string;
  /** A file is a log without headers and offsets: a recording, or what `listen --json` prints. */
  readonly #isFile: boolean;
  readonly #settings: ReaderSettings;
  readonly #machine: ReaderMachine;
  #current: Current | undefined;
  #buffer: Buffer;
  /** The lines in the buffer that are not read yet: `#buffer` from `#from` to `#to`. */
  #from = 0;
  #to = 0;
  /** `undefined` before the first header. Its `frames` are NaN after damaged lines, up to the next header. */
  #place: Place | undefined;
  #log: string | undefined;
  #state: FeedState = noFeed;
  /** Says which records come before the place to begin; `undefined` once that is reached. */
  #isBefore: ((offset: number, at: number) => boolean) | undefined;
  #out: LogRecord[] = [];
  #listedAt = -Infinity;
  /** The last watermark; `undefined` until the end of the log was reached once. */
  #watermark: number | undefined;
  #isGone = false;
  #hasDamage = false;
  #isReading = false;
  #isClosed = false;

  constructor(path: string, settings: ReaderSettings, machine: ReaderMachine, isFile = false) {
    this.#path = path;
    this.#isFile = isFile;
    this.#settings = settings;
    this.#machine = machine;
    this.#buffer = Buffer.allocUnsafe(machine.bufferBytes);
    const { from } = settings;
    if (typeof from === 'object')
      this.#isBefore = 'offset' in from ? (offset) => offset < from.offset : (_, at) => at < from.time;
    else this.#isBefore = () => from === 'latest';
  }

  /** The place after the last record of `next`; `undefined` before the first one. */
  get position(): LogPosition | undefined {
    if (this.#log === undefined || this.#place === undefined) return undefined;
    const { offset, frames, holes, at } = this.#place;
    return { offset, ...(!Number.isNaN(frames) && { frames, holes }), ...(at !== undefined && { at }), log: this.#log };
  }

  /** The same, faster: for each record. */
  get #position(): LogPosition {
    const { offset, frames, holes, at } = this.#place as Place;
    const log = this.#log as string;
    return (Number.isNaN(frames) ? { offset, at, log } : { offset, frames, holes, at, log }) as LogPosition;
  }

  /** Resolves with at least one record, and at most `max` of the lines; with `undefined` at the end without `follow`. */
  async next(max = Infinity): Promise<LogRecord[] | undefined> {
    try {
      while (!this.#isClosed) {
        this.#take(max);
        if (this.#out.length > 0) return this.#flushed();
        this.#machine.bell.listen();
        if (await this.#read()) continue;
        if (await this.#advance()) continue;
        if (!this.#isFile) this.#atEnd();
        if (this.#out.length > 0) return this.#flushed();
        if (!this.#settings.follow) return undefined;
        await this.#machine.bell.heard();
      }
      return undefined;
    } catch (cause) {
      throw toLogError('read', this.#path, cause);
    } finally {
      if (this.#isClosed) this.#closeFile();
    }
  }

  /** Ends the reader: a call of `next` that waits resolves with `undefined`. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#machine.bell.close();
    // A read in progress closes the file when it is back.
    if (!this.#isReading) this.#closeFile();
  }

  #closeFile(): void {
    const fd = this.#current?.fd;
    this.#current = undefined;
    if (fd !== undefined) this.#machine.disk.closeSync(fd);
  }

  #flushed(): LogRecord[] {
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

  /** Reads bytes after the last line; `false` at the end of the segment. */
  async #read(): Promise<boolean> {
    const current = this.#current;
    if (current === undefined) return false;
    this.#isReading = true;
    // Bytes after the last newline are read again: another writer may have cut them off.
    const bytes = await this.#bytesAt(current).finally(() => (this.#isReading = false));
    if (this.#isClosed || bytes === 0) return false;
    // Otherwise a large file of another format would be read to its end.
    if (this.#isFile && current.position === 0 && !lineStarts.includes(this.#buffer[0] as number))
      throw notALog(current.path);
    const end = this.#buffer.subarray(0, bytes).lastIndexOf(newline) + 1;
    this.#from = 0;
    this.#to = end;
    if (end > 0) return true;
    if (bytes < this.#buffer.length) return false;
    if (bytes >= constants.MAX_STRING_LENGTH) throw this.#damageAt(current.position);
    this.#buffer = Buffer.allocUnsafe(bytes * 2);
    return this.#read();
  }

  async #bytesAt({ fd, bytes, position }: Current): Promise<number> {
    const buffer = this.#buffer;
    if (bytes !== undefined) {
      await this.#machine.turn();
      return bytes.copy(buffer, 0, position);
    }
    return new Promise((done, fail) => {
      this.#machine.disk.read(fd as number, buffer, 0, buffer.length, position, (error, read) => {
        if (error) fail(error);
        else done(read);
      });
    });
  }

  /** Enters the next segment; `false` if there is none. */
  async #advance(): Promise<boolean> {
    const current = this.#current;
    const found = this.#exact(current) ?? this.#listed(current);
    if (found === undefined) return false;
    // The writer creates a segment after the last line of the one before it. So a second read finds that line.
    if (current !== undefined && !this.#isReplaced(current) && (await this.#read())) return true;
    if (!this.#isClosed) await this.#enter(found);
    return true;
  }

  /** The segment whose name is the next offset, if it exists. It is created after the last line of this one. */
  #exact(current: Current | undefined): Segment | undefined {
    const offset = this.#place?.offset;
    if (this.#isFile || current === undefined || offset === undefined || offset <= current.offset) return undefined;
    const path = segmentPath(this.#path, offset);
    try {
      this.#machine.disk.closeSync(this.#machine.disk.openSync(path, 'r'));
      return { offset, path, isCompressed: false };
    } catch {
      // Not there, or compressed already: the list has it.
      return undefined;
    }
  }

  #listed(current: Current | undefined): Segment | undefined {
    const { now, disk } = this.#machine;
    const { follow } = this.#settings;
    // Listing is slow in a large folder. A ring at most 100 ms later finds the segment.
    if (follow && Math.abs(now() - this.#listedAt) < listMs) return undefined;
    this.#listedAt = now();
    const segments = this.#isFile ? filesOf(disk, this.#path) : listSegments(disk, this.#path);
    // Fails if there is no such folder. A reader that follows may start before the first writer.
    if (segments.length === 0 && !follow) disk.closeSync(disk.openSync(this.#path, 'r'));
    return current === undefined ? this.#first(segments) : this.#after(current, segments);
  }

  #first(segments: readonly Segment[]): Segment | undefined {
    const { from } = this.#settings;
    if (from === 'earliest' || this.#isFile) return segments[0];
    if (from === 'latest') return segments.at(-1);
    const { disk } = this.#machine;
    const isTooLate = (segment: Segment): boolean =>
      'offset' in from ? segment.offset > from.offset : (headOf(disk, segment).header?.at ?? -Infinity) >= from.time;
    return segments.toReversed().find((segment) => !isTooLate(segment)) ?? segments[0];
  }

  #after(current: Current, segments: readonly Segment[]): Segment | undefined {
    const isReplaced = this.#isReplaced(current);
    if (isReplaced && !current.hasRecords) return segments.find(({ offset }) => offset >= current.offset);
    // If the folder was emptied, all offsets may be lower.
    return segments.find(({ offset }) => offset > current.offset) ?? (isReplaced ? segments[0] : undefined);
  }

  /** Retention has removed the file; or a new writer, because it has no record; or the folder was emptied. */
  #isReplaced({ fd }: Current): boolean {
    return !this.#isFile && fd !== undefined && this.#machine.disk.fstatSync(fd).nlink === 0;
  }

  async #enter(segment: Segment): Promise<void> {
    const { disk, gunzip } = this.#machine;
    this.#listedAt = -Infinity;
    let fd: number | undefined;
    try {
      fd = disk.openSync(segment.path, 'r');
    } catch (error) {
      // Retention or compression was faster: the next listing finds another name.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      return;
    }
    this.#closeFile();
    let bytes: Buffer | undefined;
    if (segment.isCompressed) {
      const compressed = readAll(disk, fd);
      disk.closeSync(fd);
      fd = undefined;
      bytes = await gunzip(compressed).catch(() => this.#damaged(segment.path, 0));
      if (this.#isClosed) return;
    }
    this.#current = { ...segment, fd, bytes, position: 0, hasHeader: this.#isFile, hasRecords: segment.isCompressed };
    this.#from = this.#to = 0;
    if (!this.#isFile) return;
    this.#place ??= { offset: 0, frames: 0, holes: 0 };
    this.#log = '';
  }

  /** Takes complete lines of the buffer. */
  #take(max: number): void {
    const current = this.#current;
    if (current === undefined) return;
    while (this.#from < this.#to && this.#out.length < max) {
      const from = this.#from;
      const to = this.#buffer.indexOf(newline, from);
      const position = current.position;
      this.#from = to + 1;
      current.position += to + 1 - from;
      if (!current.hasHeader) this.#header(current, this.#buffer.subarray(from, to));
      else if (this.#isFile) this.#fileLine(this.#buffer.subarray(from, to), position);
      else this.#line(current, from, to, position);
    }
  }

  #header(current: Current, line: Buffer): void {
    current.hasHeader = true;
    const header = readHeader(line);
    if (header === undefined) {
      this.#damaged(current.path, 0);
      this.#place = { offset: current.offset, holes: 0, ...this.#place, frames: NaN };
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
    const to = at ?? this.#machine.now();
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

  #line(current: Current, from: number, to: number, position: number): void {
    const { offset: next } = this.#place as Place;
    const scanned = scan(this.#buffer, from, to);
    if (scanned === undefined) return void this.#damaged(current.path, position);
    const { offset, isFrame, at } = scanned;
    if (offset < next) return;
    const isSkipped = isFrame && this.#isBefore?.(offset, at) === true;
    // Frames before the place to begin are not parsed.
    const record = isSkipped ? undefined : readRecord(this.#buffer.subarray(from, to));
    if (record === undefined && !isSkipped) return void this.#damaged(current.path, position);
    current.hasRecords = true;
    this.#record(record, offset, at);
  }

  /** A line of a file: its offset is its number. */
  #fileLine(line: Buffer, position: number): void {
    const place = this.#place as Place;
    const { offset } = place;
    const record = readRecord(line, offset);
    if (record !== undefined) return this.#record(record, offset, Math.max(stamped(record), place.at ?? -Infinity));
    this.#place = { ...place, offset: offset + 1 };
    if (isOther(line)) return;
    const { path } = this.#current as Current;
    if (offset === 0) throw notALog(path);
    this.#damaged(path, position);
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
    emitted.position = this.#position;
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

  #damageAt(position: number, path = (this.#current as Current).path): LogError {
    return new LogError('log-corrupt', `The line at byte ${position} of ${path} is damaged.`, {
      path,
      lineAt: position,
    });
  }

  #damaged(path: string, position: number): Buffer {
    if (this.#settings.onDamage === 'error') throw this.#damageAt(position, path);
    this.#hasDamage = true;
    return Buffer.alloc(0);
  }

  /** Adds what the end of the log tells: the place to begin, the time, or that the writer is gone. */
  #atEnd(): void {
    const { from, follow } = this.#settings;
    if (this.#place === undefined) return;
    if (this.#isBefore !== undefined && typeof from === 'object' && 'offset' in from) {
      // With the id of the log, a power failure has removed only what this reader has received.
      const isUnknown = this.#place.offset < from.offset && from.log === undefined;
      this.#begin();
      const at = this.#place.at ?? this.#machine.now();
      if (isUnknown) this.#add(logGap('behind', { from: at, to: at }));
    } else if (from === 'latest') this.#begin();
    if (follow && this.#isBefore === undefined) this.#readTip(this.#place);
  }

  #readTip({ offset, at: last = -Infinity }: Place): void {
    const { disk, now } = this.#machine;
    const tip = readPadded<Tip>(disk, tipPath(this.#path));
    // A tip that is ahead is about records that are not read yet.
    if (tip === undefined || tip.offset > offset || tip.log !== this.#log) return;
    const at = Math.max(tip.at, last);
    const isGone = tip.closed || now() - tip.writtenAt > goneMs;
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
const lineStarts = [0x7b, newline, 0x0d];

const notALog = (path: string): LogError =>
  new LogError(
    'log-corrupt',
    `The file ${path} is not a log: its first line is not one that \`rx-trade-feed listen --json\` or a recording contains.`,
    { path, lineAt: 0 },
  );

/** After a power failure the log has a gap of its own for whoever was at the end. */
const hasOwnGap = ({ after }: Header, next: number): boolean => typeof after === 'number' && next >= after;
