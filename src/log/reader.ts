// A reader of a log: history and live are one loop over the same bytes.
//
// In: a place to begin, and the bytes of the segments. Out: records in the order of their offsets, each once.
// Never: an offset twice or out of order, or a missing offset without a gap in its place.
import { constants } from 'node:buffer';
import { statSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Disconnected, Gap, LifecycleEvent, Watermark } from '../protocol/event.js';
import type { Frame } from '../protocol/frame.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, type FeedState, noFeed, snapshotSince } from '../protocol/feed-state.js';
import { isTime } from '../protocol/type-guards.js';
import type { Bell } from './bell.js';
import { LogError, logFailures, toLogError } from './log-error.js';
import {
  countsOf,
  type Header,
  isOther,
  logGap,
  newline,
  readHeader,
  type Recorded,
  readRecord,
  scan,
  stamped,
  type Stored,
} from './lines.js';
import {
  type Disk,
  headOf,
  listSegments,
  readAll,
  readPadded,
  type Segment,
  segmentPath,
  type Tip,
  tipPath,
} from './segments.js';

/** Where a record is. */
export interface LogPlace {
  readonly offset: number;
  /** The id of the log. */
  readonly log: string;
  /** The frames of the feed up to the record, stored or counted in a gap; `undefined` if that is unknown. */
  readonly frames: number | undefined;
}

/**
 * A frame or an event of a log with its place, a gap that the reader found, or the time that the log has reached.
 *
 * A log of a cluster also has its events, such as `owner-changed`.
 */
export type LogRecord = ((Frame | LifecycleEvent) & LogPlace) | Gap | Watermark;

/** Where a reader begins. `offset`: the next record; with the id of its log. `time`: epoch ms. */
export type From =
  'earliest' | 'latest' | { readonly offset: number; readonly log?: string } | { readonly time: number };

export const isFrom = (value: unknown): boolean => {
  if (value === 'earliest' || value === 'latest') return true;
  const { offset, time, log } = Object(value) as {
    readonly offset?: unknown;
    readonly time?: unknown;
    readonly log?: unknown;
  };
  if (offset === undefined) return isTime(time);
  return Number.isSafeInteger(offset) && (offset as number) >= 0 && (log === undefined || typeof log === 'string');
};

export const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

export interface ReaderSettings {
  /** Whether the log is a file: a recording, or the output of `listen --json`. Its lines have no offsets. */
  readonly isFile?: boolean;
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
}

const chunkBytes = 256 * 1024;
const listMs = 100;
/** A writer that has not written its tip for so long has ended, or does not respond. */
export const goneMs = 2_000;

/** An open segment. */
interface Current extends Segment {
  readonly fd: number | undefined;
  /** The content of a compressed segment. */
  readonly bytes: Buffer | undefined;
  header: Header | undefined;
  /** The position of the next line. */
  position: number;
  hasRecords: boolean;
}

export class LogReader {
  readonly #folder: string;
  readonly #settings: ReaderSettings;
  readonly #machine: ReaderMachine;
  #current: Current | undefined;
  #buffer = Buffer.allocUnsafe(chunkBytes);
  /** The lines in the buffer that are not read yet: `#buffer` from `#from` to `#to`. */
  #from = 0;
  #to = 0;
  /** The next offset; `undefined` before the first header. */
  #next: number | undefined;
  #frames: number | undefined;
  #holes = 0;
  #at: number | undefined;
  #log: string | undefined;
  #state: FeedState = noFeed;
  /** Says which records come before the place to begin; `undefined` once that is reached. */
  #isBefore: ((offset: number, at: number) => boolean) | undefined;
  #out: LogRecord[] = [];
  #listedAt = -Infinity;
  #watermark = -Infinity;
  #isGone = false;
  #hasDamage = false;
  #isReading = false;
  #isClosed = false;

  constructor(folder: string, settings: ReaderSettings, machine: ReaderMachine) {
    this.#folder = folder;
    this.#settings = settings;
    this.#machine = machine;
    const { from } = settings;
    if (typeof from === 'object')
      this.#isBefore = 'offset' in from ? (offset) => offset < from.offset : (_, at) => at < from.time;
    else this.#isBefore = () => from === 'latest';
  }

