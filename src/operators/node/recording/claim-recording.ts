import { closeSync, constants, existsSync, fstatSync, openSync } from 'node:fs';
import { type LockFile, lockFile } from '../../../log/advisory-lock.js';
import { isSameFile, refuseSpecial, removeIfEmpty } from './file-checks.js';
import { RecordingError, toRecordingError } from './recording-error.js';
import { fileOf, partOf } from './recording-path.js';

/** The maximum number of attempts to open and lock the file, because another program may replace it in between. */
const maxAttempts = 10;

/**
 * Claims a recording for one writer, because two writers would overwrite each other: creates the first file if it does
 * not exist, and locks it, also across containers.
 *
 * @returns a function that releases the claim once, and removes a file that this call created and that is still empty
 */
export const claimRecording = (path: string, lock: LockFile = lockFile): (() => void) => {
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const release = tryToClaim(path, lock);
    if (release !== undefined) return release;
  }
  throw new RecordingError(
    `Can't write the recording ${path}: another program keeps replacing the file. Use another path, or stop that program.`,
    { path },
  );
};

/** Locks a later file of a claimed recording, which another recorder may name as its own path. */
export const lockPart = (path: string, lock: LockFile = lockFile): (() => void) => {
  let fd: number | undefined;
  try {
    const opened = (fd = openSync(path, constants.O_RDWR));
    if (!lock(opened)) throw lockedError(path);
    return () => closeSync(opened);
  } catch (cause) {
    if (fd !== undefined) closeSync(fd);
    throw toRecordingError('write', path, cause);
  }
};

/** Opens and locks the file. Returns `undefined` if another program replaced the file before it was locked. */
const tryToClaim = (path: string, lock: LockFile): (() => void) | undefined => {
  let fd: number | undefined;
  try {
    refuseSpecial(path);
    refuseParts(path);
    const isNew = !existsSync(path);
    if (isNew) refuseOrphans(path);
    // A descriptor of its own: the one for writing may be closed long after the recording ends.
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

/** Refuses a path at which another recording continues, or will: that recorder expects no foreign lines there. */
const refuseParts = (path: string): void => {
  const { base, number } = partOf(path);
  for (let before = number - 1; before >= 0; before -= 1) if (!existsSync(fileOf(base, before))) return;
  if (number > 0)
    throw new RecordingError(
      `Can't write the recording ${path}: this path belongs to the recording ${base}, which continues there when a file is full. Record to ${base}, or use another path.`,
      { path },
    );
};

/** Refuses to create a first file when a second one exists: it belongs to an older recording. */
const refuseOrphans = (path: string): void => {
  if (!existsSync(fileOf(path, 1))) return;
  throw new RecordingError(
    `Can't write the recording ${path}: the file doesn't exist, but its continuation ${fileOf(path, 1)} does. Use another path, or move the old files away.`,
    { path },
  );
};

const lockedError = (path: string): RecordingError =>
  new RecordingError(
    `Can't write the recording ${path}: another recorder, in this process or another one, is writing to it. Use another path, or stop that recorder.`,
    { path },
  );
