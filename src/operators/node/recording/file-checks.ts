import { fstatSync, realpathSync, statSync, unlinkSync } from 'node:fs';
import { RecordingError } from './recording-error.js';

/** Returns whether a path still refers to an open file. */
export const isSameFile = (path: string, fd: number): boolean => {
  const current = statSync(path, { throwIfNoEntry: false });
  const { dev, ino } = fstatSync(fd);
  return current?.ino === ino && current.dev === dev;
};

export const removeIfEmpty = (path: string, fd: number): void => {
  try {
    if (fstatSync(fd).size === 0 && isSameFile(path, fd)) unlinkSync(realpathSync(path));
  } catch {
    // The folder may have become read-only. An empty file is harmless: the next recording writes to it.
  }
};

/** Refuses a pipe or a socket: opening a pipe blocks until it has a reader, and a pipe has no positions. */
export const refuseSpecial = (path: string): void => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFIFO() || stats?.isSocket())
    throw new RecordingError(`Can't write the recording ${path}: the path is a pipe or a socket, not a file.`, {
      path,
    });
};
