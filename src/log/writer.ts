// The one writer of a log.
//
// In: frames and events of a feed. Out: complete lines at the end of the newest segment, and a ring of the bell.
// Never: a byte of a record written over, an offset with a second content, a frame that is neither in the log nor counted in a gap.
import { LineBuffer } from './line-buffer.js';
import type { LockFile } from './advisory-lock.js';
import { EventTime } from '../operators/items/event-time.js';
import { unannouncedStop } from '../operators/items/follow-feed.js';
import { isWatermark } from '../operators/items/item.js';
import { afterEvent, afterItem, type FeedState, noFeed, snapshotSince, stoppedAt } from '../protocol/feed-state.js';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import type { AnyFrame } from '../protocol/frame.js';
import { ring } from './bell.js';
import { closes } from './closing.js';
import { type LogError, toLogError } from './log-error.js';
import {
  countsOf,
  gapCounts,
  type Header,
  headerLine,
  isStored,
  logGap,
  newline,
  readRecord,
  recordLine,
  type Recorded,
  stamped,
  type Stored,
} from './lines.js';
import { compressClosed, removeOld, type RetentionLimits } from './retention.js';
import { type Opened, openLog } from './open-log.js';
import { type Disk, padded, segmentPath, type Tip } from './segments.js';

export interface WriterSettings extends RetentionLimits {
  readonly segmentBytes: number;
  readonly syncMs: number;
  readonly maxWaitingBytes: number;
  readonly lock: boolean;
}

/** What the writer uses of its machine. A simulation has another one. */
export interface Machine {
  readonly disk: Disk;
  readonly lockFile: LockFile;
  readonly now: () => number;
  readonly boot: () => string;
  /** Calls a function after so many ms, until the returned function is called. */
  readonly every: (ms: number, call: () => void) => () => void;
  readonly soon: (call: () => void) => void;
  readonly atExit: (call: () => void) => () => void;
  readonly warn: (text: string) => void;
  readonly gzip: (bytes: Buffer, done: (error: Error | null, compressed: Buffer) => void) => void;
}

/** Within one sector of the disk. */
const tipBytes = 512;
const tipMs = 250;
const repairMs = 1_000;
const minuteMs = 60_000;
const maxSegmentAgeMs = 3_600_000;
/** Lines of one chunk go to one segment. A chunk is at most so large, unless one line is larger. */
const chunkBytes = 1024 * 1024;

/** Lines that wait for the disk. With a header, they begin a new segment. */
interface Chunk {
  readonly lines: LineBuffer;
  /** The offset of the segment that the chunk begins. */
  readonly segment: number | undefined;
  /** Where its first byte is in the file; `undefined` until the disk begins to write it. */
  at: number | undefined;
}

/** The place after a record. */
interface Place {
  readonly offset: number;
  /** The frames before it: stored, or counted in a gap. */
  readonly frames: number;
  /** The gaps before it that have no number. */
  readonly holes: number;
  /** The log time, in epoch ms. */
  readonly at: number | undefined;
}

