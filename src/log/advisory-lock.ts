import loadNativeLock from './load-native-lock.cjs';

/** Locks an open file until its descriptor is closed, or its thread or process ends. `false`: another recorder has it. */
export type LockFile = (fd: number) => boolean;

/** Uses advisory locks. Where there are none, emits one process warning and returns `true` for every file. */
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

// On Windows other programs can't read a locked range, so one byte far after the last line is locked. macOS locks whole
// files only.
const lockedRange = (platform: string): readonly [offset: number, length: number] =>
  platform === 'win32' ? [2 ** 62, 1] : [0, 0];

const warn = (detail: string): void =>
  process.emitWarning(
    'Recordings are not locked, because the package fs-native-extensions does not work here. Two recorders that write to one path would damage the file. Use each path in one recorder only; in a bundle, mark that package as external.',
    { type: 'RecordingWarning', code: 'RX_TRADE_FEED_NO_LOCK', detail },
  );

export const lockFile: LockFile = advisoryLock(loadNativeLock);
