import { closeSync, constants, existsSync, fstatSync, openSync } from 'node:fs';
import { type LockFile, lockFile } from './advisory-lock.js';
import { cannot, RecordingError } from './recording-error.js';
import { fileOf } from './recording-path.js';
import { isSameFile, refuseSpecial, removeIfEmpty } from './file-checks.js';

/** How often a file that is replaced while it is locked is opened again. */
const mostAttempts = 10;

/**
 * Claims a recording for one writer: two would overwrite each other. Creates its first file when there is none, and locks it. The lock is that
 * of the operating system, so it ends with this process or worker thread however that ends, and holds across containers.
 *
 * @param path - an absolute path
 * @returns a function that gives the claim back, to be called once; it removes a file that this call has created and that is still empty
 * @throws RecordingError when another recorder holds the claim, or the file cannot be opened
 */
export const claimRecording = (path: string, lock: LockFile = lockFile): (() => void) => {
  for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
    const release = claimed(path, lock);
    if (release !== undefined) return release;
  }
  throw new RecordingError(
    `Cannot write the recording ${path}: another program replaces the file again and again. Give another path, or end that program.`,
    { path },
  );
};

/** Opens and locks the file. Gives nothing when the path names another file by now. */
const claimed = (path: string, lock: LockFile): (() => void) | undefined => {
  let fd: number | undefined;
  try {
    refuseSpecial(path);
    const isNew = !existsSync(path);
    if (isNew) refuseOrphans(path);
    // The lock has a separate file descriptor: the one for writing is closed only after the last write, too late for the lock.
    const opened = (fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o666));
    // A device keeps nothing that two writers could damage.
    const isFile = fstatSync(opened).isFile();
    if (isFile && !lock(opened)) throw held(path);
    if (isFile && !isSameFile(path, opened)) {
      closeSync(opened);
      return undefined;
    }
    return () => {
      if (isNew) removeIfEmpty(path, opened);
      closeSync(opened);
    };
  } catch (cause) {
    if (fd !== undefined) closeSync(fd);
    throw cannot('write', path, cause);
  }
};

const refuseOrphans = (path: string): void => {
  if (!existsSync(fileOf(path, 1))) return;
  throw new RecordingError(
    `Cannot write the recording ${path}: it is not there, but ${fileOf(path, 1)} is, which belongs behind it. Give another path, or move the old files away.`,
    { path },
  );
};

const held = (path: string): RecordingError =>
  new RecordingError(
    `Cannot write the recording ${path}: another recorder, in this program or in another one, writes to it. Give another path, or end that recorder.`,
    { path },
  );
