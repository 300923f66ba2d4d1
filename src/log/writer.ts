// The one writer of a log.
//
// In: frames and events of a feed. Out: complete lines at the end of the newest segment, and a ring of the bell.
// Never: a byte of a record written over, an offset with a second content, a frame neither in the log nor counted in a
// gap.
import { noop } from 'rxjs';
import type { Place } from '../protocol/place.js';
import { tryCall } from '../protocol/type-guards.js';
import type { Fail } from './append.js';
import type { FolderSettings } from './options.js';
import { ringerOf } from './bell.js';
import { Durable } from './durable.js';
import { LineQueue } from './line-queue.js';
import { closes } from './lock.js';
import { LogError, toLogError } from './log-error.js';
import { type Generation, placeOf, sealableHeader, sealableLine, sealedBytes, type Stored } from './lines.js';
import { Recorder } from './recorder.js';
import { lockLog, openLog, takeGeneration } from './recovery.js';
import { Retention } from './retention.js';
import {
  type InPlace,
  isInPlace,
  isThere,
  listSegments,
  type Machine,
  scanFile,
  segmentPath,
  syncFolder,
  type Tip,
} from './segments.js';

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

/** The newest file. */
interface Newest {
  readonly fd: number;
  readonly path: string;
  /** Where its next line goes: the bytes that were certainly written. */
  position: number;
  /** Whether a write has found that bytes before it are gone. */
  isCut: boolean;
}

export class LogWriter {
  readonly #folder: string;
  readonly #settings: FolderSettings;
  readonly #machine: Machine;
  readonly #fail: (error: LogError, canContinue?: boolean) => void;
  readonly #retention: Retention;
  readonly #ring: () => void;
  #tip: InPlace;
  /** The generation that writes, at the place before the newest file. */
  #generation: Generation;
  readonly #recorder: Recorder;
  #newest: Newest | undefined;
  readonly #queue: LineQueue;
  readonly #durable: Durable;
  #inFlight: Write | undefined;
  #isScheduled = false;
  #isTipDue = false;
  /** Since when the disk takes no lines, or has lost some, in epoch ms. `undefined` once the gap for it is written. */
  #outageFrom: number | undefined;
  #hasEnded = false;
  /** Says that the last write is back, if somebody waits for it. */
  #release = noop;
  readonly #stops: readonly (() => void)[];

