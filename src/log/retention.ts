import { basename } from 'node:path';
import { listSegments, readAll, type Segment, segmentPath } from './segments.js';
import type { Machine } from './writer.js';

export interface RetentionLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly compress: boolean;
}

type Files = Pick<Machine, 'disk' | 'now' | 'gzip'>;

/** Removes whole segments, oldest first, never the newest one. It doesn't wait for readers: a dead one would fill the disk. */
export const removeOld = (
  folder: string,
  { maxBytes, maxAgeMs }: Pick<RetentionLimits, 'maxBytes' | 'maxAgeMs'>,
  { disk, now }: Files,
): void => {
  if (maxBytes === Infinity && maxAgeMs === Infinity) return;
  const segments = listSegments(disk, folder).map((segment) => ({ ...segment, ...statsOf(segment, disk) }));
  let bytes = segments.reduce((sum, { size }) => sum + size, 0);
  for (const { path, size, changedAt } of segments.slice(0, -1)) {
    if (bytes <= maxBytes && now() - changedAt <= maxAgeMs) return;
    disk.unlinkSync(path);
    bytes -= size;
  }
};

const statsOf = ({ path }: Segment, disk: Machine['disk']): { size: number; changedAt: number } => {
  const fd = disk.openSync(path, 'r');
  try {
    const { size, mtimeMs } = disk.fstatSync(fd);
    return { size, changedAt: mtimeMs };
  } finally {
    disk.closeSync(fd);
  }
};

const busy = new Set<string>();

/**
 * Compresses one closed segment, in the thread pool. A reader finds the old name or the new one; a crash leaves both.
 *
 * @param done - called when it is compressed, or with the failure of the disk
 */
export const compressClosed = (folder: string, { disk, gzip }: Files, done: (error?: unknown) => void): void => {
  const closed = listSegments(disk, folder).slice(0, -1);
  removeDoubles(folder, closed, disk);
  const next = closed.find(({ isCompressed }) => !isCompressed);
  if (next === undefined || busy.has(folder)) return;
  busy.add(folder);
  const fd = disk.openSync(next.path, 'r');
  const bytes = readAll(disk, fd);
  disk.closeSync(fd);
  gzip(bytes, (error, compressed) => {
    busy.delete(folder);
    if (error) return done(error);
    try {
      replace(next.path, compressed, disk);
      done();
    } catch (cause) {
      // Retention may have removed the segment meanwhile.
      done((cause as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : cause);
    }
  });
};

const replace = (path: string, compressed: Buffer, disk: Machine['disk']): void => {
  const temporary = `${path}.gz.tmp`;
  const to = disk.openSync(temporary, 'w');
  try {
    if (disk.writeSync(to, compressed, 0, compressed.length, 0) !== compressed.length)
      throw new Error('the disk is full');
    disk.fdatasyncSync(to);
  } finally {
    disk.closeSync(to);
  }
  disk.renameSync(temporary, `${path}.gz`);
  disk.unlinkSync(path);
};

/** A crash between `rename` and `unlink` leaves both. */
const removeDoubles = (folder: string, closed: readonly Segment[], disk: Machine['disk']): void => {
  const names = new Set(disk.readdirSync(folder));
  for (const { offset, isCompressed } of closed) {
    const plain = segmentPath(folder, offset);
    if (isCompressed && names.has(basename(plain))) disk.unlinkSync(plain);
  }
};
