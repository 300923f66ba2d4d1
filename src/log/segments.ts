// The files of a log.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { constants as zlib, gunzipSync } from 'node:zlib';
import type { LockFile } from './lock.js';
import { afterRecord, nextOffset, type Place, startOf } from '../protocol/place.js';
import { tryCall } from '../protocol/type-guards.js';
import { aFrame, aHole, jsonIn, Lines, placeBefore, placeOf, readHeader, type SegmentHead } from './lines.js';
import { LogError } from './log-error.js';

/** `node:fs`. A simulation has the functions that a log uses. */
export type Disk = typeof fs;

/** What the writer uses of its machine. A simulation has another one. */
export interface Machine {
  readonly disk: Disk;
  readonly lockFile: LockFile;
  readonly now: () => number;
  /** A clock that nobody sets, in ms. */
  readonly monotonic: () => number;
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

/** The names in a folder; none if it doesn't exist. */
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

/** A file that is read as a log is its only segment. */
export const filesOf = (path: string): readonly Segment[] =>
  fs.existsSync(path) ? [{ offset: 0, path, isCompressed: path.endsWith('.gz') }] : [];

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

export const readIn =
  (disk: Disk, fd: number): ReadAt =>
  (position, length) => {
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, disk.readSync(fd, bytes, 0, length, position));
  };

/** How much of a segment is held at once, unless one line is longer. */
const pieceBytes = 1024 * 1024;

/** The complete lines of a file in pieces: a whole segment can be longer than the longest string. */
export function* piecesOf(read: ReadAt, from = 0, size = pieceBytes): Generator<Lines> {
  for (let [position, length] = [from, size]; ;) {
    const bytes = read(position, length);
    const lines = new Lines(bytes, true);
    // A longer line, or bytes after the last newline.
    if (lines.end === 0 && bytes.length < length) return;
    length = lines.end === 0 ? length * 2 : size;
    position += lines.end;
    if (lines.end > 0) yield lines;
  }
}

const { O_CREAT, O_RDONLY, O_RDWR } = fs.constants;
// Windows has no FIFOs in folders.
const O_NONBLOCK = (fs.constants as Partial<typeof fs.constants>).O_NONBLOCK ?? 0;

/** Opens a file. With the name of a file, a FIFO would block for ever, and a folder or a device has no lines. */
const openFile = (disk: Disk, path: string, flags = O_RDONLY): number => {
  const fd = disk.openSync(path, flags | O_NONBLOCK);
  if (disk.fstatSync(fd).isFile()) return fd;
  disk.closeSync(fd);
  const advice = 'Remove it, or use another folder.';
  throw new LogError('log-corrupt', `${path} isn't a file, so it can't be a part of a log.`, { path, advice });
};

/** Uses an open file, and closes it. */
export const closedAfter = <T>(disk: Disk, fd: number, use: (fd: number) => T): T => {
  try {
    return use(fd);
  } finally {
    disk.closeSync(fd);
  }
};

/** Reads a file whole. */
export const readFile = (disk: Disk, path: string): Buffer =>
  closedAfter(disk, openFile(disk, path), (fd) => readAll(disk, fd));

interface OpenSegment extends Segment {
  readonly fd: number;
}

/**
 * Opens a segment of a listing, which may be out of date: it may be compressed by now. `undefined` if it's gone.
 * Whoever lists again gets on, because retention never brings a segment back.
 */
export const openSegment = (disk: Disk, segment: Segment, flags = O_RDONLY): OpenSegment | undefined => {
  const compressed = { ...segment, path: `${segment.path}.gz`, isCompressed: true };
  for (const each of segment.isCompressed ? [segment] : [segment, compressed]) {
    const fd = orIfMissing(() => openFile(disk, each.path, flags), undefined);
    if (fd !== undefined) return { ...each, fd };
  }
  return undefined;
};

/** Decompresses a segment or the beginning of one. A damaged one has no line: its reader reports what is missing. */
const unzipped = (bytes: Buffer, finishFlush = zlib.Z_FINISH): Buffer =>
  tryCall(() => gunzipSync(bytes, { finishFlush })) ?? Buffer.alloc(0);

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
  /** `undefined` if it's damaged. */
  readonly header: SegmentHead | undefined;
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
  let [header, place, length]: [SegmentHead | undefined, Place | undefined, number] = [undefined, undefined, 0];
  for (const lines of piecesOf(read)) {
    if (place === undefined && lines.next()) {
      header = readHeader(lines.line);
      place = header === undefined ? { ...startOf('', first), holes: 1 } : placeOf(header);
    }
    while (lines.next()) place = afterLine(place as Place, lines);
    length += lines.end;
  }
  if (place === undefined) return undefined;
  return { header, place: header?.offset === place.offset ? placeBefore(header) : place, length };
};

