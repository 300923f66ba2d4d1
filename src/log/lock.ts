// A log has one writer, and a consumer runs once: locks of the operating system, which end with the process.
import { defer, from, type Observable, switchMap } from 'rxjs';
import loadNativeLock from './load-native-lock.cjs';
import { tryCall } from '../protocol/type-guards.js';
import { LogError } from './log-error.js';

/** Locks an open file until its descriptor is closed, or its thread or process ends. `false`: another one has it. */
export type LockFile = (fd: number, path: string) => boolean;

/** Throws a LogError where locks don't work: two writers would destroy a log. */
export const advisoryLock =
  (load: typeof loadNativeLock, platform: string = process.platform): LockFile =>
  (fd, path) => {
    try {
      return load().tryLock(fd, ...lockedRange(platform));
    } catch (cause) {
      const problem =
        `Can't lock ${path}: ${(cause as Error).message}. A log needs a file system with locks: use a folder on a ` +
        'disk of this machine, or a log on a server. In a bundle, mark the package fs-native-extensions as external.';
      throw new LogError('log-write-failed', problem, { path, cause });
    }
  };

// On Windows other programs can't read a locked range, so one byte far after the last line is locked. macOS locks whole
// files only.
const lockedRange = (platform: string): readonly [offset: number, length: number] =>
  platform === 'win32' ? [2 ** 62, 1] : [0, 0];

export const lockFile: LockFile = advisoryLock(loadNativeLock);

/** Loads what a lock needs. Whoever locks learns why that fails. */
export const prepareLocks = (): void => void tryCall(loadNativeLock);

/**
 * What still closes in this process: the next writer or consumer waits for it, instead of being refused. Logs of one name
 * on two servers have nothing to do with each other, so each connection has its own; all folders are in one place.
 */
const closing = new WeakMap<object, Map<string, Promise<unknown>>>();
const thisMachine = {};

const closingOver = (connection: object): Map<string, Promise<unknown>> => {
  const known = closing.get(connection) ?? new Map<string, Promise<unknown>>();
  closing.set(connection, known);
  return known;
};

/** Says that a path is in use until a promise resolves. */
export const closes = (path: string, closed: Promise<unknown>, connection: object = thisMachine): void => {
  const paths = closingOver(connection);
  const done = Promise.all([paths.get(path), closed]).then(() => {
    if (paths.get(path) === done) paths.delete(path);
  });
  paths.set(path, done);
};

/** Resolves once what closes has closed. */
export const whenClosed = async (path: string, connection: object = thisMachine): Promise<void> => {
  await closingOver(connection).get(path);
};

/** Subscribes once a path is free in this process: at once, unless it still closes. */
export const onceClosed = <T>(
  path: string,
  source: () => Observable<T>,
  connection: object = thisMachine,
): Observable<T> =>
  defer(() => {
    const before = closingOver(connection).get(path);
    return before === undefined ? source() : from(before).pipe(switchMap(source));
  });
