import loadNativeLock from './load-native-lock.cjs';

/**
 * Locks an open file. The lock ends when the file descriptor is closed, so also with its worker thread and its process.
 *
 * @returns `false` when another recorder holds the lock
 */
export type LockFile = (fd: number) => boolean;

/**
 * Creates a {@link LockFile} that uses the advisory locks of the operating system. Where there are none, it reports that once and lets every
 * recorder pass.
 *
 * @param load - loads the native package; called when a file is locked, not before
 */
export const advisoryLock = (load: typeof loadNativeLock, platform: string = process.platform): LockFile => {
  let isReported = false;
  const range = rangeOn(platform);
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
 * The offset and the length of the lock. On Windows other programs cannot read a locked range, so it is one byte, far after the
 * last line. macOS locks whole files only.
 */
const rangeOn = (platform: string): readonly [offset: number, length: number] =>
  platform === 'win32' ? [2 ** 62, 1] : [0, 0];

const warn = (detail: string): void =>
  process.emitWarning(
    'Recordings are not locked, because the package fs-native-extensions cannot lock them here. Two recorders of one path would damage the file. Let one recorder use each path; in a bundle, leave that package out.',
    { type: 'RecordingWarning', code: 'RX_TRADE_FEED_NO_LOCK', detail },
  );

/** Locks an open file with the lock of this system. */
export const lockFile: LockFile = advisoryLock(loadNativeLock);
