// What `rx-trade-feed log status` and `log verify` show.
import * as fs from 'node:fs';
import { createGunzip, gunzipSync } from 'node:zlib';
import { join } from 'node:path';
import { committedIn } from './cursor.js';
import { toLogError } from './log-error.js';
import { isOther, newline, readHeader, readRecord, stamped } from './lines.js';
import { goneMs, type LogPosition } from './records.js';
import {
  filesOf,
  headOf,
  isFile,
  listSegments,
  readPadded,
  scanSegment,
  type Segment,
  type Tip,
  tipPath,
} from './segments.js';

/** One file of a log. */
export interface SegmentStatus {
  readonly path: string;
  readonly isCompressed: boolean;
  readonly bytes: number;
  /** The first offset, and the one after the last record. */
  readonly offset: number;
  readonly end: number;
  /** The frames in it, and those that its gaps count. */
  readonly frames: number;
  /** The time of its first and of its last record, in epoch ms; `undefined` without a record. */
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/** A consumer of a log, and how far it is behind. */
export interface ConsumerStatus {
  readonly name: string;
  /** `undefined` before its first commit. */
  readonly position: LogPosition | undefined;
  /** How many records are after its cursor, and how far it is behind in the feed's time, in ms. */
  readonly behind: number;
  readonly behindMs: number;
}

/** The last writer of a log. */
export interface LogWriterStatus {
  readonly pid: number;
  /** The next offset. */
  readonly offset: number;
  /** The time that the feed has reached, in epoch ms. */
  readonly at: number;
  /** When it wrote last, in epoch ms. */
  readonly writtenAt: number;
  /** Whether it has ended. */
  readonly closed: boolean;
  readonly isRunning: boolean;
  /** The retention; absent without a limit. */
  readonly maxBytes?: number | undefined;
  readonly maxAgeMs?: number | undefined;
}

/** What {@link inspectLog} returns. */
export interface LogStatus {
  readonly path: string;
  /** The id of the log; `undefined` for a file. */
  readonly log: string | undefined;
  readonly segments: readonly SegmentStatus[];
  /** The first offset, and the next one. */
  readonly offset: number;
  readonly end: number;
  readonly frames: number;
  readonly bytes: number;
  /** The time of the first and of the last record, in epoch ms. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** The newest writer; `isRunning`: it has written its tip in the last two seconds. */
  readonly writer: LogWriterStatus | undefined;
  readonly consumers: readonly ConsumerStatus[];
}

/** A line that can't be read, or whose offset is not the next one. */
export interface DamagedLine {
  readonly path: string;
  /** The number of the line in its file; the first one is 1. */
  readonly line: number;
  /** Where it begins in the file, uncompressed, in bytes. */
  readonly lineAt: number;
  readonly problem: string;
}

/** What {@link verifyLog} has read so far. */
export interface LogProgress {
  /** The bytes of the files on the disk. */
  readonly bytes: number;
  readonly totalBytes: number;
  readonly records: number;
  readonly frames: number;
}

/** What {@link verifyLog} returns. */
export interface LogCheck extends LogProgress {
  readonly segments: readonly SegmentStatus[];
  readonly damaged: readonly DamagedLine[];
  /** The bytes after the last newline: a line that is being written, or that a crash has torn. */
  readonly tornBytes: number;
}

/**
 * Reads the segments, the writer and the consumers of a log. It reads the beginning of each segment and the newest one,
 * so that it is fast; a file is read whole.
 *
 * @throws LogError if it can't be read
 */
export const inspectLog = async (path: string): Promise<LogStatus> => {
  const isFolder = !isFile(path);
  const segments = isFolder ? statusOf(path) : (await verifyLog(path)).segments;
  const tip = isFolder ? readPadded<Tip>(fs, tipPath(path)) : undefined;
  const age = tip === undefined ? 0 : Date.now() - tip.writtenAt;
  const end = segments.at(-1)?.end ?? tip?.offset ?? 0;
  const to = segments.findLast((segment) => segment.to !== undefined)?.to;
  return {
    path,
    log: tip?.log,
    segments,
    offset: segments[0]?.offset ?? end,
    end,
    frames: segments.reduce((sum, { frames }) => sum + frames, 0),
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
    from: segments.find((segment) => segment.from !== undefined)?.from,
    to,
    writer: tip && { ...tip, isRunning: !tip.closed && age <= goneMs },
    consumers: isFolder ? consumersOf(path, end, to) : [],
  };
};

/** The header of a segment tells the end of the one before it. */
const statusOf = (folder: string): readonly SegmentStatus[] => {
  const segments = wrapped(folder, () => {
    const found = listSegments(fs, folder);
    if (found.length === 0) fs.readdirSync(folder);
    return found.map((segment) => ({ ...segment, bytes: fs.statSync(segment.path).size, ...headOf(fs, segment) }));
  });
  return segments.map(({ path, isCompressed, bytes, offset, header, at: from }, n) => {
    const next = segments[n + 1]?.header ?? (n === segments.length - 1 ? endOf(path, isCompressed, offset) : undefined);
    const end = (next && 'after' in next ? next.after : undefined) ?? next?.offset ?? offset;
    const frames = header === undefined || next === undefined ? 0 : next.frames - header.frames;
    return { path, isCompressed, bytes, offset, end, frames, from, to: from === undefined ? undefined : next?.at };
  });
};

const endOf = (path: string, isCompressed: boolean, offset: number) => {
  const bytes = fs.readFileSync(path);
  return scanSegment(isCompressed ? gunzipSync(bytes) : bytes, offset);
};

const wrapped = <T>(path: string, read: () => T): T => {
  try {
    return read();
  } catch (cause) {
    throw toLogError('read', path, cause);
  }
};

const consumersOf = (path: string, end: number, to: number | undefined): readonly ConsumerStatus[] => {
  const names = fs.existsSync(join(path, 'cursors')) ? fs.readdirSync(join(path, 'cursors')) : [];
  return names
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => {
      const name = file.slice(0, -'.json'.length);
      const position = committedIn(path, name, { disk: fs });
      const [behind, behindMs] = [end - (position?.offset ?? 0), (to ?? 0) - (position?.at ?? to ?? 0)];
      return { name, position, behind: Math.max(0, behind), behindMs: Math.max(0, behindMs) };
    });
};

