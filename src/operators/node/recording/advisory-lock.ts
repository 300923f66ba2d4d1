import loadNativeLock from './load-native-lock.cjs';

/**
 * Locks an open file. The operating system releases the lock when the file descriptor is closed. This also happens when the worker thread or
 * the process ends.
 *
 * @returns `false` when another recorder has the lock
 */
export type LockFile = (fd: number) => boolean;

/**
 * Creates a {@link LockFile} that uses the advisory locks of the operating system. Where locks are not available, it emits one process warning
 * and returns `true` for every file.
 *
 * @param load - loads the native package; called when the first file is locked
 */
export const advisoryLock = (load: typeof loadNativeLock, platform: string = process.platform): LockFile => {
  let isReported = false;
  const range = lockedRange(platform);
  return (fd) => {
    try {
      return load().tryLock(fd, ...range);
    } catch (cause) {
      if (!isReported) warn((cause as Error).message);
      isReported = true;
      return true;
    }
  };
};

/**
 * Returns the range of the lock. On Windows other programs cannot read a locked range, so one byte far after the last line is locked. macOS
 * locks whole files only.
 */
const lockedRange = (platform: string): readonly [offset: number, length: number] =>
  platform === 'win32' ? [2 ** 62, 1] : [0, 0];

const warn = (detail: string): void =>
  process.emitWarning(
    'Recordings are not locked, because the package fs-native-extensions does not work here. Two recorders that write to one path would damage the file. Use each path in one recorder only; in a bundle, mark that package as external.',
    { type: 'RecordingWarning', code: 'RX_TRADE_FEED_NO_LOCK', detail },
  );

/** Locks an open file with an advisory lock of this operating system. */
export const lockFile: LockFile = advisoryLock(loadNativeLock);
