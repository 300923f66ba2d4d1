import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { LogError, toLogError } from './log-error.js';
import type { Header } from './lines.js';
import {
  listSegments,
  readAll,
  readPadded,
  scanSegment,
  type SegmentEnd,
  segmentPath,
  type Segment,
  type Tip,
  tipPath,
} from './segments.js';
import type { Machine } from './writer.js';

/** A log that this process has locked, with a new segment at its end. */
export interface Opened {
  readonly lockFd: number;
  /** The new segment, which is empty. */
  readonly fd: number;
  readonly header: Header;
  /** The place after the last record. */
  readonly offset: number;
  readonly frames: number;
  readonly holes: number;
  readonly at: number | undefined;
}

/** After a power failure the offsets go on at the next multiple of this. */
const jump = 1_000_000_000;

/**
 * Locks a log and begins a new segment. An old one is never appended to, because a reader may hold the torn bytes at its
 * end.
 *
 * @throws LogError with the code `log-in-use` or `log-write-failed`
 */
export const openLog = (
  folder: string,
  machine: Pick<Machine, 'disk' | 'lockFile' | 'boot'>,
  isLocked: boolean,
): Opened => {
  const { disk } = machine;
  let lockFd: number | undefined;
  try {
    disk.mkdirSync(folder, { recursive: true });
    lockFd = openOrCreate(disk, tipPath(folder));
    if (isLocked && !machine.lockFile(lockFd)) throw inUse(folder);
    const tip = readPadded<Tip>(disk, tipPath(folder));
    const { end, offset, after } = recover(folder, machine, tip);
    const log = end?.header.log ?? tip?.log ?? randomBytes(6).toString('hex');
    const { frames = 0, holes = 0, at } = end ?? {};
    const header: Header = { offset, log, boot: machine.boot(), frames, holes, at, state: [], after };
    return { lockFd, fd: disk.openSync(segmentPath(folder, offset), 'wx+'), header, offset, frames, holes, at };
  } catch (cause) {
    if (lockFd !== undefined) disk.closeSync(lockFd);
    throw toLogError('write', folder, cause);
  }
};

const openOrCreate = (disk: Machine['disk'], path: string): number => {
  try {
    return disk.openSync(path, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return disk.openSync(path, 'wx+');
  }
};

const inUse = (folder: string): LogError =>
  new LogError(
    'log-in-use',
    `The log ${folder} has a writer already, in this process or another one. Use one writer for each folder, or stop the other one.`,
    { path: folder },
  );

/** Finds the end of a log, and where the next segment begins. */
const recover = (
  folder: string,
  { disk, boot }: Pick<Machine, 'disk' | 'boot'>,
  tip: Tip | undefined,
): { readonly end: SegmentEnd | undefined; readonly offset: number; readonly after?: number | null } => {
  const segments = listSegments(disk, folder);
  const newest = segments.at(-1);
  const end = endOf(segments, disk);
  // Nothing is left of an older log, if there was one: the new one has an id of its own.
  if (end === undefined && tip === undefined) return { end: undefined, offset: 0 };
  // After a power failure lines that readers saw may be gone, so their offsets are never used again.
  const mayLack = end?.header.boot !== boot() && !(tip?.closed === true && tip.offset === end?.offset);
  if (!mayLack && end !== undefined) return { end, offset: end.offset };
  const known = Math.max(end?.offset ?? 0, tip?.offset ?? 0, newest?.offset ?? 0);
  return { end, offset: (Math.floor(known / jump) + 1) * jump, after: end?.offset ?? null };
};

/** Removes what a crash has left at the end: segments without a record, and a torn line. */
const endOf = (segments: readonly Segment[], disk: Machine['disk']): SegmentEnd | undefined => {
  let empty: SegmentEnd | undefined;
  for (const { offset, path, isCompressed } of segments.toReversed()) {
    const fd = disk.openSync(path, isCompressed ? 'r' : 'r+');
    try {
      const bytes = readAll(disk, fd);
      const end = scanSegment(isCompressed ? gunzipSync(bytes) : bytes);
      if (isCompressed) return empty ?? end;
      if (end !== undefined && end.offset > offset) {
        if (disk.fstatSync(fd).size > end.length) disk.ftruncateSync(fd, end.length);
        return end;
      }
      // Its header knows the place, also if retention has removed every segment before it.
      empty ??= end;
    } finally {
      disk.closeSync(fd);
    }
    disk.unlinkSync(path);
  }
  return empty;
};
