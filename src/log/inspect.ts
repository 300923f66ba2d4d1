// What `rx-trade-feed log status` shows, with and without `--verify`.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { committedIn, lagOf } from './consume.js';
import type { Place } from '../protocol/place.js';
import { isOther, Lines, readHeader, readRecord, stamped } from './lines.js';
import { toLogError } from './log-error.js';
import { isGone, type LogEnd } from './records.js';
import { filesOf, headOf, isFile, listSegments, openSegment, readTip, scanFile, type Segment } from './segments.js';

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
  /** Why it can't be read; absent if nothing is wrong with its beginning. `verifyLog` looks at all of it. */
  readonly problem?: string | undefined;
}

/** A consumer of a log, and how far it is behind. */
export interface ConsumerStatus {
  readonly name: string;
  /** `undefined` before its first commit. */
  readonly position: Place | undefined;
  /** How many records are after its cursor, and how far it is behind in the feed's time, in ms. */
  readonly behind: number;
  readonly behindMs: number;
  /** Why its cursor can't be read, so that it can't go on; absent otherwise. */
  readonly problem?: string | undefined;
}

/** The last writer of a log. */
export interface LogWriterStatus {
  readonly pid: number;
  /** The next offset. */
  readonly offset: number;
  /** The time that the feed has reached, in epoch ms; 0 if the log has no record yet. */
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
  readonly line: string | undefined;
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

/** A line that can't be read, or whose offset isn't the next one. */
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
  const tip = isFolder ? readTip(fs, path) : undefined;
  const end = segments.at(-1)?.end ?? tip?.offset ?? 0;
  const to = segments.findLast((segment) => segment.to !== undefined)?.to;
  return {
    path,
    line: tip?.line,
    segments,
    offset: segments[0]?.offset ?? end,
    end,
    frames: segments.reduce((sum, { frames }) => sum + frames, 0),
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
    from: segments.find((segment) => segment.from !== undefined)?.from,
    to,
    writer: tip && { ...tip, isRunning: !isGone(tip, Date.now()) },
    consumers: isFolder ? consumersOf(path, { gen: 0, began: 0, ...tip, offset: end, at: to ?? 0 }) : [],
  };
};

/** The header of a segment tells the end of the one before it. */
const statusOf = (folder: string): readonly SegmentStatus[] => {
  try {
    const segments = listed(folder).flatMap((segment) => headOf(fs, segment) ?? []);
    return segments.map(({ path, isCompressed, bytes, offset, header, at: from }, n) => {
      const next = segments[n + 1]?.header;
      const segment = { path, isCompressed, offset };
      const place = next ?? (n === segments.length - 1 ? scanFile(fs, segment)?.place : undefined);
      const frames = header === undefined || place === undefined ? 0 : place.frames - header.frames;
      const end = place?.offset ?? segments[n + 1]?.offset ?? offset;
      const to = from === undefined ? undefined : place?.at;
      const problem = header === undefined && bytes > 0 && { problem: 'its first line is damaged' };
      return { path, isCompressed, bytes, offset, end, frames, from, to, ...problem };
    });
  } catch (cause) {
    throw toLogError('read', folder, cause);
  }
};

const listed = (folder: string): readonly Segment[] => {
  const segments = listSegments(fs, folder);
  // Fails if there is no such folder.
  if (segments.length === 0) fs.readdirSync(folder);
  return segments;
};

const consumersOf = (path: string, end: LogEnd): readonly ConsumerStatus[] => {
  const names = fs.existsSync(join(path, 'cursors')) ? fs.readdirSync(join(path, 'cursors')) : [];
  return names
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => {
      const name = file.slice(0, -'.json'.length);
      const { position, ...problem } = cursorIn(path, name);
      return { name, position, ...lagOf(position, end), ...problem };
    });
};

