import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { cannot, RecordingError } from './recording-error.js';
import { lockOf } from './recording-files.js';

/**
 * Claims a recording for one writer: two would write over each other. The claim is a file beside it, which says whose it is. One
 * whose process has ended, by a crash say, is taken over.
 *
 * @returns what gives the claim back
 * @throws RecordingError when somebody else holds it, or the file cannot be made
 */
export const claimRecording = (path: string): (() => void) => {
  const mine = `${process.pid} ${performance.timeOrigin} ${hostname()}\n`;
  const lock = claimed(path, mine);
  return () => {
    if (lock === undefined) return;
    try {
      if (readFileSync(lock, 'utf8') === mine) rmSync(lock);
    } catch {
      // It is gone already; and whatever else is wrong, the recording is whole.
    }
  };
};

/** Makes the lock, unless the path is one that needs none, and says where it is. */
const claimed = (path: string, mine: string): string | undefined => {
  let lock: string | undefined;
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    // A device keeps nothing that could be destroyed, and its folder is none of ours.
    if (stats !== undefined && !stats.isFile()) return undefined;
    // Two names may stand for one file.
    const file = stats === undefined ? path : realpathSync(path);
    if (stats !== undefined) lock = lockOf(file);
    while (!made(lockOf(file), mine)) removeStale(path, lockOf(file));
    return lockOf(file);
  } catch (cause) {
    // A file that is there may be one that can be written, in a folder that cannot.
    throw cannot('write', lock ?? path, cause);
  }
};

const made = (lock: string, text: string): boolean => {
  try {
    writeFileSync(lock, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
};

const removeStale = (path: string, lock: string): void => {
  const text = textOf(lock);
  if (text === undefined) return;
  if (!isStale(text)) throw held(path, lock, text);
  // Another process may find the same one, and have made its own by now: what was taken away is looked at once more.
  const aside = `${lock}.${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (textOf(aside) === text) rmSync(aside, { force: true });
  else renameSync(aside, lock);
};

const textOf = (lock: string): string | undefined => {
  try {
    return readFileSync(lock, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};

const isStale = (text: string): boolean => {
  const [pid = '', startedAt, host] = text.trimEnd().split(' ');
  // A pid alone names no process: in a container each run may have the same one.
  if (host !== hostname() || !/^[1-9]\d*$/.test(pid)) return false;
  if (Number(pid) === process.pid) return startedAt !== String(performance.timeOrigin);
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
};

const held = (path: string, lock: string, text: string): RecordingError => {
  const [pid = '', , host] = text.trimEnd().split(' ');
  const where = host === undefined || host === hostname() ? '' : ` on ${host}`;
  const who =
    Number(pid) === process.pid && where === '' ? 'this process' : `another process (pid ${pid || 'unknown'}${where})`;
  return new RecordingError(
    `Cannot write the recording ${path}: ${who} records to it. Give another path; if that is not so, remove ${lock}.`,
    { path },
  );
};
