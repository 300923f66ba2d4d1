// The one writer of a log.
//
// In: frames and events of a feed. Out: complete lines at the end of the newest segment, and a ring of the bell.
// Never: a byte of a record written over, an offset with a second content, a frame neither in the log nor counted in a
// gap.
import { noop } from 'rxjs';
import { EventTime } from '../operators/items/event-time.js';
import { unannouncedStop } from '../operators/items/follow-feed.js';
import {
  afterEvent,
  afterFrame,
  afterTime,
  type FeedState,
  noFeed,
  snapshotAt,
  withGapIn,
} from '../protocol/feed-state.js';
import type { AppendSettings } from './append.js';
import { ringerOf } from './bell.js';
import { Durable } from './durable.js';
import { LineQueue } from './line-queue.js';
import { closes } from './lock.js';
import { LogError, toLogError } from './log-error.js';
import { afterRecord, headerLine, isStorable, logGap, type Place, recordLine, stamped, type Stored } from './lines.js';
import { type Opened, openLog, stateBefore, storedIn } from './recovery.js';
import { Retention } from './retention.js';
import { type Machine, reachedAt, segmentPath, type Tip } from './segments.js';

export type WriterSettings = Omit<AppendSettings, 'generation' | 'onError'>;

const tipMs = 250;
const repairMs = 1_000;
const minuteMs = 60_000;

interface Write {
  readonly fd: number;
  readonly bytes: Buffer;
  /** Where its first byte is in the file. */
  readonly at: number;
  written: number;
}

const noWrite = { bytes: '', written: 0 };

/** A disk that takes no lines. */
interface Outage {
  readonly from: number;
  /** `true` while lines are only counted, `false` while the gap is being written. */
  isPaused: boolean;
}

export class LogWriter {
  readonly #folder: string;
  readonly #settings: WriterSettings;
  readonly #machine: Machine;
  readonly #fail: (error: LogError) => void;
  readonly #time: EventTime;
  readonly #retention: Retention;
  readonly #ring: () => void;
  readonly #log: Opened;
  #state: FeedState;
  /** The state before the event that is being added: that of a segment that begins with it. */
  #before: FeedState = noFeed;
  /** The place after all records: written, waiting, or lost in an outage. */
  #end: Place;
  /** The newest file, the place before it, and where its next line goes. */
  #fd: number | undefined;
  #begun: Place;
  #position = 0;
  readonly #queue: LineQueue;
  readonly #durable: Durable;
  #inFlight: Write | undefined;
  #isScheduled = false;
  #outage: Outage | undefined;
  #hasEnded = false;
  #release!: () => void;
  readonly #closed = new Promise<void>((done) => (this.#release = done));
  readonly #stops: readonly (() => void)[];

