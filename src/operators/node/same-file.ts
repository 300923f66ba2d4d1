import { fstatSync, realpathSync, statSync, unlinkSync } from 'node:fs';

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
