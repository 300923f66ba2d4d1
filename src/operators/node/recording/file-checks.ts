import { fstatSync, realpathSync, statSync, unlinkSync } from 'node:fs';
import { RecordingError } from './recording-error.js';

/** Returns whether a path still names an open file: the file may have been removed, renamed or replaced. */
export const isSameFile = (path: string, fd: number): boolean => {
  const named = statSync(path, { throwIfNoEntry: false });
  const { dev, ino } = fstatSync(fd);
  return named?.ino === ino && named.dev === dev;
};

/** Removes an open file when it is still empty. Does nothing when the path names another file by now. */
export const removeIfEmpty = (path: string, fd: number): void => {
  try {
    if (fstatSync(fd).size === 0 && isSameFile(path, fd)) unlinkSync(realpathSync(path));
  } catch {
    // The folder may have become read-only. An empty file is no damage: the next recording begins in it.
  }
};

/**
 * Refuses a path that cannot hold a recording: to open a pipe waits for its reader, and a pipe has no positions to write to.
 *
 * @throws RecordingError for a pipe or a socket
 */
export const refuseSpecial = (path: string): void => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFIFO() || stats?.isSocket())
    throw new RecordingError(`Cannot write the recording ${path}: it is a pipe or a socket, not a file.`, { path });
};