const cursorIn = (path: string, name: string): Pick<ConsumerStatus, 'position' | 'problem'> => {
  try {
    return { position: committedIn(path, name, fs) };
  } catch (cause) {
    return { position: undefined, problem: toLogError('read', path, cause).message };
  }
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
    const isPlain = isFile(path);
    const tip = isPlain ? undefined : readTip(fs, path);
    const files = isPlain ? filesOf(path) : listed(path);
    const sizeOf = (file: Segment) => fs.statSync(file.path, { throwIfNoEntry: false })?.size ?? 0;
    const totalBytes = files.reduce((sum, file) => sum + sizeOf(file), 0);
    const check = { bytes: 0, totalBytes, records: 0, frames: 0, tornBytes: 0 };
    const [segments, damaged]: [SegmentStatus[], DamagedLine[]] = [[], []];
    let before: CheckedSegment | undefined;
    for (const file of files) {
      const found = openSegment(fs, file);
      // Retention was faster.
      if (found === undefined) continue;
      before?.endsBefore(found.offset);
      before = new CheckedSegment(found, isPlain, damaged);
      const status = await before.read(found.fd);
      segments.push(status);
      check.bytes += status.bytes;
      check.records += before.records;
      check.frames += status.frames;
      check.tornBytes = before.tornBytes;
      onProgress({ ...check });
    }
    if (tip !== undefined) before?.endsBefore(tip.offset);
    return { ...check, segments, damaged };
  } catch (cause) {
    throw toLogError('read', path, cause);
  }
};

/** Reads the lines of a segment, one after the other, and reports those that are damaged. */
class CheckedSegment {
  readonly #segment: Segment;
  readonly #isPlain: boolean;
  readonly #damaged: DamagedLine[];
  /** The number of the next line, and where it begins. */
  #line = 1;
  #lineAt = 0;
  /** Whether the line before is damaged: it may have been several. */
  #isUnsure = false;
  #end: number;
  #frames = 0;
  #from: number | undefined;
  #to: number | undefined;
  records = 0;
  tornBytes = 0;

  /** @param isPlain - whether its lines have no offsets, and the first is no header */
  constructor(segment: Segment, isPlain: boolean, damaged: DamagedLine[]) {
    this.#segment = segment;
    this.#isPlain = isPlain;
    this.#damaged = damaged;
    this.#end = segment.offset;
  }

  async read(fd: number): Promise<SegmentStatus> {
    const { path, isCompressed, offset } = this.#segment;
    const { size } = fs.fstatSync(fd);
    const file = fs.createReadStream('', { fd });
    let rest: Buffer = Buffer.alloc(0);
    try {
      // The loop reports an error, and ends both streams.
      for await (const bytes of isCompressed ? pipeline(file, createGunzip(), () => undefined) : file) {
        const lines = new Lines(Buffer.concat([rest, bytes as Buffer]), !this.#isPlain);
        for (let from = 0; lines.next(); from = lines.position) {
          this.#check(lines.line);
          this.#line += 1;
          this.#lineAt += lines.position - from;
        }
        rest = lines.rest;
      }
    } catch (error) {
      if (!isCompressed) throw error;
      this.#isUnsure = true;
      this.#report(`it can't be decompressed: ${(error as Error).message}`);
    }
    this.tornBytes = rest.length;
    const [end, frames, from, to] = [this.#end, this.#frames, this.#from, this.#to];
    return { path, isCompressed, bytes: size, offset, end, frames, from, to };
  }

  #check(text: string | undefined): void {
    if (this.#line === 1 && !this.#isPlain) {
      if (readHeader(text)?.offset !== this.#segment.offset) this.#report("it isn't the header of this segment");
      return;
    }
    const [expected, wasUnsure] = [this.#end, this.#isUnsure];
    const record = readRecord(text, this.#isPlain ? expected : undefined);
    this.#end = Math.max(expected, record?.offset ?? expected) + 1;
    this.#isUnsure = record === undefined && !(this.#isPlain && isOther(text));
    if (this.#isUnsure) this.#report(text === undefined ? 'its checksum is wrong' : "it isn't a record");
    if (record === undefined) return;
    this.records += 1;
    this.#frames += record.type === 'frame' ? 1 : record.type === 'gap' ? (record.missed ?? 0) : 0;
    this.#to = stamped(record);
    this.#from ??= this.#to;
    const isNext = record.offset === expected || (wasUnsure && record.offset > expected);
    if (!isNext) this.#report(`its offset is ${record.offset}, not ${expected}`);
  }

  /** Reports the records that are missing after the last line, of which the next offset tells. */
  endsBefore(next: number): void {
    const end = this.#end;
    if (next > end && !this.#isUnsure)
      this.#report(`${next - end === 1 ? `record ${end} is` : `records ${end} to ${next - 1} are`} missing`);
  }

  #report(problem: string): void {
    this.#damaged.push({ path: this.#segment.path, line: this.#line, lineAt: this.#lineAt, problem });
  }
}