/**
 * Checks every line of a log, and says which ones can't be read.
 *
 * @param onProgress - called after each segment
 * @throws LogError if a file can't be read
 */
export const verifyLog = async (
  path: string,
  onProgress: (progress: LogProgress) => void = () => undefined,
): Promise<LogCheck> => {
  try {
    const isOneFile = isFile(path);
    const files = isOneFile ? filesOf(fs, path) : listSegments(fs, path);
    if (files.length === 0) fs.readdirSync(path);
    const totalBytes = files.reduce((sum, file) => sum + fs.statSync(file.path).size, 0);
    const check = { bytes: 0, totalBytes, records: 0, frames: 0, tornBytes: 0 };
    const [segments, damaged]: [SegmentStatus[], DamagedLine[]] = [[], []];
    for (const file of files) {
      const segment = new SegmentCheck(file, isOneFile ? (segments.at(-1)?.end ?? 0) : undefined, damaged);
      await segment.read();
      segments.push(segment.status);
      check.bytes += segment.status.bytes;
      check.records += segment.records;
      check.frames += segment.status.frames;
      check.tornBytes = segment.tornBytes;
      onProgress({ ...check });
    }
    return { ...check, segments, damaged };
  } catch (cause) {
    throw toLogError('read', path, cause);
  }
};

/** The check of one file, line by line. */
class SegmentCheck {
  readonly #file: Segment;
  readonly #first: number;
  readonly #isPlain: boolean;
  readonly #damaged: DamagedLine[];
  #line = 0;
  #lineAt = 0;
  #next: number;
  #frames = 0;
  #from: number | undefined;
  #to: number | undefined;
  records = 0;
  tornBytes = 0;

  /** @param first - the offset of the first line of a file without offsets */
  constructor(file: Segment, first: number | undefined, damaged: DamagedLine[]) {
    this.#file = file;
    this.#isPlain = first !== undefined;
    this.#first = this.#next = first ?? file.offset;
    this.#damaged = damaged;
  }

  get status(): SegmentStatus {
    const { path, isCompressed } = this.#file;
    const [offset, end, frames] = [this.#first, this.#next, this.#frames];
    const bytes = fs.statSync(path).size;
    return { path, isCompressed, bytes, offset, end, frames, from: this.#from, to: this.#to };
  }

  async read(): Promise<void> {
    const file = fs.createReadStream(this.#file.path);
    let rest: Buffer = Buffer.alloc(0);
    for await (const bytes of this.#file.isCompressed ? file.pipe(createGunzip()) : file) {
      rest = Buffer.concat([rest, bytes as Buffer]);
      let from = 0;
      for (let to = rest.indexOf(newline); to >= 0; to = rest.indexOf(newline, from)) {
        this.#check(rest.subarray(from, to));
        from = to + 1;
      }
      rest = rest.subarray(from);
    }
    this.tornBytes = rest.length;
  }

  #check(bytes: Buffer): void {
    this.#line += 1;
    if (this.#line === 1 && !this.#isPlain) {
      if (readHeader(bytes)?.offset !== this.#first) this.#is('it is not the header of this segment');
    } else this.#record(bytes);
    this.#lineAt += bytes.length + 1;
  }

  #record(bytes: Buffer): void {
    const record = readRecord(bytes, this.#isPlain ? this.#next : undefined);
    if (record === undefined) {
      if (!this.#isPlain || !isOther(bytes)) this.#is('it is not a record');
    } else if (record.offset !== this.#next) this.#is(`its offset is ${record.offset}, not ${this.#next}`);
    this.#next += 1;
    if (record === undefined) return;
    this.records += 1;
    this.#frames += record.type === 'frame' ? 1 : record.type === 'gap' ? (record.missed ?? 0) : 0;
    this.#to = stamped(record);
    this.#from ??= this.#to;
  }

  #is(problem: string): void {
    this.#damaged.push({ path: this.#file.path, line: this.#line, lineAt: this.#lineAt, problem });
  }
}
