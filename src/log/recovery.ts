// Opens a log for writing, after whatever has happened to the writer before.
import { gunzipSync } from 'node:zlib';
import type { Place } from './lines.js';
import { LogError, toLogError } from './log-error.js';
import {
  listSegments,
  placeAfter,
  readAll,
  readPadded,
  scanSegment,
  type Segment,
  type SegmentEnd,
  syncFolder,
  type Tip,
  tipPath,
  writeTip,
  type Machine,
} from './segments.js';

/** A log that this process has locked. */
export interface Opened {
  readonly lockFd: number;
  readonly log: string;
  readonly boot: string;
  /** Where the next segment begins. */
  readonly place: Place;
  /** After a power failure: the end of the remaining records; `null` if none remain. */
  readonly after: number | null | undefined;
}

/** After a power failure the offsets go on at the next multiple of this. */
const jump = 1_000_000_000;

/**
 * Locks a log and finds its end. The writer then begins a new segment: it never appends to an old one, because a reader
 * may hold the torn bytes at its end.
 *
 * @throws LogError with the code `log-in-use` or `log-write-failed`
 */
export const openLog = (
  folder: string,
  { disk, lockFile, boot: bootId, newId }: Pick<Machine, 'disk' | 'lockFile' | 'boot' | 'newId'>,
  isLocked: boolean,
): Opened => {
  let lockFd: number | undefined;
  try {
    disk.mkdirSync(folder, { recursive: true });
    lockFd = openInPlace(disk, tipPath(folder));
    if (isLocked && !lockFile(lockFd, tipPath(folder)))
      throw new LogError('log-in-use', `The log ${folder} has a writer already.`, { path: folder });
    const tip = readPadded<Tip>(disk, tipPath(folder));
    const segments = listSegments(disk, folder);
    const end = endOf(segments, disk);
    const boot = bootId();
    const log = end?.header?.log ?? tip?.log ?? newId();
    const place = end === undefined ? { offset: 0, frames: 0, holes: 0 } : placeAfter(end);
    // After a power failure lines that readers saw may be gone, so their offsets are never used again.
    const isComplete = end?.header?.boot === boot || (tip?.closed === true && tip.offset === end?.offset);
    const isUnused = tip === undefined || (tip.offset === 0 && (tip.closed || tip.boot === boot));
    const isNew = end === undefined && isUnused;
    if (isNew || (end !== undefined && isComplete))
      return persisted(folder, disk, { lockFd, log, boot, place, after: undefined });
    const known = Math.max(place.offset, tip?.offset ?? 0, segments.at(-1)?.offset ?? 0);
    const offset = (Math.floor(known / jump) + 1) * jump;
    // Without a record there is no time from which the gap of the log could begin.
    const after = end?.at === undefined ? null : end.offset;
    return persisted(folder, disk, { lockFd, log, boot, place: { ...place, offset }, after });
  } catch (cause) {
    if (lockFd !== undefined) disk.closeSync(lockFd);
    throw toLogError('write', folder, cause);
  }
};

/** Whatever a power failure takes, the next writer knows this log, its first offset, and that it was not closed. */
const persisted = (folder: string, disk: Machine['disk'], opened: Opened): Opened => {
  const { lockFd, log, boot, place } = opened;
  const { offset, at = 0 } = place;
  writeTip(disk, lockFd, { pid: process.pid, log, boot, run: offset, offset, at, writtenAt: at, closed: false });
  disk.fdatasyncSync(lockFd);
  syncFolder(folder, disk);
  return opened;
};

/** Opens a file that is written in place, and creates it if it does not exist. */
export const openInPlace = (disk: Machine['disk'], path: string): number => {
  // `a+` creates the file, but would write at its end only.
  disk.closeSync(disk.openSync(path, 'a+'));
  return disk.openSync(path, 'r+');
};

/** Finds the end, and removes what a crash has left there: segments without a complete line, and a torn line. */
const endOf = (segments: readonly Segment[], disk: Machine['disk']): SegmentEnd | undefined => {
  const newest = segments.at(-1);
  if (newest === undefined) return undefined;
  const { offset, path, isCompressed } = newest;
  const before = () => endOf(segments.slice(0, -1), disk);
  const fd = disk.openSync(path, isCompressed ? 'r' : 'r+');
  try {
    const bytes = readAll(disk, fd);
    const end = scanSegment(isCompressed ? gunzipSync(bytes) : bytes, offset);
    if (isCompressed) return end;
    if (end !== undefined && end.offset > offset) {
      if (bytes.length > end.length) disk.ftruncateSync(fd, end.length);
      if (end.header !== undefined) return end;
      const { header, frames = 0, holes = 0 } = before() ?? {};
      return { ...end, header, frames: end.frames + frames, holes: end.holes + holes };
    }
    disk.unlinkSync(path);
    const older = before();
    // Its header knows the place, also if retention or a power failure has removed what was before it.
    if (older === undefined || end === undefined) return older ?? end;
    return { ...older, frames: end.frames, holes: end.holes, at: end.at };
  } finally {
    disk.closeSync(fd);
  }
};
