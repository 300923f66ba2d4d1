// The files of a log.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { constants, gunzipSync } from 'node:zlib';
import type { EventTime } from '../operators/items/event-time.js';
import type { LockFile } from './lock.js';
import {
  aFrame,
  afterRecord,
  aHole,
  type Header,
  Lines,
  ownTime,
  type Place,
  readHeader,
  scan,
  startOf,
} from './lines.js';

/** `node:fs`. A simulation has the functions that a log uses. */
export type Disk = typeof fs;

/** What the writer uses of its machine. A simulation has another one. */
export interface Machine {
  readonly disk: Disk;
  readonly lockFile: LockFile;
  readonly now: () => number;
  /** A clock that nobody sets, in ms. */
  readonly monotonic: () => number;
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

/** The names in a folder; none if it does not exist. */
export const namesIn = (disk: Disk, folder: string): readonly string[] =>
  orIfMissing(() => disk.readdirSync(folder), []);

/** Lists the segments, oldest first. While a segment is being compressed it exists twice: the compressed one counts. */
export const listSegments = (disk: Disk, folder: string): readonly Segment[] => {
  const found = new Map<number, Segment>();
  const start = join(folder, '/');
  for (const name of namesIn(disk, folder)) {
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

/** Reads bytes of a file from a position on: fewer at its end. */
type ReadAt = (position: number, length: number) => Buffer;

const readIn =
  (disk: Disk, fd: number): ReadAt =>
  (position, length) => {
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, disk.readSync(fd, bytes, 0, length, position));
  };

/** How much of a segment is held at once, unless one line is longer. */
const pieceBytes = 1024 * 1024;

/** The complete lines of a file in pieces: a whole segment can be longer than the longest string. */
function* piecesOf(read: ReadAt): Generator<Lines> {
  for (let [position, length] = [0, pieceBytes]; ;) {
    const bytes = read(position, length);
    const lines = new Lines(bytes);
    // A longer line, or bytes after the last newline.
    if (lines.end === 0 && bytes.length < length) return;
    length = lines.end === 0 ? length * 2 : pieceBytes;
    position += lines.end;
    if (lines.end > 0) yield lines;
  }
}

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
const scanSegment = (read: ReadAt, first: number): SegmentEnd | undefined => {
  let [header, place, length]: [Header | undefined, Place | undefined, number] = [undefined, undefined, 0];
  for (const lines of piecesOf(read)) {
    if (place === undefined && lines.next()) {
      header = readHeader(lines.line);
      place = header === undefined ? { ...startOf('', first), holes: 1 } : placeOf(header);
    }
    while (lines.next()) place = afterLine(place as Place, lines.line);
    length += lines.end;
  }
  return place && { header, place, length };
};

const afterLine = (place: Place, line: string | undefined): Place => {
  const scanned = scan(line);
  if (scanned === undefined) return afterRecord(place, aHole, place.at);
  const { offset, event = aFrame, at } = scanned;
  if (offset < place.offset) return place;
  const before = offset > place.offset ? { ...place, offset, holes: place.holes + 1 } : place;
  return afterRecord(before, event, at);
};

/** Scans an open segment that is not compressed. */
export const scanOpen = (disk: Disk, fd: number, first: number): SegmentEnd | undefined =>
  scanSegment(readIn(disk, fd), first);

/** Scans the file of a segment. A compressed one that is damaged has no complete line. */
export const scanFile = (disk: Disk, { path, offset, isCompressed }: Segment): SegmentEnd | undefined => {
  if (isCompressed) {
    const bytes = orIfDamaged(() => gunzipSync(disk.readFileSync(path)), Buffer.alloc(0));
    return scanSegment((position, length) => bytes.subarray(position, position + length), offset);
  }
  const fd = disk.openSync(path, 'r');
  try {
    return scanOpen(disk, fd, offset);
  } finally {
    disk.closeSync(fd);
  }
};

/** A file of gzip that is damaged has an error of zlib; readers report a gap in its place. */
const orIfDamaged = <T>(unzip: () => T, damaged: T): T => {
  try {
    return unzip();
  } catch (error) {
    if (String((error as NodeJS.ErrnoException).code).startsWith('Z_')) return damaged;
    throw error;
  }
};

/** Where a segment begins. */
export const placeOf = ({ offset, frames, holes, at, log }: Header): Place => ({
  offset,
  frames,
  holes,
  log,
  ...(at !== undefined && { at }),
});

/** The beginning of a segment. */
interface Head {
  readonly header: Header | undefined;
  /** The log time of the first record, in epoch ms; `undefined` if that is not near. */
  readonly at: number | undefined;
  /** Its own time, which is earlier if a clock was set back. */
  readonly time: number | undefined;
}

/** Reads the header of a segment, and the times of its first record. A compressed one that is damaged has none. */
export const headOf = (disk: Disk, { path, isCompressed }: Segment): Head => {
  const fd = disk.openSync(path, 'r');
  try {
    const start = readIn(disk, fd)(0, headBytes);
    const unzip = () => gunzipSync(start, { finishFlush: constants.Z_SYNC_FLUSH });
    const lines = new Lines(isCompressed ? orIfDamaged(unzip, Buffer.alloc(0)) : start);
    const header = lines.next() ? readHeader(lines.line) : undefined;
    const first = lines.next() ? scan(lines.line) : undefined;
    return { header, at: first?.at, time: first && ownTime(first) };
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

/** Returns the tip; `undefined` if there is none, or its offset is no number. */
export const readTip = (disk: Disk, folder: string): Tip | undefined => {
  const tip = readInPlace<Tip | null>(disk, tipPath(folder)) ?? undefined;
  return Number.isSafeInteger(tip?.offset) ? tip : undefined;
};

export const openTip = (disk: Disk, folder: string) => openInPlace(disk, tipPath(folder));

/** A small file that is written in place. */
export interface InPlace {
  readonly fd: number;
  readonly path: string;
  /** One write inside a sector of the disk: it is never torn. */
  readonly write: (value: object | null) => void;
}

export const isThere = (disk: Disk, path: string): boolean =>
  disk.statSync(path, { throwIfNoEntry: false }) !== undefined;

/**
 * Returns whether an open file is still the one at a path, with at least so many bytes. A descriptor alone proves
 * nothing: somebody may have removed, moved, replaced or cut the file, and writes still succeed.
 */
export const isInPlace = (disk: Disk, fd: number, path: string, leastBytes = 0): boolean => {
  const file = disk.fstatSync(fd);
  const there = disk.statSync(path, { throwIfNoEntry: false });
  return there?.ino === file.ino && there.dev === file.dev && file.nlink > 0 && file.size >= leastBytes;
};

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

export const inPlaceBytes = 512;

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
