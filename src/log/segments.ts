// The files of a log, and what a crash has left in the newest one.
import { statSync } from 'node:fs';
import type * as fs from 'node:fs';
import { join } from 'node:path';
import { constants, gunzipSync } from 'node:zlib';
import type { LockFile } from './lock.js';
import { afterRecord, type Header, newline, type Place, readHeader, readRecord, scan } from './lines.js';

/** The functions of `node:fs` that a log uses. A simulation has others. */
export type Disk = Pick<
  typeof fs,
  | 'openSync'
  | 'closeSync'
  | 'fstatSync'
  | 'readSync'
  | 'writeSync'
  | 'ftruncateSync'
  | 'readdirSync'
  | 'unlinkSync'
  | 'renameSync'
  | 'mkdirSync'
  | 'write'
  | 'read'
  | 'fdatasync'
  | 'fdatasyncSync'
  | 'fsync'
  | 'fsyncSync'
  | 'close'
>;

/** What the writer uses of its machine. A simulation has another one. */
export interface Machine {
  readonly disk: Disk;
  readonly lockFile: LockFile;
  readonly now: () => number;
  readonly boot: () => string;
  readonly newId: () => string;
  /** Calls a function every so many ms, until the returned function is called. */
  readonly every: (ms: number, call: () => void) => () => void;
  readonly soon: (call: () => void) => void;
  readonly atExit: (call: () => void) => () => void;
  readonly warn: (text: string) => void;
  readonly gzip: (bytes: Buffer, done: (error: Error | null, compressed: Buffer) => void) => void;
}

const digits = 16;

export const segmentPath = (folder: string, offset: number, compressed = false): string =>
  join(folder, `${String(offset).padStart(digits, '0')}.ndjson${compressed ? '.gz' : ''}`);

export interface Segment {
  /** The offset of its first record. */
  readonly offset: number;
  readonly path: string;
  readonly isCompressed: boolean;
}

/** Lists the segments, oldest first. While a segment is being compressed it exists twice: the compressed one counts. */
export const listSegments = (disk: Pick<Disk, 'readdirSync'>, folder: string): readonly Segment[] => {
  const found = new Map<number, Segment>();
  const start = join(folder, '/');
  for (const name of namesIn(disk, folder)) {
    const [, number, gz] = /^(\d{16})\.ndjson(\.gz)?$/.exec(name) ?? [];
    if (number === undefined) continue;
    const segment = { offset: Number(number), path: `${start}${name}`, isCompressed: gz !== undefined };
    if (segment.isCompressed || !found.has(segment.offset)) found.set(segment.offset, segment);
  }
  return [...found.values()].sort((one, other) => one.offset - other.offset);
};