  /** @param fail - called for each failure of the disk; if it returns `false`, the writer ends, else it repairs */
  constructor(folder: string, settings: WriterSettings, machine: Machine, fail: (error: LogError) => boolean) {
    this.#folder = folder;
    this.#settings = settings;
    this.#machine = machine;
    this.#fail = (error) => {
      if (!fail(error)) this.#stop();
    };
    this.#time = new EventTime(machine.now);
    this.#ring = ringerOf(folder);
    this.#retention = new Retention(folder, settings, machine);
    this.#queue = new LineQueue(settings, machine.now, (place) => headerLine(this.#header(place)));
    this.#durable = new Durable(folder, settings.syncMs, machine.disk, {
      closed: () => this.#retention.tidy(),
      failed: (error) => this.#unsynced(error),
    });
    this.#log = openLog(folder, machine, settings.lock);
    this.#begun = this.#end = this.#log.place;
    this.#state = stateBefore(this.#end);
    const { every } = machine;
    this.#stops = [
      every(tipMs, () => {
        this.#settle();
        this.#writeTip(false);
      }),
      every(minuteMs, () => this.#retention.tidy()),
      every(repairMs, () => this.#repair()),
      // A program may call `process.exit` while lines wait.
      machine.atExit(() => this.end()),
      ...(settings.syncMs > 0 && settings.syncMs !== Infinity ? [every(settings.syncMs, () => this.#sync())] : []),
    ];
    this.#writeTip(false);
    this.#retention.tidy();
  }

  /** Adds an event; a value that is no event of a feed is ignored. */
  add(value: unknown): void {
    if (this.#hasEnded || !isStorable(value)) return;
    const time = stamped(value);
    const isItem = value.type === 'frame';
    this.#before = this.#state;
    this.#state = isItem ? afterFrame(this.#state, time, value) : afterEvent(this.#state, value, this.#end.at);
    // A gap that the source emits is one of these.
    for (const gap of this.#state.gaps) this.#record(gap, stamped(gap));
    // The other frames of a turn are as late or later, so one look at the clock is enough.
    if (isItem && this.#queue.length > 0) this.#time.pass(time);
    else this.#time.receive(value, time);
    if (value.type !== 'watermark' && value.type !== 'gap') this.#record(value, time);
  }

  /** Ends with the error of the source: it stops the feed, if no event said so. */
  stopped(thrown: unknown): void {
    const event = unannouncedStop(this.#state, thrown);
    if (event !== undefined) this.add(event);
    this.end();
  }

  /** Writes all lines that wait, synchronously, and ends. */
  end(): void {
    if (this.#hasEnded) return;
    this.#repair();
    this.#flush();
    this.#stop();
  }

  /** A connection is complete after some time, also without a record. */
  #settle(): void {
    this.#before = this.#state;
    this.#state = afterTime(this.#state, reachedAt(this.#time, this.#end));
    for (const gap of this.#state.gaps) this.#record(gap, stamped(gap));
  }

  #record(record: Stored, time: number): void {
    const before = this.#end;
    const at = Math.max(time, before.at ?? -Infinity);
    this.#end = afterRecord(before, record, at);
    if (this.#outage?.isPaused === true) {
      // The gap after the outage takes the offset.
      this.#end = { ...this.#end, offset: before.offset };
      return;
    }
    this.#queue.add(recordLine(before.offset, record, time, at), before);
    const { bytes, written } = this.#inFlight ?? noWrite;
    if (this.#queue.length + bytes.length - written > this.#settings.maxWaitingBytes) this.#flush();
    else this.#schedule();
  }

  #header(place: Place) {
    const { boot, after, place: first } = this.#log;
    const state = snapshotAt(this.#before, place.at ?? -Infinity);
    return { ...place, boot, state, ...(place.offset === first.offset && { after }) };
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
    if (this.#inFlight !== undefined || this.#hasEnded) return;
    try {
      this.#inFlight = this.#nextWrite();
      if (this.#inFlight !== undefined) this.#write(this.#inFlight);
    } catch (error) {
      this.#inFlight = undefined;
      this.#failed(error);
    }
  }

  #write(write: Write): void {
    const { fd, bytes, at, written } = write;
    this.#machine.disk.write(fd, bytes, written, bytes.length - written, at + written, (error, count) => {
      // `#flush` may have written them meanwhile.
      if (!error) write.written = Math.max(write.written, written + count);
      if (write.written === bytes.length) this.#returned();
      else if (error || count === 0) this.#returned(error ?? new Error('the disk wrote 0 bytes'));
      else this.#write(write);
    });
  }

  /** The disk has finished. Until then nothing may be closed, cut or repaired: the write might come later. */
  #returned(error?: unknown): void {
    this.#inFlight = undefined;
    this.#durable.isDirty = true;
    this.#durable.closeComplete();
    if (this.#hasEnded) return this.#close();
    if (this.#outage?.isPaused === true) return;
    if (error) return this.#failed(error);
    this.#outage = undefined;
    this.#ring();
    if (this.#settings.syncMs === 0) this.#sync();
    this.#pump();
  }

  /** Takes the next lines from the queue, and begins their segment: all lines before it are written. */
  #nextWrite(): Write | undefined {
    const chunk = this.#queue.first;
    if (chunk === undefined) return undefined;
    if (chunk.begins !== undefined) this.#begin(chunk.begins);
    const bytes = this.#queue.shift();
    const write = { fd: this.#fd as number, bytes, at: this.#position, written: 0 };
    this.#position += bytes.length;
    return write;
  }

  #begin(place: Place): void {
    const path = segmentPath(this.#folder, place.offset);
    let fd: number;
    try {
      fd = this.#machine.disk.openSync(path, 'wx+');
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
      throw new LogError('log-fenced', `Another process continues the log ${this.#folder}.`, { path, cause });
    }
    if (this.#fd !== undefined) this.#durable.complete(this.#fd);
    this.#fd = fd;
    this.#begun = place;
    this.#position = 0;
    if (this.#inFlight === undefined) this.#durable.closeComplete();
    this.#durable.syncFolder();
  }

  /** Writes everything that waits, synchronously. A write in flight is repeated at its place with the same bytes. */
  #flush(): void {
    if (this.#outage?.isPaused === true) return;
    try {
      let write = this.#inFlight ?? this.#nextWrite();
      for (; write !== undefined; write = this.#nextWrite()) {
        this.#durable.isDirty = true;
        while (write.written < write.bytes.length) {
          const { fd, bytes, at, written } = write;
          const count = this.#machine.disk.writeSync(fd, bytes, written, bytes.length - written, at + written);
          if (count === 0) throw new Error('the disk wrote 0 bytes');
          write.written += count;
        }
      }
      this.#ring();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Drops what waits: `#end` counts it. A complete line in the file counts as stored: a reader may have seen it. */
  #failed(cause: unknown): void {
    const isReported = this.#outage !== undefined;
    this.#outage ??= { from: this.#end.at ?? this.#machine.now(), isPaused: true };
    this.#outage.isPaused = true;
    this.#queue.clear();
    const error = toLogError('write', this.#folder, cause);
    if (!isReported) this.#fail(error);
    if (error.code === 'log-fenced') this.#stop();
  }

  /** Goes on in a new segment, with a gap that has the number of lost frames. */
  #repair(): void {
    if (this.#outage?.isPaused !== true || this.#inFlight !== undefined || this.#hasEnded) return;
    const { disk } = this.#machine;
    this.#retention.tidy();
    try {
      const stored = this.#fd === undefined ? this.#begun : storedIn(this.#fd, this.#begun, disk);
      // Its name is needed again, and no reader has a record of it.
      if (this.#fd !== undefined && this.#begun.offset === stored.offset) {
        disk.unlinkSync(segmentPath(this.#folder, stored.offset));
        disk.closeSync(this.#fd);
        this.#fd = undefined;
      }
      const missed = this.#end.frames - stored.frames;
      const hasOwn = this.#end.holes > stored.holes;
      const { from } = this.#outage;
      const to = Math.max(reachedAt(this.#time, this.#end), from);
      this.#outage.isPaused = false;
      this.#end = stored;
      this.#before = noFeed;
      // As after every gap: `opened` comes first. Other events that were lost end with these.
      const status = snapshotAt(this.#state, stored.at ?? -Infinity);
      // The feed itself had a gap meanwhile, with an unknown number of frames.
      const gaps = [logGap('writeFailed', from, to, missed), ...(hasOwn ? [logGap('writeFailed', from, to)] : [])];
      for (const event of withGapIn(status, ...gaps) as readonly Stored[]) this.#record(event, stamped(event));
    } catch {
      // The next attempt is in a second.
      this.#outage.isPaused = true;
    }
  }

  #sync(): void {
    if (!this.#hasEnded && this.#fd !== undefined) this.#durable.sync(this.#fd);
  }

  /** Never repeated: after a failure the kernel may have dropped the bytes, and the next call succeeds. */
  #unsynced(error: Error): void {
    if (this.#hasEnded) return;
    this.#fail(toLogError('write', this.#folder, error));
    this.#stop();
  }

  #writeTip(closed: boolean): void {
    if (this.#queue.length > 0 || this.#inFlight !== undefined || this.#outage !== undefined) return;
    const { now } = this.#machine;
    const { boot, place, tip } = this.#log;
    const { maxBytes, maxAgeMs } = this.#settings;
    const { offset, log } = this.#end;
    const at = reachedAt(this.#time, this.#end);
    try {
      tip.write({
        pid: process.pid,
        log,
        boot,
        run: place.offset,
        offset,
        at: Number.isFinite(at) ? at : 0,
        writtenAt: now(),
        closed,
        ...(maxBytes !== Infinity && { maxBytes }),
        ...(maxAgeMs !== Infinity && { maxAgeMs }),
      } satisfies Tip);
    } catch {
      // Readers see an old tip, and emit `log-writer-gone` after two seconds.
    }
  }

  #stop(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const stop of this.#stops) stop();
    this.#retention.end();
    if (this.#inFlight !== undefined) closes(this.#folder, this.#closed);
    this.#close();
  }

  /** Keeps the lock until the write in flight is back: the next writer must not scan a file that still changes. */
  #close(): void {
    if (this.#inFlight !== undefined) return;
    const { disk } = this.#machine;
    try {
      if (this.#fd !== undefined && this.#outage === undefined) this.#durable.syncNow(this.#fd);
      this.#writeTip(true);
    } catch (cause) {
      this.#fail(toLogError('write', this.#folder, cause));
    } finally {
      if (this.#fd !== undefined) disk.close(this.#fd, noop);
      disk.closeSync(this.#log.tip.fd);
      this.#release();
      this.#ring();
    }
  }
}
