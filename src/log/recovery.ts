// Opens a log for writing, after whatever has happened to the writer before.
import { constants } from 'node:fs';
import { type Place, startOf } from '../protocol/place.js';
import { type Generation, placeBefore } from './lines.js';
import { inUse, toLogError } from './log-error.js';
import {
  closedAfter,
  type Disk,
  type InPlace,
  listSegments,
  type Machine,
  openTip,
  openSegment,
  readTip,
  scanOpened,
  type Segment,
  syncFolder,
} from './segments.js';

const { O_RDWR } = constants;

/**
 * Locks a log and takes a generation at its end. The writer then begins a new segment: it never appends to an old one, because a reader
 * may hold the torn bytes at its end.
 *
 * @throws LogError with the code `log-in-use` or `log-write-failed`
 */
export const openLog = (folder: string, machine: Machine): { tip: InPlace; generation: Generation } => {
  let tip: InPlace | undefined;
  try {
    tip = lockLog(folder, machine);
    return { tip, generation: takeGeneration(folder, machine, tip) };
  } catch (cause) {
    if (tip !== undefined) machine.disk.closeSync(tip.fd);
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
    throw inUse(folder);
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
  return closedAfter(disk, newest.fd, (fd) => newest.isCompressed || lockFile(fd, newest.path));
};

/**
 * Takes a generation that no reader knows, after the records that are there. Others may be gone, through a power failure
 * or by hand: a reader that has them sees where this generation began.
 *
 * @param before - the generation of the same writer before, at the end that it knows if no segment is left
 */
export const takeGeneration = (
  folder: string,
  { disk, now, newId }: Machine,
  tip: InPlace,
  before?: Generation,
): Generation => {
  const last = readTip(disk, folder);
  const end = endOf(listSegments(disk, folder), disk) ?? (before ? placeBefore(before) : startOf(''));
  const line = end.line || (last?.line ?? newId());
  const { gen: after, offset, at } = end;
  const gen = Math.max(now(), 1 + Math.max(after, last?.gen ?? 0, before?.gen ?? 0));
  // Whatever a power failure takes, the next writer knows this log and its generations.
  tip.write({ pid: process.pid, line, gen, began: offset, offset, at, writtenAt: now(), closed: false });
  disk.fdatasyncSync(tip.fd);
  syncFolder(folder, disk);
  return { ...end, line, gen, after, began: offset };
};

/** Finds the end, and removes what a crash has left there: segments without a record, and a torn line. */
const endOf = (segments: readonly Segment[], disk: Disk): Place | undefined => {
  const listed = segments.at(-1);
  if (listed === undefined) return undefined;
  const before = () => endOf(segments.slice(0, -1), disk);
  const newest = openSegment(disk, listed);
  if (newest === undefined) return before();
  const { offset, path, isCompressed } = newest;
  const end = scanOpened(disk, newest);
  // A damaged one stays, and nobody knows what it has. The next one comes after it.
  if (isCompressed && end === undefined) {
    const place = before() ?? startOf('');
    return { ...place, offset: offset + 1, holes: place.holes + 1 };
  }
  if (end === undefined || end.place.offset === offset) {
    disk.unlinkSync(path);
    // Its header knows the place, also if retention or a power failure has removed what was before it.
    return end?.header ? end.place : before();
  }
  if (!isCompressed && disk.statSync(path).size > end.length) disk.truncateSync(path, end.length);
  if (end.header !== undefined) return end.place;
  const { line, gen, frames, holes } = before() ?? startOf('');
  return { ...end.place, line, gen, frames: end.place.frames + frames, holes: end.place.holes + holes };
};
