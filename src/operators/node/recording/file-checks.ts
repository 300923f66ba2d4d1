import { fstatSync, realpathSync, statSync, unlinkSync } from 'node:fs';
import { RecordingError } from './recording-error.js';

/** Returns whether a path still refers to an open file. The file may have been removed, renamed or replaced. */
export const isSameFile = (path: string, fd: number): boolean => {
  const current = statSync(path, { throwIfNoEntry: false });
  const { dev, ino } = fstatSync(fd);
  return current?.ino === ino && current.dev === dev;
};

/** Removes an open file if it is empty and the path still refers to it. */
export const removeIfEmpty = (path: string, fd: number): void => {
  try {
    if (fstatSync(fd).size === 0 && isSameFile(path, fd)) unlinkSync(realpathSync(path));
  } catch {
    // The folder may have become read-only. An empty file is harmless: the next recording writes to it.
  }
};

/**
 * Refuses a path that cannot contain a recording. Opening a pipe blocks until it has a reader, and a pipe has no positions to write to.
 *
 * @throws RecordingError for a pipe or a socket
 */
export const refuseSpecial = (path: string): void => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFIFO() || stats?.isSocket())
    throw new RecordingError(`Cannot write the recording ${path}: the path is a pipe or a socket, not a file.`, {
      path,
    });
};
