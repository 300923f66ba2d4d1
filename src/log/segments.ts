// The files of a log, and what a crash has left in the newest one.
import type * as fs from 'node:fs';
import { join } from 'node:path';
import { constants, gunzipSync } from 'node:zlib';
import {
  type Counts,
  countsOf,
  type Header,
  newline,
  readHeader,
  type Recorded,
  readRecord,
  scan,
  type Scanned,
} from './lines.js';

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
  for (const name of namesIn(disk, folder)) {
    const [, number, gz] = /^(\d{16})\.ndjson(\.gz)?$/.exec(name) ?? [];
    if (number === undefined) continue;
    const segment = { offset: Number(number), path: join(folder, name), isCompressed: gz !== undefined };
    if (segment.isCompressed || !found.has(segment.offset)) found.set(segment.offset, segment);
  }
  return [...found.values()].sort((one, other) => one.offset - other.offset);
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

/** What the complete, valid lines of a segment contain. */
export interface SegmentEnd {
  readonly header: Header;
  /** The length of these lines, in bytes. */
  readonly length: number;
  /** The next offset, and the frames and the time before it. */
  readonly offset: number;
  readonly frames: number;
  readonly holes: number;
  readonly at: number | undefined;
}

/** Scans a segment up to its first line that is torn or damaged; `undefined` without a header. */
export const scanSegment = (bytes: Buffer): SegmentEnd | undefined => {
  const first = bytes.indexOf(newline);
  const header = first < 0 ? undefined : readHeader(bytes.subarray(0, first));
  if (header === undefined) return undefined;
  let { offset, frames, holes, at } = header;
  let from = first + 1;
  for (let to = bytes.indexOf(newline, from); to >= 0; to = bytes.indexOf(newline, from)) {
    const record = scan(bytes, from, to);
    if (record?.offset !== offset) break;
    const counts = countsIn(record, bytes, from, to);
    frames += counts.frames;
    holes += counts.holes;
    ({ at } = record);
    offset += 1;
    from = to + 1;
  }
  return { header, length: from, offset, frames, holes, at };
};

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

const countsIn = ({ isFrame }: Scanned, bytes: Buffer, from: number, to: number): Counts =>
  countsOf(isFrame ? { type: 'frame' } : (readRecord(bytes.subarray(from, to)) as Recorded));

/** The tip of the writer and the place of its lock: `writer.json`, written in place. */
export interface Tip {
  readonly pid: number;
  readonly log: string;
  readonly boot: string;
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