export class LogWriter {
  readonly #folder: string;
  readonly #settings: WriterSettings;
  readonly #machine: Machine;
  readonly #fail: (error: LogError) => void;
  readonly #time: EventTime;
  readonly #log: Opened;
  #state: FeedState;
  /** The place after all records, also those that wait. */
  #end: Place;
  /** The file, and where its next line goes. */
  #fd: number;
  #position: number;
  /** The name of the file: the offset of its first record. */
  #segment: number;
  /** Files that are complete, but must stay open for a write in flight. */
  #retired: number[] = [];
  /** The length and the age of the newest segment, with what waits. */
  #segmentLength: number;
  #segmentSince: number;
  readonly #queue: Chunk[] = [];
  #inFlight: Chunk | undefined;
  #isScheduled = false;
  /** What a failed disk has lost, and since when; `undefined` while the disk works. */
  #outage: Lost | undefined;
  #isDirty = false;
  #isSyncing = false;
  #hasEnded = false;
  #release!: () => void;
  readonly #closed = new Promise<void>((done) => {
    this.#release = done;
  });
  readonly #stops: (() => void)[] = [];

  /** @param fail - called for each failure of the disk; if it returns `false`, the writer ends, else it repairs */
  constructor(folder: string, settings: WriterSettings, machine: Machine, fail: (error: LogError) => boolean) {
    this.#folder = folder;
    this.#settings = settings;
    this.#machine = machine;
    this.#fail = (error) => {
      if (!fail(error)) this.#stop();
    };
    this.#time = new EventTime(machine.now);
    this.#log = openLog(folder, machine, settings.lock);
    const { offset, frames, holes, at, header, fd } = this.#log;
    this.#end = { offset, frames, holes, at };
    this.#state = at === undefined ? noFeed : stoppedAt(at, logGap('paused', { from: at, to: at }).failure);
    this.#fd = fd;
    this.#position = 0;
    this.#segmentSince = machine.now();
    this.#segment = offset;
    const chunk = this.#chunk(offset);
    this.#segmentLength = chunk.lines.add(headerLine(header));
    this.#schedule();
    const { every } = machine;
    this.#stops.push(
      every(tipMs, () => this.#writeTip(false)),
      every(minuteMs, () => this.#tidy()),
      every(repairMs, () => this.#repair()),
    );
    if (settings.syncMs > 0 && settings.syncMs !== Infinity)
      this.#stops.push(every(settings.syncMs, () => this.#sync()));
    // A program may call `process.exit` while lines wait.
    this.#stops.push(machine.atExit(() => this.end()));
    this.#tidy();
  }

  /** Adds an event; a value that is no event of a feed is ignored. */
  add(value: unknown): void {
    if (this.#hasEnded || !(isStored(value) || isWatermark(value))) return;
    const event = value as AnyFrame | ClusterLifecycleEvent;
    this.#state =
      event.type === 'frame'
        ? afterItem(this.#state, event.receivedAt, event)
        : afterEvent(this.#state, event, this.#end.at);
    // A gap that the source emits is one of these.
    for (const gap of this.#state.gaps) this.#record(gap);
    this.#time.receive(event, stamped(event as Stored));
    if (event.type !== 'watermark' && event.type !== 'gap') this.#record(event);
  }

  /** Ends with the error of the source: it stops the feed, if no event said so. */
  stopped(thrown: unknown): void {
    const event = unannouncedStop(this.#state, thrown);
    if (event !== undefined) this.add(event);
    this.end();
  }

  /** Writes all lines that wait, synchronously, and ends. The lock is free when `closed` resolves. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#outage !== undefined) this.#repair();
    this.#flush();
    this.#close();
  }

  #record(record: Stored): void {
    if (this.#outage !== undefined) {
      keep(this.#outage, record);
      return;
    }
    const { segmentBytes, maxWaitingBytes } = this.#settings;
    const at = Math.max(stamped(record), this.#end.at ?? -Infinity);
    const { offset } = this.#end;
    const line = recordLine(offset, record, at);
    let chunk = this.#chunk();
    let bytes = chunk.lines.add(line);
    if (this.#segmentLength + bytes > segmentBytes || this.#isOld) {
      chunk.lines.drop(bytes);
      chunk = this.#chunk(offset);
      this.#segmentLength = chunk.lines.add(headerLine(this.#header()));
      this.#segmentSince = this.#machine.now();
      bytes = chunk.lines.add(line);
    }
    this.#segmentLength += bytes;
    const { frames, holes } = countsOf(record);
    this.#end = { offset: offset + 1, frames: this.#end.frames + frames, holes: this.#end.holes + holes, at };
    if (this.#waitingBytes > maxWaitingBytes) this.#flush();
    else this.#schedule();
  }

  get #isOld(): boolean {
    const maxMs = Math.min(this.#settings.maxAgeMs / 8, maxSegmentAgeMs);
    return this.#machine.now() - this.#segmentSince > maxMs;
  }

  #header(): Header {
    const { log, boot } = this.#log.header;
    const { offset, frames, holes, at } = this.#end;
    return { offset, log, boot, frames, holes, at, state: snapshotSince(this.#state.events, at ?? -Infinity) };
  }

  /** Returns the chunk for the next line. */
  #chunk(segment?: number): Chunk {
    const last = this.#queue.at(-1);
    if (segment === undefined && last !== undefined && last.lines.length < chunkBytes) return last;
    const chunk = { lines: new LineBuffer(), segment, at: undefined };
    this.#queue.push(chunk);
    return chunk;
  }

  get #waitingBytes(): number {
    const all = this.#inFlight === undefined ? this.#queue : [this.#inFlight, ...this.#queue];
    return all.reduce((sum, { lines }) => sum + lines.length - lines.written, 0);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight !== undefined) return;
    this.#isScheduled = true;
    // One read of the socket has many frames: one write for all of them.
    this.#machine.soon(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#inFlight !== undefined || this.#hasEnded || this.#outage !== undefined) return;
    const chunk = this.#queue.shift();
    if (chunk === undefined) return;
    this.#inFlight = chunk;
    try {
      this.#writeRest(chunk, this.#enter(chunk));
    } catch (error) {
      this.#returned(chunk, error);
    }
  }

  #writeRest(chunk: Chunk, at: number): void {
    const { lines } = chunk;
    const { bytes, length, written } = lines;
    this.#machine.disk.write(this.#fd, bytes, written, length - written, at + written, (error, count) => {
      // `#flush` may have written them meanwhile.
      lines.written = Math.max(lines.written, written + (error ? 0 : count));
      this.#isDirty = true;
      if (lines.written === length) return this.#returned(chunk);
      if (error || count === 0) return this.#returned(chunk, error ?? new Error('the disk wrote 0 bytes'));
      this.#writeRest(chunk, at);
    });
  }

  /** The disk has finished with a chunk. Until then nothing may be closed, cut or repaired: the write might come later. */
  #returned(chunk: Chunk, error?: unknown): void {
    this.#inFlight = undefined;
    for (const fd of this.#retired.splice(0)) this.#retire(fd);
    if (this.#hasEnded) return this.#close();
    if (error) return this.#lost(chunk, error);
    ring(this.#folder);
    if (this.#settings.syncMs === 0) this.#sync();
    this.#pump();
  }

  /** Begins the segment of a chunk, if it has one. All lines of the segment before are written. */
  #enter(chunk: Chunk): number {
    const { segment } = chunk;
    // The first one was created with the log.
    if (segment !== undefined && segment !== this.#segment) this.#create(segment, chunk);
    const at = this.#position;
    chunk.at = at;
    this.#position += chunk.lines.length;
    return at;
  }

  #create(segment: number, chunk: Chunk): void {
    const fd = this.#machine.disk.openSync(segmentPath(this.#folder, segment), 'wx+');
    if (this.#inFlight === undefined || this.#inFlight === chunk) this.#retire(this.#fd);
    else this.#retired.push(this.#fd);
    this.#fd = fd;
    this.#segment = segment;
    this.#position = 0;
    this.#syncFolder();
  }

  /** Closes a complete file. */
  #retire(fd: number): void {
    const { disk } = this.#machine;
    disk.fdatasync(fd, (error) => {
      disk.close(fd, ignored);
      if (error) this.#fail(toLogError('write', this.#folder, error));
      this.#tidy();
    });
  }

  /** Writes everything that waits, synchronously. A write in flight is repeated at its place: the same bytes are allowed. */
  #flush(): void {
    const chunks = [...(this.#inFlight === undefined ? [] : [this.#inFlight]), ...this.#queue];
    for (const chunk of chunks) {
      const { lines } = chunk;
      try {
        const at = chunk.at ?? this.#enter(chunk);
        while (lines.written < lines.length) {
          const { bytes, length, written } = lines;
          const count = this.#machine.disk.writeSync(this.#fd, bytes, written, length - written, at + written);
          if (count === 0) throw new Error('the disk wrote 0 bytes');
          lines.written += count;
          this.#isDirty = true;
        }
        if (chunk !== this.#inFlight) this.#queue.shift();
      } catch (error) {
        // With a write in flight its callback does this.
        if (this.#inFlight === undefined) this.#lost(this.#queue.shift() as Chunk, error);
        return;
      }
    }
    ring(this.#folder);
  }

  /** Counts what the disk did not take. A complete line in the file counts as stored: a reader may have seen it. */
  #lost(failed: Chunk, cause: unknown): void {
    const outage: Lost = { from: this.#end.at ?? this.#machine.now(), missed: 0, events: [] };
    const stored = this.#storedOf(failed);
    let records = 0;
    let { frames, holes } = this.#end;
    for (const chunk of [failed, ...this.#queue.splice(0)]) {
      const bytes = chunk.lines.bytes.subarray(chunk === failed ? stored : 0, chunk.lines.length);
      for (const record of recordsIn(bytes)) {
        records += 1;
        frames -= countsOf(record).frames;
        holes -= countsOf(record).holes;
        keep(outage, record);
      }
    }
    failed.lines.clear();
    this.#end = { ...this.#end, offset: this.#end.offset - records, frames, holes };
    this.#outage = outage;
    this.#fail(toLogError('write', this.#folder, cause));
  }

  /** Returns how many bytes of a chunk are complete lines in the file. */
  #storedOf({ lines, at }: Chunk): number {
    if (at === undefined) return 0;
    const { size } = this.#machine.disk.fstatSync(this.#fd);
    const inFile = Math.min(lines.length, Math.max(lines.written, size - at));
    return lines.bytes.subarray(0, inFile).lastIndexOf(newline) + 1;
  }

  /** Goes on in a new segment once the disk takes lines again, with a gap that has the number of lost frames. */
  #repair(): void {
    const outage = this.#outage;
    if (outage === undefined || this.#inFlight !== undefined) return;
    const { disk, now } = this.#machine;
    this.#tidy();
    const { offset, at } = this.#end;
    const path = segmentPath(this.#folder, offset);
    const { missed, from } = outage;
    const to = Math.max(now(), from);
    const gap = logGap('writeFailed', { from, to, missed });
    let fd: number | undefined;
    try {
      // The file has no record, or its name would be lower.
      if (this.#segment === offset) disk.unlinkSync(path);
      this.#segment = -1;
      fd = disk.openSync(path, 'wx+');
      const header = headerLine(this.#header());
      const gapLine = recordLine(offset, gap, Math.max(to, at ?? -Infinity));
      const bytes = Buffer.from(header + gapLine);
      // In one call: a segment without a record would be a name that is taken.
      if (disk.writeSync(fd, bytes, 0, bytes.length, 0) !== bytes.length) throw new Error('the disk is full');
      disk.close(this.#fd, ignored);
      this.#fd = fd;
      this.#segment = offset;
      this.#position = this.#segmentLength = bytes.length;
    } catch {
      // The failure was reported; the disk is still full. The next attempt is in a second.
      if (fd !== undefined) this.#discard(fd, path);
      return;
    }
    this.#outage = undefined;
    const { frames, holes } = gapCounts(missed);
    this.#end = {
      offset: offset + 1,
      frames: this.#end.frames + frames,
      holes: this.#end.holes + holes,
      at: Math.max(to, at ?? -Infinity),
    };
    this.#segmentSince = now();
    ring(this.#folder);
    for (const event of outage.events) this.#record(event);
  }

  #discard(fd: number, path: string): void {
    const { disk } = this.#machine;
    try {
      disk.ftruncateSync(fd, 0);
      disk.closeSync(fd);
      disk.unlinkSync(path);
    } catch {
      // The next attempt fails with EEXIST and is reported as before: `#repair` runs every second.
    }
  }

  #sync(): void {
    if (!this.#isDirty || this.#isSyncing || this.#hasEnded) return;
    this.#isDirty = false;
    this.#isSyncing = true;
    const fd = this.#fd;
    this.#machine.disk.fdatasync(fd, (error) => {
      this.#isSyncing = false;
      // Never repeated: after a failure the kernel may have dropped the bytes, and the next call succeeds.
      if (error && fd === this.#fd && !this.#hasEnded) {
        this.#fail(toLogError('write', this.#folder, error));
        this.#stop();
      }
    });
  }

  #syncFolder(): void {
    const { disk } = this.#machine;
    try {
      const fd = disk.openSync(this.#folder, 'r');
      disk.fsync(fd, () => {
        disk.close(fd, ignored);
      });
    } catch {
      // Windows can't open a folder; its file system writes the entry with the file.
    }
  }

  #tidy(): void {
    if (this.#hasEnded) return;
    try {
      removeOld(this.#folder, this.#settings, this.#machine);
      if (this.#settings.compress)
        compressClosed(this.#folder, this.#machine, (error) => {
          if (error !== undefined) this.#warn(error);
          else this.#tidy();
        });
    } catch (error) {
      this.#warn(error);
    }
  }

  // Retention and compression are tried again in a minute; without them the log is only larger than it should be.
  #warn(error: unknown): void {
    this.#machine.warn(`${toLogError('write', this.#folder, error).message} Old segments stay for now.`);
  }

  #writeTip(closed: boolean): void {
    if (!closed && (this.#waitingBytes > 0 || this.#outage !== undefined)) return;
    const { now, disk } = this.#machine;
    const { log, boot } = this.#log.header;
    const reached = Math.max(this.#state.watermark ?? this.#time.now(), this.#end.at ?? -Infinity);
    const at = reached === -Infinity ? now() : reached;
    const tip: Tip = {
      pid: process.pid,
      log,
      boot,
      offset: this.#end.offset,
      at,
      writtenAt: now(),
      closed,
      ...limitsOf(this.#settings),
    };
    try {
      disk.writeSync(this.#log.lockFd, padded(tip, tipBytes), 0, tipBytes, 0);
    } catch {
      // Readers see an old tip, and emit `log-writer-gone` after two seconds.
    }
  }

  /** Ends without writing more. */
  #stop(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#close();
  }

  /** Keeps the lock until the write in flight is back: the next writer must not scan a file that still changes. */
  #close(): void {
    if (this.#inFlight !== undefined) return closes(this.#folder, this.#closed);
    for (const stop of this.#stops.splice(0)) stop();
    const { disk } = this.#machine;
    const fd = this.#fd;
    const release = () => {
      disk.close(fd, ignored);
      disk.closeSync(this.#log.lockFd);
      this.#release();
    };
    if (this.#outage !== undefined) return release();
    try {
      if (this.#settings.syncMs !== Infinity) disk.fdatasyncSync(fd);
      this.#writeTip(true);
    } finally {
      release();
      ring(this.#folder);
    }
  }
}

const limitsOf = ({ maxBytes, maxAgeMs }: RetentionLimits): Partial<RetentionLimits> => ({
  ...(maxBytes !== Infinity && { maxBytes }),
  ...(maxAgeMs !== Infinity && { maxAgeMs }),
});

// Nothing depends on the result: the file is complete, and synchronized.
const ignored = (): void => undefined;

function* recordsIn(bytes: Buffer): Generator<Stored> {
  let from = 0;
  for (let to = bytes.indexOf(newline); to >= 0; to = bytes.indexOf(newline, from)) {
    const record = readRecord(bytes.subarray(from, to));
    // A header is no record.
    if (record !== undefined) yield withoutOffset(record);
    from = to + 1;
  }
}

const withoutOffset = (record: Recorded): Stored => {
  if (record.type === 'frame') return record;
  const { offset: _offset, ...event } = record;
  return event as Stored;
};

/** What a failed disk has lost: frames are counted, and the few events are written later. */
interface Lost {
  readonly from: number;
  /** `undefined` if an event had to go whose gap has no number. */
  missed: number | undefined;
  readonly events: Stored[];
}

const maxKeptEvents = 1_000;

const keep = (lost: Lost, record: Stored): void => {
  if (record.type !== 'frame') {
    lost.events.push(record);
    if (lost.events.length > maxKeptEvents && lost.events.shift()?.type === 'gap') lost.missed = undefined;
  } else if (lost.missed !== undefined) lost.missed += 1;
};