const afterLine = (place: Place, lines: Lines): Place => {
  const scanned = lines.scan();
  if (scanned === undefined) return afterRecord(place, aHole, place.at);
  const { offset, event = aFrame, at } = scanned;
  if (offset < place.offset) return place;
  const before = offset > place.offset ? { ...place, offset, holes: place.holes + 1 } : place;
  return afterRecord(before, event, at);
};

/** Scans the file of a segment; `undefined` if it's gone or has no complete line. */
export const scanFile = (disk: Disk, segment: Segment): SegmentEnd | undefined => {
  const found = openSegment(disk, segment);
  return found && scanOpened(disk, found);
};

/** Scans a segment, and closes it. A compressed one that is damaged has no complete line. */
export const scanOpened = (disk: Disk, { fd, offset, isCompressed }: OpenSegment): SegmentEnd | undefined =>
  closedAfter(disk, fd, () => {
    if (!isCompressed) return scanSegment(readIn(disk, fd), offset);
    const bytes = unzipped(readAll(disk, fd));
    return scanSegment((position, length) => bytes.subarray(position, position + length), offset);
  });

/** The beginning of a segment. */
interface SegmentStart extends Segment {
  /** The size of the file, in bytes. */
  readonly bytes: number;
  /** `undefined` if it's damaged, or not written yet. */
  readonly header: SegmentHead | undefined;
  /** The log time of the first record, in epoch ms; `undefined` if that isn't near. */
  readonly at: number | undefined;
  /** Its own time, which is earlier if a clock was set back. */
  readonly time: number | undefined;
}

/** Reads the beginning of a segment; `undefined` if it's gone. */
export const headOf = (disk: Disk, segment: Segment): SegmentStart | undefined => {
  const found = openSegment(disk, segment);
  if (found === undefined) return undefined;
  const { fd, offset, path, isCompressed } = found;
  return closedAfter(disk, fd, () => {
    const start = readIn(disk, fd)(0, headBytes);
    const lines = new Lines(isCompressed ? unzipped(start, zlib.Z_SYNC_FLUSH) : start, true);
    const header = lines.next() ? readHeader(lines.line) : undefined;
    const first = lines.next() ? lines.scan() : undefined;
    const { size: bytes } = disk.fstatSync(fd);
    return { offset, path, isCompressed, bytes, header, at: first?.at, time: first?.time };
  });
};

const headBytes = 64 * 1024;

/** The tip of the writer and the place of its lock: `writer.json`, written in place. */
export interface Tip {
  readonly pid: number;
  /** The id of the log. */
  readonly line: string;
  /** The generation of this writer, and its first offset. */
  readonly gen: number;
  readonly began: number;
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

/** Returns how many records come after a place, up to where a writer is. A place without a generation has that one. */
export const recordsAfter = (
  { offset, gen = 0 }: Pick<Place, 'offset'> & Partial<Place>,
  end: Pick<Tip, 'gen' | 'began' | 'offset'>,
): number => Math.max(0, end.offset - nextOffset({ offset, gen: gen || end.gen }, end));

const tipPath = (folder: string): string => join(folder, 'writer.json');

export const readTip = (disk: Disk, folder: string): Tip | undefined => readInPlace(disk, tipPath(folder), tipIn);

/** A tip that is damaged says nothing, as none does: the segments themselves are the log. */
const tipIn = (json: unknown): Tip | undefined => {
  const tip = Object(json) as Tip;
  const { pid, gen, began, offset, at, writtenAt } = tip;
  const isValid = [pid, gen, began, offset, at, writtenAt].every(Number.isFinite) && typeof tip.line === 'string';
  return isValid ? tip : undefined;
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

/** Opens such a file. By default, creates it if it doesn't exist. */
export const openInPlace = (disk: Disk, path: string, flags = O_RDWR | O_CREAT): InPlace => {
  const fd = openFile(disk, path, flags);
  const write = (value: object | null): void => {
    // Padded, so that no older bytes remain.
    const bytes = Buffer.from(`${JSON.stringify(value).padEnd(inPlaceBytes - 1)}\n`);
    disk.writeSync(fd, bytes, 0, bytes.length, 0);
  };
  return { fd, path, write };
};

export const inPlaceBytes = 512;

/**
 * Reads such a file; `undefined` if there is none.
 *
 * @param valueIn - returns what is in it, given its JSON; `undefined` stands for a text that isn't JSON
 */
export const readInPlace = <T>(disk: Disk, path: string, valueIn: (json: unknown) => T): T | undefined => {
  const bytes = orIfMissing(() => readFile(disk, path), undefined);
  return bytes && valueIn(jsonIn(bytes.toString()));
};

/** Makes the names of new files survive a power failure. */
export const syncFolder = (folder: string, disk: Disk): void => {
  if (process.platform !== 'win32') closedAfter(disk, disk.openSync(folder, 'r'), (fd) => disk.fsyncSync(fd));
};