  /** @param fail - called for each failure of the disk; if it returns `false`, the writer ends, else it repairs */
  constructor(folder: string, settings: FolderSettings, machine: Machine, fail: Fail) {
    this.#folder = folder;
    this.#settings = settings;
    this.#machine = machine;
    this.#fail = (error, canContinue = true) => {
      if (!fail(error, canContinue)) this.#stop();
    };
    this.#ring = ringerOf(folder);
    this.#retention = new Retention(folder, settings, machine);
    this.#queue = new LineQueue(settings, machine.now, (place) => {
      const { after, began } = this.#generation;
      return sealableHeader({ ...place, after, began, state: this.#recorder.stateAt(place.at) });
    });
    this.#durable = new Durable(folder, settings.syncMs, machine.disk, {
      closed: () => this.#retention.tidy(),
      // Never repeated: the kernel may have dropped the bytes, and the next call succeeds.
      failed: (error) => this.#abort(toLogError('write', folder, error)),
    });
    const { tip, generation } = openLog(folder, machine);
    [this.#tip, this.#generation] = [tip, generation];
    this.#recorder = new Recorder(placeOf(generation), machine.now, (...record) => this.#add(...record));
    const { every } = machine;
    this.#stops = [
      every(tipMs, () => {
        this.#look();
        // A connection is complete after some time, also without a record.
        this.#recorder.settle();
        this.#isTipDue = true;
        this.#writeTip(false);
      }),
      every(minuteMs, () => this.#look() && this.#retention.tidy()),
      every(repairMs, () => this.#repair()),
      // A program may call `process.exit` while lines wait.
      machine.atExit(() => this.end()),
      ...(settings.syncMs > 0 && settings.syncMs !== Infinity ? [every(settings.syncMs, () => this.#sync())] : []),
    ];
    this.#writeTip(false);
  }

  /** Adds an event; a value that is no event of a feed is ignored. */
  add(value: unknown): void {
    if (!this.#hasEnded) this.#recorder.add(value, this.#queue.length > 0);
  }

  /** Ends with the error of the source: it stops the feed, if no event said so. */
  stopped(thrown: unknown): void {
    if (!this.#hasEnded) this.#recorder.stopped(thrown);
    this.end();
  }

  /** Writes all lines that wait, synchronously, and ends. */
  end(): void {
    if (this.#hasEnded) return;
    this.#look();
    this.#flush();
    this.#look();
    this.#repair();
    this.#flush();
    this.#stop();
  }

  #add(record: Stored, time: number, at: number, before: Place): void {
    this.#queue.add(sealableLine(before.offset, record, time, at), before);
    const { bytes, written } = this.#inFlight ?? noWrite;
    if (this.#queue.length + bytes.length - written > this.#settings.maxWaitingBytes) this.#flush();
    else this.#schedule();
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
      if (!error) this.#wrote(write, written + count);
      if (write.written === bytes.length) this.#returned();
      else if (error || count === 0) this.#returned(error ?? new Error('the disk wrote 0 bytes'));
      else this.#write(write);
    });
  }

  #wrote(write: Write, written: number): void {
    write.written = Math.max(write.written, written);
    const newest = this.#newest;
    if (newest?.fd !== write.fd) return;
    newest.position = Math.max(newest.position, write.at + write.written);
    newest.isCut ||= this.#isAfterZero(write);
  }

  /** The disk has finished. Until then nothing may be closed, cut or repaired: the write might come later. */
  #returned(error?: unknown): void {
    this.#inFlight = undefined;
    this.#durable.isDirty = true;
    this.#durable.closeComplete();
    if (this.#hasEnded) return this.#close();
    if (!this.#canWrite()) return;
    if (error) return this.#failed(error);
    this.#outageFrom = undefined;
    this.#ring();
    if (this.#settings.syncMs === 0) this.#sync();
    if (this.#isTipDue) this.#writeTip(false);
    this.#pump();
  }

  /** Takes the next lines from the queue, and begins their segment: all lines before it are written. */
  #nextWrite(): Write | undefined {
    const chunk = this.#queue.first;
    if (chunk === undefined) return undefined;
    const bytes = sealedBytes(chunk.text);
    if (chunk.begins !== undefined) this.#begin(chunk.begins, bytes.length);
    this.#queue.shift(bytes.length);
    const { fd, position } = this.#newest as Newest;
    return { fd, bytes, at: position, written: 0 };
  }

  #begin(place: Place, bytes: number): void {
    // Its name may already lead to the folder of another writer.
    if (!this.#look()) throw new Error('its files were removed, moved or replaced');
    this.#retention.tidy(bytes);
    const path = segmentPath(this.#folder, place.offset);
    const fd = this.#create(path, place.offset);
    // Who opens the log sees that it has a writer, even if the file with its lock was removed.
    this.#machine.lockFile(fd, path);
    if (this.#newest !== undefined) this.#durable.complete(this.#newest.fd);
    this.#newest = { fd, path, position: 0, isCut: false };
    this.#generation = { ...this.#generation, ...place };
    this.#isTipDue = true;
    if (this.#inFlight === undefined) this.#durable.closeComplete();
    this.#durable.syncFolder();
  }

  #create(path: string, offset: number): number {
    const { disk } = this.#machine;
    try {
      return disk.openSync(path, 'wx+');
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
      // Whoever has the lock is the writer. It removes a file that was left there, unless it has a record.
      const end = scanFile(disk, { path, offset, isCompressed: false });
      if (end !== undefined && end.place.offset > offset)
        throw new LogError('log-write-failed', `Another process has written ${path}.`, { path, cause });
      disk.unlinkSync(path);
      return disk.openSync(path, 'wx+');
    }
  }

  /** Writes everything that waits, synchronously. A write in flight is repeated at its place with the same bytes. */
  #flush(): void {
    if (!this.#canWrite()) return;
    try {
      let write = this.#inFlight ?? this.#nextWrite();
      for (; write !== undefined; write = this.#nextWrite()) {
        this.#durable.isDirty = true;
        while (write.written < write.bytes.length) {
          const { fd, bytes, at, written } = write;
          const count = this.#machine.disk.writeSync(fd, bytes, written, bytes.length - written, at + written);
          if (count === 0) throw new Error('the disk wrote 0 bytes');
          this.#wrote(write, written + count);
        }
      }
      this.#outageFrom = undefined;
      this.#ring();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** An open file proves nothing about its path. Returns whether what is written now gets into the folder. */
  #look(): boolean {
    if (this.#hasEnded) return false;
    const { disk } = this.#machine;
    const { fd, path } = this.#tip;
    const newest = this.#canWrite() ? this.#newest : undefined;
    try {
      if (isInPlace(disk, fd, path)) {
        const isCut = newest && (newest.isCut || !isInPlace(disk, newest.fd, newest.path, newest.position));
        if (isCut) this.#failed(lost('segment', newest.path));
      } else {
        // Without another file of the log, the whole folder is gone, and nobody has taken its place.
        const isTaken = isThere(disk, path) || listSegments(disk, this.#folder).length > 0;
        if (isTaken) this.#abort(fenced(path));
        else this.#failed(lost('folder', this.#folder));
      }
    } catch (error) {
      this.#failed(error);
    }
    return this.#canWrite();
  }

  #canWrite(): boolean {
    return !this.#hasEnded && !this.#recorder.isLosing;
  }

  /** A file that was cut has zeros before the next write. */
  #isAfterZero({ fd, at }: Write): boolean {
    const before = Buffer.from('\n');
    if (at > 0) tryCall(() => this.#machine.disk.readSync(fd, before, 0, 1, at - 1));
    return before[0] === 0;
  }

  /** Drops what waits: it's counted. A complete line in the file counts as stored: a reader may have seen it. */
  #failed(cause: unknown): void {
    if (this.#hasEnded) return;
    const isReported = this.#outageFrom !== undefined;
    this.#outageFrom ??= this.#recorder.end.at || this.#machine.now();
    this.#queue.clear();
    this.#recorder.lose();
    if (!isReported) this.#fail(toLogError('write', this.#folder, cause));
  }

  /** Ends for ever, and says so. Nothing is written or synced any more. */
  #abort(error: LogError): void {
    if (this.#hasEnded) return;
    this.#queue.clear();
    this.#outageFrom ??= this.#machine.now();
    this.#stop();
    this.#fail(error, false);
  }

  /**
   * Goes on in a new segment, with a gap that has the number of lost frames. A reader may have lines that are gone, so
   * it's another generation.
   */
  #repair(): void {
    if (!this.#canWrite()) this.#look();
    if (this.#canWrite() || this.#hasEnded) return;
    try {
      const { disk } = this.#machine;
      const isHere = this.#newest !== undefined && isInPlace(disk, this.#newest.fd, this.#newest.path);
      if (isHere && this.#inFlight !== undefined) return;
      this.#lockAgain();
      this.#generation = takeGeneration(this.#folder, this.#machine, this.#tip, this.#generation);
      if (this.#newest !== undefined) this.#durable.complete(this.#newest.fd);
      this.#newest = undefined;
      this.#recorder.goOn(placeOf(this.#generation), this.#outageFrom);
    } catch (error) {
      // The next attempt is in a second, unless another writer has the log.
      this.#recorder.lose();
      if (error instanceof LogError && error.code === 'log-in-use') this.#abort(fenced(this.#tip.path));
    }
  }

  /** Makes the folder again if it's gone. */
  #lockAgain(): void {
    const { disk } = this.#machine;
    if (isInPlace(disk, this.#tip.fd, this.#tip.path)) return;
    const tip = lockLog(this.#folder, this.#machine);
    disk.closeSync(this.#tip.fd);
    this.#tip = tip;
    syncFolder(this.#folder, disk);
  }

  #sync(): void {
    if (!this.#hasEnded && this.#newest !== undefined) this.#durable.sync(this.#newest.fd);
  }

  #writeTip(closed: boolean): void {
    if (this.#queue.length > 0 || this.#inFlight !== undefined || this.#outageFrom !== undefined) return;
    const { now } = this.#machine;
    const { maxBytes, maxAgeMs } = this.#settings;
    const { line, gen, began } = this.#generation;
    const { offset } = this.#recorder.end;
    const at = this.#recorder.reached();
    try {
      this.#isTipDue = false;
      this.#tip.write({
        pid: process.pid,
        line,
        gen,
        began,
        offset,
        at,
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
    if (this.#inFlight !== undefined) closes(this.#folder, new Promise<void>((done) => (this.#release = done)));
    this.#close();
  }

  /** Keeps the lock until the write in flight is back: the next writer must not scan a file that still changes. */
  #close(): void {
    if (this.#inFlight !== undefined) return;
    const { disk } = this.#machine;
    this.#durable.closeComplete();
    try {
      if (this.#newest !== undefined && this.#outageFrom === undefined) this.#durable.syncNow(this.#newest.fd);
      this.#writeTip(true);
    } catch (cause) {
      this.#fail(toLogError('write', this.#folder, cause), false);
    } finally {
      if (this.#newest !== undefined) disk.closeSync(this.#newest.fd);
      disk.closeSync(this.#tip.fd);
      this.#release();
      this.#ring();
    }
  }
}

const fenced = (path: string): LogError =>
  new LogError('log-fenced', `The lock ${path} was removed or replaced, so another process may write the log.`, {
    path,
  });

const lost = (what: string, path: string): LogError => {
  const problem = `The ${what} ${path} was removed, moved, replaced or cut: what was written to it since is lost.`;
  return new LogError('log-write-failed', problem, { path });
};