export const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** A recording of version 0.2 continues in other files: `feed.ndjson.1`, `feed.ndjson.2`, … */
export const filesOf = (disk: Pick<Disk, 'openSync' | 'closeSync'>, path: string): readonly Segment[] => {
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

const namesIn = (disk: Pick<Disk, 'readdirSync'>, folder: string): readonly string[] => {
  try {
    return disk.readdirSync(folder);
  } catch (error) {
    // A reader may start before the first writer.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
};

/** Reads all bytes of an open file. */
export const readAll = (disk: Pick<Disk, 'fstatSync' | 'readSync'>, fd: number): Buffer => {
  const { size } = disk.fstatSync(fd);
  const bytes = Buffer.allocUnsafe(size);
  let length = 0;
  while (length < size) {
    const read = disk.readSync(fd, bytes, length, size - length, length);
    if (read === 0) break;
    length += read;
  }
  return bytes.subarray(0, length);
};

/** What the lines of a segment contain. */
export interface SegmentEnd extends Place {
  /** `undefined` if it is damaged. */
  readonly header: Header | undefined;
  /** The length of the complete lines, in bytes. */
  readonly length: number;
}

export const placeAfter = ({ offset, frames, holes, at }: SegmentEnd): Place => ({ offset, frames, holes, at });

/**
 * Scans a segment. Returns `undefined` if it has no complete line. A damaged line counts as one record
 * with an unknown number of frames.
 */
export const scanSegment = (bytes: Buffer, first: number): SegmentEnd | undefined => {
  let to = bytes.indexOf(newline);
  if (to < 0) return undefined;
  const header = readHeader(bytes.subarray(0, to));
  let place: Place = header ?? { offset: first, frames: 0, holes: 1 };
  let from = to + 1;
  for (to = bytes.indexOf(newline, from); to >= 0; to = bytes.indexOf(newline, from)) {
    const scanned = scan(bytes, from, to);
    const record = scanned?.isFrame === true ? aFrame : scanned && readRecord(bytes.subarray(from, to));
    if (scanned === undefined || record === undefined) place = afterRecord(place, aHole, place.at as number);
    else if (scanned.offset >= place.offset) {
      const holes = place.holes + (scanned.offset > place.offset ? 1 : 0);
      place = afterRecord({ ...place, offset: scanned.offset, holes }, record, scanned.at);
    }
    from = to + 1;
  }
  return { ...place, header, length: from };
};

const aFrame = { type: 'frame' };
const aHole = { type: 'gap' };

/** Reads the header of a segment, and the log time of its first record if that is near. */
export const headOf = (
  disk: Pick<Disk, 'openSync' | 'closeSync' | 'readSync'>,
  { path, isCompressed }: Segment,
): { readonly header: Header | undefined; readonly at: number | undefined } => {
  const fd = disk.openSync(path, 'r');
  try {
    const start = Buffer.alloc(headBytes);
    const read = start.subarray(0, disk.readSync(fd, start, 0, headBytes, 0));
    const bytes = isCompressed ? gunzipSync(read, { finishFlush: constants.Z_SYNC_FLUSH }) : read;
    const end = bytes.indexOf(newline);
    const next = bytes.indexOf(newline, end + 1);
    return {
      header: end < 0 ? undefined : readHeader(bytes.subarray(0, end)),
      at: end < 0 || next < 0 ? undefined : scan(bytes, end + 1, next)?.at,
    };
  } finally {
    disk.closeSync(fd);
  }
};

const headBytes = 64 * 1024;

/** The tip of the writer and the place of its lock: `writer.json`, written in place. */
export interface Tip {
  readonly pid: number;
  readonly log: string;
  readonly boot: string;
  /** The first offset of this writer. */
  readonly run: number;
  /** The next offset. */
  readonly offset: number;
  /** The time that the feed has reached, in epoch ms. */
  readonly at: number;
  /** When the tip was written, in epoch ms. */
  readonly writtenAt: number;
  readonly closed: boolean;
  /** The retention; absent without a limit. */
  readonly maxBytes?: number | undefined;
  readonly maxAgeMs?: number | undefined;
}

export const tipPath = (folder: string): string => join(folder, 'writer.json');

/** Within one sector of the disk. */
const tipBytes = 512;

export const writeTip = (disk: Pick<Disk, 'writeSync'>, fd: number, tip: Tip): void => {
  disk.writeSync(fd, padded(tip, tipBytes), 0, tipBytes, 0);
};

/** Writes an object in place, padded, so that no older bytes remain. */
export const padded = (value: object | null, bytes: number): Buffer =>
  Buffer.from(`${JSON.stringify(value).padEnd(bytes - 1)}\n`);

/**
 * Reads such an object; `undefined` if there is no such file, or it is empty.
 *
 * @param invalid - returns what a file stands for that has no such object
 */
export const readPadded = <T>(
  disk: Pick<Disk, 'openSync' | 'closeSync' | 'fstatSync' | 'readSync'>,
  path: string,
  invalid: () => T | undefined = () => undefined,
): T | undefined => {
  let fd: number;
  try {
    fd = disk.openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const text = readAll(disk, fd).toString();
  disk.closeSync(fd);
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    return invalid();
  }
};

/** Makes the names of new files survive a power failure. */
export const syncFolder = (folder: string, disk: Pick<Disk, 'openSync' | 'closeSync' | 'fsyncSync'>): void => {
  if (process.platform === 'win32') return;
  const fd = disk.openSync(folder, 'r');
  try {
    disk.fsyncSync(fd);
  } finally {
    disk.closeSync(fd);
  }
};
