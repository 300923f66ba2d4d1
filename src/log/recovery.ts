// Opens a log for writing, after whatever has happened to the writer before.
import { constants } from 'node:fs';
import { join } from 'node:path';
import { type FeedState, noFeed, stoppedAt } from '../protocol/feed-state.js';
import { type Place, startOf } from '../protocol/place.js';
import { logGap } from './lines.js';
import { LogError, toLogError } from './log-error.js';
import {
  type Disk,
  type InPlace,
  listSegments,
  type Machine,
  namesIn,
  openTip,
  openSegment,
  readInPlace,
  readTip,
  scanOpen,
  scanOpened,
  type Segment,
  type SegmentEnd,
  syncFolder,
} from './segments.js';

/** Where a writer begins. */
interface Beginning {
  readonly place: Place;
  /** If records that readers saw may be gone: the end of the remaining ones; `null` if none remain. */
  readonly after: number | null | undefined;
}

/** A log that this process has locked. */
export interface Opened extends Beginning {
  readonly tip: InPlace;
  readonly boot: string;
}

const { O_RDWR } = constants;
const jump = 1_000_000_000;

/**
 * Returns where to begin after a power failure, or on another server: records that readers saw may be gone, so their
 * offsets are never used again.
 */
export const afterLoss = (place: Place, known = place.offset): Beginning => ({
  place: { ...place, offset: (Math.floor(known / jump) + 1) * jump },
  // Without a record there is no time from which the gap of the log could begin.
  after: place.at === 0 ? null : place.offset,
});

/** What a reader knows of the feed before the first event of a writer: another one, if any, has stopped. */
export const stateBefore = ({ at }: Place): FeedState =>
  at === 0 ? noFeed : stoppedAt(at, logGap('paused', at, at).failure);

/**
 * Locks a log and finds its end. The writer then begins a new segment: it never appends to an old one, because a reader
 * may hold the torn bytes at its end.
 *
 * @throws LogError with the code `log-in-use` or `log-write-failed`
 */
export const openLog = (folder: string, machine: Machine): Opened => {
  const { disk } = machine;
  let tip: InPlace | undefined;
  try {
    tip = lockLog(folder, machine);
    const boot = machine.boot();
    const { place, after } = placeToBegin(folder, machine, boot);
    const { line, offset, at } = place;
    // Whatever a power failure takes, the next writer knows this log, its first offset, and that it wasn't closed.
    tip.write({ pid: process.pid, line, boot, run: offset, offset, at, writtenAt: at, closed: false });
    disk.fdatasyncSync(tip.fd);
    syncFolder(folder, disk);
    return { tip, boot, place, after };
  } catch (cause) {
    if (tip !== undefined) disk.closeSync(tip.fd);
    throw toLogError('write', folder, cause);
  }
};

/**
 * Makes the folder of a log, unless it's there, and locks it.
 *
 * @throws LogError with the code `log-in-use`
 */
export const lockLog = (folder: string, { disk, lockFile }: Machine): InPlace => {
  disk.mkdirSync(folder, { recursive: true });
  const tip = openTip(disk, folder);
  try {
    if (lockFile(tip.fd, tip.path) && hasNoWriter(folder, disk, lockFile)) return tip;
    throw new LogError('log-in-use', `The log ${folder} has a writer already.`, { path: folder });
  } catch (error) {
    disk.closeSync(tip.fd);
    throw error;
  }
};

/** Somebody may have removed the file with the lock of a writer that still writes: its newest segment is locked too. */
const hasNoWriter = (folder: string, disk: Disk, lockFile: Machine['lockFile']): boolean => {
  const listed = listSegments(disk, folder).at(-1);
  if (listed === undefined || listed.isCompressed) return true;
  const newest = openSegment(disk, listed, O_RDWR);
  if (newest === undefined) return true;
  try {
    return newest.isCompressed || lockFile(newest.fd, newest.path);
  } finally {
    disk.closeSync(newest.fd);
  }
};

const placeToBegin = (folder: string, { disk, newId }: Machine, boot: string): Beginning => {
  const tip = readTip(disk, folder);
  const segments = listSegments(disk, folder);
  const end = endOf(segments, disk);
  const place = { ...(end?.place ?? startOf('')), line: end?.header?.line ?? tip?.line ?? newId() };
  // A segment's name counts the records before it, even if they're removed and a full disk kept its header out.
  const seen = [tip?.offset ?? 0, segments.at(-1)?.offset ?? 0, ...committedOffsets(folder, place.line, disk)];
  const known = Math.max(place.offset, ...seen);
  const isComplete = end?.header?.boot === boot || (tip?.closed === true && tip.offset === place.offset);
  const isUnused = tip === undefined || tip.closed || tip.boot === boot;
  // Records after the end were there: a power failure or somebody has removed them, in this boot or an earlier one.
  const isLoss = known > place.offset || (end === undefined ? !isUnused : !isComplete);
  // Nobody knows how many frames they had.
  return isLoss ? afterLoss({ ...place, holes: place.holes + 1 }, known) : { place, after: undefined };
};

/** A consumer has received the records before its cursor. One that can't be read says nothing: its consumer errors. */
const committedOffsets = (folder: string, line: string, disk: Disk): readonly number[] => {
  const cursors = join(folder, 'cursors');
  return namesIn(disk, cursors).flatMap((name) => {
    const cursor = readInPlace(disk, join(cursors, name), (json) => Object(json) as Partial<Place>);
    return cursor?.line === line && Number.isSafeInteger(cursor.offset) ? (cursor.offset as number) : [];
  });
};

/** Cuts a torn line off the segment that begins at a place, and returns the place after the last complete one. */
export const storedIn = (fd: number, begun: Place, disk: Disk): Place => {
  const end = scanOpen(disk, fd, begun.offset);
  if (end === undefined) return begun;
  if (disk.fstatSync(fd).size > end.length) disk.ftruncateSync(fd, end.length);
  return end.place;
};

/** Finds the end, and removes what a crash has left there: segments without a complete line, and a torn line. */
const endOf = (segments: readonly Segment[], disk: Disk): SegmentEnd | undefined => {
  const listed = segments.at(-1);
  if (listed === undefined) return undefined;
  const before = () => endOf(segments.slice(0, -1), disk);
  const newest = openSegment(disk, listed);
  if (newest === undefined) return before();
  const { offset, path, isCompressed } = newest;
  const end = scanOpened(disk, newest);
  // A damaged one stays: its name says which offsets are used.
  if (isCompressed) return end ?? before();
  if (end !== undefined && end.place.offset > offset) {
    if (disk.statSync(path).size > end.length) disk.truncateSync(path, end.length);
    if (end.header !== undefined) return end;
    const { header, place = startOf('') } = before() ?? {};
    const { frames, holes } = end.place;
    return { ...end, header, place: { ...end.place, frames: frames + place.frames, holes: holes + place.holes } };
  }
  disk.unlinkSync(path);
  const older = before();
  // Its header knows the place, also if retention or a power failure has removed what was before it.
  if (end === undefined) return older;
  const after = older?.place.offset ?? end.header?.after ?? offset;
  return { ...(older ?? end), place: { ...end.place, offset: after } };
};
