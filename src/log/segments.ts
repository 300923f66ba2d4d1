// The files of a log.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { constants, gunzipSync } from 'node:zlib';
import type { EventTime } from '../operators/items/event-time.js';
import type { LockFile } from './lock.js';
import { aFrame, afterRecord, aHole, type Header, Lines, type Place, readHeader, scan, startOf } from './lines.js';

/** `node:fs`. A simulation has the functions that a log uses. */
export type Disk = typeof fs;

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

export interface Segment {
  /** The offset of its first record. */
  readonly offset: number;
  readonly path: string;
  readonly isCompressed: boolean;
}

export const segmentPath = (folder: string, offset: number): string =>
  join(folder, `${String(offset).padStart(16, '0')}.ndjson`);

/** Lists the segments, oldest first. While a segment is being compressed it exists twice: the compressed one counts. */
export const listSegments = (disk: Disk, folder: string): readonly Segment[] => {
  const found = new Map<number, Segment>();
  const start = join(folder, '/');
  for (const name of orIfMissing(() => disk.readdirSync(folder), [])) {
    const [, number, gz] = /^(\d{16})\.ndjson(\.gz)?$/.exec(name) ?? [];
    if (number === undefined || (gz === undefined && found.has(Number(number)))) continue;
    found.set(Number(number), { offset: Number(number), path: `${start}${name}`, isCompressed: gz !== undefined });
  }
  return [...found.values()].sort((one, other) => one.offset - other.offset);
};

export const isFile = (path: string): boolean => fs.statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** A recording of version 0.2 continues in other files: `feed.ndjson.1`, `feed.ndjson.2`, … */
export const filesOf = (path: string): readonly Segment[] => {
  const files: Segment[] = [];
  for (let file = path; fs.existsSync(file); file = `${path}.${files.length}`)
    files.push({ offset: files.length, path: file, isCompressed: file.endsWith('.gz') });
  return files;
};

/** A reader may start before the first writer. */
const orIfMissing = <T>(read: () => T, missing: T): T => {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return missing;
    throw error;
  }
};

/** Reads all bytes of an open file. */
export const readAll = (disk: Disk, fd: number): Buffer => {
  const bytes = Buffer.allocUnsafe(disk.fstatSync(fd).size);
  let length = 0;
  for (let read = -1; read !== 0 && length < bytes.length; length += read)
    read = disk.readSync(fd, bytes, length, bytes.length - length, length);
  return bytes.subarray(0, length);
};

/** What the lines of a segment contain. */
export interface SegmentEnd {
  /** `undefined` if it is damaged. */
  readonly header: Header | undefined;
  /** The place after the last record. */
  readonly place: Place;
  /** The length of the complete lines, in bytes. */
  readonly length: number;
}

/**
 * Scans a segment. Returns `undefined` if it has no complete line. A damaged line counts as one record
 * with an unknown number of frames.
 */
export const scanSegment = (bytes: Buffer, first: number): SegmentEnd | undefined => {
  const lines = new Lines(bytes);
  if (!lines.next()) return undefined;
  const header = readHeader(lines.line);
  let place = header === undefined ? { ...startOf('', first), holes: 1 } : placeOf(header);
  while (lines.next()) {
    const scanned = scan(lines.line);
    if (scanned === undefined) place = afterRecord(place, aHole, place.at);
    else if (scanned.offset >= place.offset) {
      if (scanned.offset > place.offset) place = { ...place, offset: scanned.offset, holes: place.holes + 1 };
      place = afterRecord(place, scanned.event ?? aFrame, scanned.at);
    }
  }
  return { header, place, length: lines.end };
};

/** Where a segment begins. */
export const placeOf = ({ offset, frames, holes, at, log }: Header): Place => ({
  offset,
  frames,
  holes,
  log,
  ...(at !== undefined && { at }),
});

/** Reads the header of a segment, and the log time of its first record if that is near. */
export const headOf = (
  disk: Disk,
  { path, isCompressed }: Segment,
): { readonly header: Header | undefined; readonly at: number | undefined } => {
  const fd = disk.openSync(path, 'r');
  try {
    const start = Buffer.alloc(headBytes);
    const read = start.subarray(0, disk.readSync(fd, start, 0, headBytes, 0));
    const lines = new Lines(isCompressed ? gunzipSync(read, { finishFlush: constants.Z_SYNC_FLUSH }) : read);
    const header = lines.next() ? readHeader(lines.line) : undefined;
    return { header, at: lines.next() ? scan(lines.line)?.at : undefined };
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

/** The time that a feed has reached, in epoch ms. Before its first event, it may lag the clock by any amount. */
export const reachedAt = (time: EventTime, { at = -Infinity }: Place): number =>
  time.known() === -Infinity ? at : Math.max(at, Math.floor(time.now()));

const tipPath = (folder: string): string => join(folder, 'writer.json');

export const readTip = (disk: Disk, folder: string): Tip | undefined => readInPlace<Tip>(disk, tipPath(folder));

export const openTip = (disk: Disk, folder: string) => openInPlace(disk, tipPath(folder));

/** A small file that is written in place. */
export interface InPlace {
  readonly fd: number;
  readonly path: string;
  /** One write inside a sector of the disk: it is never torn. */
  readonly write: (value: object | null) => void;
}

/** Opens such a file, and creates it if it does not exist. */
export const openInPlace = (disk: Disk, path: string): InPlace => {
  // `a+` creates the file, but would write at its end only.
  disk.closeSync(disk.openSync(path, 'a+'));
  const fd = disk.openSync(path, 'r+');
  const write = (value: object | null): void => {
    // Padded, so that no older bytes remain.
    const bytes = Buffer.from(`${JSON.stringify(value).padEnd(inPlaceBytes - 1)}\n`);
    disk.writeSync(fd, bytes, 0, bytes.length, 0);
  };
  return { fd, path, write };
};

const inPlaceBytes = 512;

/**
 * Reads such a file; `undefined` if there is none, or it is empty.
 *
 * @param invalid - returns what a file stands for that has no such object
 */
export const readInPlace = <T>(
  disk: Disk,
  path: string,
  invalid: () => T | undefined = () => undefined,
): T | undefined => {
  const text = orIfMissing(() => disk.readFileSync(path, 'utf8'), '');
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    return invalid();
  }
};

/** Makes the names of new files survive a power failure. */
export const syncFolder = (folder: string, disk: Disk): void => {
  if (process.platform === 'win32') return;
  const fd = disk.openSync(folder, 'r');
  try {
    disk.fsyncSync(fd);
  } finally {
    disk.closeSync(fd);
  }
};