  /** The place after the last record of `next`; `undefined` before the first one. */
  get position(): LogPosition | undefined {
    if (this.#log === undefined || this.#next === undefined) return undefined;
    return {
      offset: this.#next,
      ...(this.#frames !== undefined && { frames: this.#frames }),
      ...(this.#at !== undefined && { at: this.#at }),
      log: this.#log,
    };
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
        if (this.#atEnd()) return this.#flushed();
        if (!this.#settings.follow) return undefined;
        await this.#machine.bell.heard();
      }
      return undefined;
    } catch (cause) {
      throw toLogError('read', this.#folder, cause);
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
    return records;
  }

  /** Reads bytes after the last line; `false` at the end of the segment. */
  async #read(): Promise<boolean> {
    const current = this.#current;
    if (current === undefined) return false;
    this.#isReading = true;
    // Bytes after the last newline are read again: another writer may have cut them off.
    const bytes = await this.#bytesAt(current.position);
    this.#isReading = false;
    if (this.#isClosed || bytes === 0) return false;
    // Otherwise a large file of another format would be read to its end.
    if (this.#settings.isFile && current.position === 0 && !lineStarts.includes(this.#buffer[0] as number))
      throw notALog(current.path);
    const end = this.#buffer.subarray(0, bytes).lastIndexOf(newline) + 1;
    this.#from = 0;
    this.#to = end;
    if (end > 0) return true;
    if (bytes < this.#buffer.length) return false;
    if (bytes >= constants.MAX_STRING_LENGTH) throw this.#damage(current.position);
    this.#buffer = Buffer.allocUnsafe(bytes * 2);
    return this.#read();
  }

  #bytesAt(position: number): Promise<number> {
    const { fd, bytes } = this.#current as Current;
    const buffer = this.#buffer;
    if (bytes !== undefined) return Promise.resolve(bytes.copy(buffer, 0, position));
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
    if (current !== undefined && !this.#isStale(current) && (await this.#read())) return true;
    this.#enter(found);
    return true;
  }

  /** The segment whose name is the next offset, if it exists. It is created after the last line of this one. */
  #exact(current: Current | undefined): Segment | undefined {
    const offset = this.#next;
    if (current === undefined || offset === undefined || offset === current.offset) return undefined;
    if (this.#settings.isFile) return undefined;
    const path = segmentPath(this.#folder, offset);
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
    // Listing is slow in a large folder. A ring at most 100 ms later finds the segment.
    const isDue = !this.#settings.follow || now() - this.#listedAt >= listMs || now() < this.#listedAt;
    if (!isDue) return undefined;
    this.#listedAt = now();
    const segments = this.#settings.isFile ? filesOf(disk, this.#folder) : listSegments(disk, this.#folder);
    if (segments.length === 0 && !this.#settings.follow) disk.closeSync(disk.openSync(this.#folder, 'r'));
    return current === undefined ? this.#first(segments) : this.#after(current, segments);
  }

  #first(segments: readonly Segment[]): Segment | undefined {
    const { from } = this.#settings;
    if (from === 'earliest' || this.#settings.isFile) return segments[0];
    if (from === 'latest') return segments.at(-1);
    const { disk } = this.#machine;
    const isTooLate = (segment: Segment): boolean =>
      'offset' in from ? segment.offset > from.offset : (headOf(disk, segment).header?.at ?? -Infinity) >= from.time;
    return segments.toReversed().find((segment) => !isTooLate(segment)) ?? segments[0];
  }

  #after(current: Current, segments: readonly Segment[]): Segment | undefined {
    const later = segments.find(({ offset }) => offset > current.offset);
    if (later !== undefined) return later;
    // Removed without a record, and created again by another writer; or the folder was emptied.
    if (this.#isStale(current)) return segments.find(({ offset }) => offset >= current.offset) ?? segments.at(0);
    return undefined;
  }

  #isStale({ fd, hasRecords }: Current): boolean {
    if (fd === undefined || this.#settings.isFile) return false;
    const isRemoved = this.#machine.disk.fstatSync(fd).nlink === 0;
    return (
      isRemoved &&
      (!hasRecords ||
        listSegments(this.#machine.disk, this.#folder).every(
          ({ offset }) => offset <= (this.#current as Current).offset,
        ))
    );
  }

  #enter(segment: Segment): void {
    const { disk } = this.#machine;
    let fd: number;
    try {
      fd = disk.openSync(segment.path, 'r');
    } catch (error) {
      // Retention or compression was faster: the next listing finds another name.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.#listedAt = -Infinity;
      return;
    }
    this.#closeFile();
    let bytes: Buffer | undefined;
    if (segment.isCompressed) {
      try {
        bytes = gunzipSync(readAll(disk, fd));
      } finally {
        disk.closeSync(fd);
      }
    }
    this.#current = {
      ...segment,
      fd: bytes === undefined ? fd : undefined,
      bytes,
      header: this.#settings.isFile ? fileHeader : undefined,
      position: 0,
      hasRecords: false,
    };
    if (this.#settings.isFile) {
      this.#next ??= 0;
      this.#frames ??= 0;
      this.#log ??= '';
    }
    this.#from = this.#to = 0;
    this.#listedAt = -Infinity;
  }

  /** Takes complete lines of the buffer. */
  #take(max: number): void {
    const current = this.#current;
    if (current === undefined) return;
    while (this.#from < this.#to && this.#out.length < max) {
      const end = this.#buffer.indexOf(newline, this.#from);
      const from = this.#from;
      this.#from = end + 1;
      const at = current.position;
      current.position += end + 1 - from;
      if (current.header === undefined) this.#header(current, this.#buffer.subarray(from, end));
      else if (this.#settings.isFile) this.#fileLine(from, end, at);
      else this.#line(current, from, end, at);
    }
  }

  #header(current: Current, line: Buffer): void {
    const header = readHeader(line);
    if (header === undefined) {
      this.#damaged(0);
      current.header = { offset: current.offset, log: this.#log ?? '', boot: '', frames: 0, holes: 0, state: [] };
      this.#frames = undefined;
      this.#next ??= current.offset;
      return;
    }
    current.header = header;
    const { from } = this.#settings;
    const isFirst = this.#next === undefined;
    const wanted = isFirst && typeof from === 'object' && 'offset' in from ? from : undefined;
    const isOther = (this.#log ?? wanted?.log ?? header.log) !== header.log;
    const next = this.#next ?? wanted?.offset ?? header.offset;
    if (isFirst) this.#at = header.at;
    if (isOther) this.#restart(header);
    else if (header.offset > next && !(isFirst && wanted === undefined) && !hasOwnGap(header, next)) this.#lost(header);
    else if (header.offset > next) this.#hasDamage = false;
    if (isFirst || header.offset > next || isOther)
      this.#state = header.state.reduce(
        (state, event) => afterEvent(state, event, event.type === 'gap' ? event.to : event.at),
        noFeed,
      );
    this.#log = header.log;
    if (isFirst || isOther || header.offset >= next) this.#next = header.offset;
    if (this.#next === header.offset) ({ frames: this.#frames, holes: this.#holes } = header);
    this.#at ??= header.at;
    if (isOther) this.#isBefore = undefined;
  }

  /** The folder was emptied, or this is another log: nothing is known about what is missing. */
  #restart({ at }: Header): void {
    this.#begin();
    const to = at ?? this.#machine.now();
    this.#out.push(logGap('behind', { from: Math.min(this.#at ?? to, to), to }));
  }

  #lost({ frames, holes, at }: Header): void {
    this.#begin();
    const to = at ?? this.#machine.now();
    const isDamage = this.#hasDamage;
    const missed = this.#frames === undefined || isDamage || holes !== this.#holes ? undefined : frames - this.#frames;
    this.#hasDamage = false;
    this.#out.push(
      logGap(isDamage ? 'damaged' : 'behind', {
        from: Math.min(this.#at ?? to, to),
        to,
        missed: missed !== undefined && missed >= 0 ? missed : undefined,
      }),
    );
  }

  #line(current: Current, from: number, to: number, position: number): void {
    const next = this.#next as number;
    const scanned = scan(this.#buffer, from, to);
    if (scanned === undefined) return this.#damaged(position);
    const { offset, isFrame, at } = scanned;
    if (offset < next) return;
    current.hasRecords = true;
    const isBefore = this.#isBefore?.(offset, at) === true;
    // Frames before the place to begin are not parsed.
    const record = isBefore && isFrame ? undefined : readRecord(this.#buffer.subarray(from, to));
    if (record === undefined && !(isBefore && isFrame)) return this.#damaged(position);
    this.#record(record, { offset, at, isBefore });
  }

  /** A line of a file: its offset is its number. */
  #fileLine(from: number, to: number, position: number): void {
    const line = this.#buffer.subarray(from, to);
    const offset = this.#next as number;
    const record = readRecord(line, offset);
    if (record !== undefined) {
      const at = Math.max(stamped(record as Stored), this.#at ?? -Infinity);
      return this.#record(record, { offset, at, isBefore: this.#isBefore?.(offset, at) === true });
    }
    this.#next = offset + 1;
    if (isOther(line)) return;
    if (offset === 0) throw notALog((this.#current as Current).path);
    this.#damaged(position);
  }

  /** @param record - `undefined` for a frame before the place to begin */
  #record(
    record: Recorded | undefined,
    { offset, at, isBefore }: { offset: number; at: number; isBefore: boolean },
  ): void {
    const next = this.#next as number;
    if (offset > next || this.#hasDamage) this.#emitDamage(offset, at);
    if (!isBefore) this.#begin();
    this.#reopen();
    const { frames, holes } = record === undefined ? countsOf({ type: 'frame' }) : countsOf(record);
    if (this.#frames !== undefined) this.#frames += frames;
    this.#holes += holes;
    this.#next = offset + 1;
    this.#at = at;
    if (record !== undefined) {
      this.#fold(record, at);
      if (!isBefore) this.#emit(record as LogRecord);
    } else this.#state = afterItem(this.#state, at);
  }

  #fold(record: Recorded, at: number): void {
    if (record.type === 'frame') this.#state = afterItem(this.#state, record.receivedAt, record);
    else this.#state = afterEvent(this.#state, record, at);
  }

  /** After the event that the writer is gone, the status of the feed is that before its next record. */
  #reopen(): void {
    if (!this.#isGone) return;
    this.#isGone = false;
    for (const event of snapshotSince(this.#state.events, this.#at as number)) this.#out.push(this.#here(event));
  }

  #emit(record: LogRecord): void {
    this.#out.push('offset' in record ? Object.assign(record, this.#place) : record);
  }

  get #place(): Omit<LogPlace, 'offset'> {
    return { log: this.#log ?? '', frames: this.#frames };
  }

  /** The place to begin is reached: first the status of the feed there. */
  #begin(): void {
    if (this.#isBefore === undefined) return;
    this.#isBefore = undefined;
    if (this.#at === undefined) return;
    for (const event of snapshotSince(this.#state.events, this.#at)) this.#out.push(this.#here(event));
  }

  /** Gives an event of the reader the place before the next record. */
  #here(event: LifecycleEvent): LogRecord {
    return { ...event, offset: (this.#next as number) - 1, ...this.#place };
  }

  #damage(position: number): LogError {
    const { path } = this.#current as Current;
    return new LogError(
      'log-corrupt',
      `The line at byte ${position} of ${path} is damaged. Check the disk; to read on behind it, set \`onDamage\` to 'gap'.`,
      { path, lineAt: position },
    );
  }

  #damaged(position: number): void {
    if (this.#settings.onDamage === 'error') throw this.#damage(position);
    this.#hasDamage = true;
  }

  #emitDamage(offset: number, at: number): void {
    this.#hasDamage = false;
    this.#frames = undefined;
    this.#next = offset;
    if (this.#isBefore === undefined) this.#out.push(logGap('damaged', { from: Math.min(this.#at ?? at, at), to: at }));
  }

  /** Returns whether there is something to emit at the end: the place to begin, the time, or that the writer is gone. */
  #atEnd(): boolean {
    const { from, isFile } = this.#settings;
    const follow = this.#settings.follow && isFile !== true;
    const isBeyond =
      this.#isBefore !== undefined &&
      typeof from === 'object' &&
      'offset' in from &&
      this.#next !== undefined &&
      this.#next < from.offset;
    if (isBeyond) {
      const at = this.#at ?? this.#machine.now();
      this.#begin();
      this.#out.push(logGap('behind', { from: at, to: at }));
    } else if (from === 'latest' && this.#current?.header !== undefined) this.#begin();
    if (follow && this.#isBefore === undefined) this.#tip();
    return this.#out.length > 0;
  }

  #tip(): void {
    const { disk, now } = this.#machine;
    const tip = readPadded<Tip>(disk, tipPath(this.#folder));
    if (tip === undefined || tip.offset !== this.#next || tip.log !== this.#log) return;
    const isGone = tip.closed || now() - tip.writtenAt > goneMs;
    if (isGone && !this.#isGone) this.#out.push(this.#here(this.#writerGone(Math.max(tip.at, this.#at ?? -Infinity))));
    this.#isGone ||= isGone;
    if (isGone || tip.at <= this.#watermark) return;
    this.#watermark = tip.at;
    this.#out.push({ type: 'watermark', at: tip.at });
  }

  #writerGone(at: number): Disconnected {
    return {
      type: 'disconnected',
      at,
      failure: createFailure(logFailures.writerGone, { stage: 'stream', endedAt: at }),
    };
  }
}

const lineStarts = [0x7b, newline, 0x0d];

const fileHeader: Header = { offset: 0, log: '', boot: '', frames: 0, holes: 0, state: [] };

const notALog = (path: string): LogError =>
  new LogError(
    'log-corrupt',
    `The file ${path} is not a log: its first line is not one that \`rx-trade-feed listen --json\` or a recording of version 0.2 contains. Check the path.`,
    { path, lineAt: 0 },
  );

/** A recording of version 0.2 continues in other files: `feed.ndjson.1`, `feed.ndjson.2`, … */
export const filesOf = (disk: Disk, path: string): readonly Segment[] => {
  const files: Segment[] = [];
  for (let file = path; ; file = `${path}.${files.length}`) {
    try {
      disk.closeSync(disk.openSync(file, 'r'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return files;
      throw error;
    }
    files.push({ offset: files.length, path: file, isCompressed: file.endsWith('.gz') });
  }
};

/** After a power failure the log has a gap of its own for whoever was at the end. */
const hasOwnGap = ({ after }: Header, next: number): boolean => typeof after === 'number' && next >= after;
