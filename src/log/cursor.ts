// The cursor of a consumer: how far it has worked, in a file that is locked while the consumer runs.
import { join } from 'node:path';
import { LogError, toLogError } from './log-error.js';
import type { LogPosition } from './records.js';
import { openInPlace } from './recovery.js';
import { padded, readPadded, syncFolder, type Machine } from './segments.js';

type CursorMachine = Pick<Machine, 'disk' | 'lockFile'>;

/** An open cursor. */
export interface Cursor {
  readonly position: LogPosition | undefined;
  /** Sets the position. In a file it is one write inside a sector: it is never torn. */
  commit(position: LogPosition): void | Promise<void>;
  close(): void;
}

/** Within one sector of the disk. */
const cursorBytes = 256;

const cursorPath = (folder: string, name: string): string => join(folder, 'cursors', `${name}.json`);

/** @throws LogError with the code `consumer-in-use`, `log-corrupt` or `log-write-failed` */
export const openCursor = (
  folder: string,
  name: string,
  { disk, lockFile }: CursorMachine,
  isLocked: boolean,
): Cursor => {
  const path = cursorPath(folder, name);
  let fd: number | undefined;
  try {
    disk.mkdirSync(join(folder, 'cursors'), { recursive: true });
    const opened = (fd = openInPlace(disk, path));
    if (isLocked && !lockFile(opened, path))
      throw new LogError('consumer-in-use', `The consumer ${name} of the log ${folder} runs already.`, { path });
    if (disk.fstatSync(opened).size === 0) create(opened, join(folder, 'cursors'), disk);
    return {
      position: positionIn(disk, path),
      commit: (position) => {
        try {
          const bytes = padded(position, cursorBytes);
          disk.writeSync(opened, bytes, 0, bytes.length, 0);
        } catch (cause) {
          throw toLogError('write', path, cause);
        }
      },
      close: () => disk.closeSync(opened),
    };
  } catch (cause) {
    if (fd !== undefined) disk.closeSync(fd);
    throw toLogError('write', path, cause);
  }
};

/** After this a power failure leaves an older cursor, which repeats work, but none that can't be read. */
const create = (fd: number, folder: string, disk: CursorMachine['disk']): void => {
  disk.writeSync(fd, padded(null, cursorBytes), 0, cursorBytes, 0);
  disk.fdatasyncSync(fd);
  syncFolder(folder, disk);
};

/** Reads the cursor of a consumer, also while it runs; `undefined` if it has never committed. */
export const committedIn = (
  folder: string,
  name: string,
  { disk }: Pick<CursorMachine, 'disk'>,
): LogPosition | undefined => positionIn(disk, cursorPath(folder, name));

// An unreadable cursor is an error, never `earliest`: a consumer would do all of its work again.
const positionIn = (disk: CursorMachine['disk'], path: string): LogPosition | undefined =>
  readPadded<LogPosition | null>(disk, path, () => {
    throw new LogError('log-corrupt', `The cursor ${path} can't be read. Correct it, or remove it to begin again.`, {
      path,
    });
  }) ?? undefined;
