import { closeSync, constants, existsSync, fstatSync, openSync } from 'node:fs';
import { type LockFile, lockFile } from './advisory-lock.js';
import { isSameFile, refuseSpecial, removeIfEmpty } from './file-checks.js';
import { RecordingError, toRecordingError } from './recording-error.js';
import { fileOf } from './recording-path.js';

/** The maximum number of attempts to open and lock the file, because another program may replace it in between. */
const maxAttempts = 10;

/**
 * Claims a recording for one writer, because two writers would overwrite each other. Creates the first file if it does not exist, and locks it.
 * The operating system releases the lock when this process or worker thread ends, and applies it across containers.
 *
 * @param path - an absolute path
 * @returns a function that releases the claim and must be called once; it removes a file that this call created and that is still empty
 * @throws RecordingError when another recorder has the claim, or the file cannot be opened
 */
export const claimRecording = (path: string, lock: LockFile = lockFile): (() => void) => {
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const release = tryToClaim(path, lock);
    if (release !== undefined) return release;
  }
  throw new RecordingError(
    `Cannot write the recording ${path}: another program keeps replacing the file. Use another path, or stop that program.`,
    { path },
  );
};

/** Opens and locks the file. Returns `undefined` if another program replaced the file before it was locked. */
const tryToClaim = (path: string, lock: LockFile): (() => void) | undefined => {
  let fd: number | undefined;
  try {
    refuseSpecial(path);
    const isNew = !existsSync(path);
    if (isNew) refuseOrphans(path);
    // The lock has a separate file descriptor, because the descriptor for writing may be closed long after the recording ends.
    const opened = (fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o666));
    // A device such as `/dev/null` is not locked, because two writers cannot damage it.
    const isFile = fstatSync(opened).isFile();
    if (isFile && !lock(opened)) throw lockedError(path);
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
    throw toRecordingError('write', path, cause);
  }
};

/** Refuses to create a first file when a second one exists: it belongs to an older recording. */
const refuseOrphans = (path: string): void => {
  if (!existsSync(fileOf(path, 1))) return;
  throw new RecordingError(
    `Cannot write the recording ${path}: the file does not exist, but its continuation ${fileOf(path, 1)} does. Use another path, or move the old files away.`,
    { path },
  );
};

const lockedError = (path: string): RecordingError =>
  new RecordingError(
    `Cannot write the recording ${path}: another recorder, in this process or another one, is writing to it. Use another path, or stop that recorder.`,
    { path },
  );
