import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { advisoryLock, lockFile } from '../../src/log/lock.js';
import { tempFolder } from '../cli/support/temp-folder.js';

const folder = tempFolder();
const opened = new Set<number>();
afterEach(() => {
  for (const fd of opened) close(fd);
});
const open = (path: string): number => {
  const fd = openSync(path, 'r+');
  opened.add(fd);
  return fd;
};
const close = (fd: number): void => {
  closeSync(fd);
  opened.delete(fd);
};

describe('lockFile', () => {
  it('locks a file for one file descriptor until it is closed', () => {
    const path = folder.path('locked');
    writeFileSync(path, 'text');
    const [first, second, reader] = [open(path), open(path), open(path)];
    expect([lockFile(first), lockFile(second)]).toEqual([true, false]);
    // An operating system may drop the locks of a process with any file descriptor of the file.
    close(reader);
    expect(lockFile(second)).toBe(false);
    close(first);
    expect(lockFile(second)).toBe(true);
  });
});

describe('advisoryLock', () => {
  const tryLock = jest.fn(() => true);
  afterEach(() => {
    jest.restoreAllMocks();
    tryLock.mockClear();
  });

  it.each([
    ['the whole file, because macOS cannot lock a part', 'darwin', 0, 0],
    ['the whole file', 'linux', 0, 0],
    ['one byte after every line, because a locked range cannot be read', 'win32', 2 ** 62, 1],
  ])('locks %s, on %s', (_what, platform, offset, length) => {
    expect(advisoryLock(() => ({ tryLock }), platform)(7)).toBe(true);
    expect(tryLock.mock.calls).toEqual([[7, offset, length]]);
  });

  it('loads the native package when a file is locked', () => {
    const load = jest.fn(() => ({ tryLock }));
    const lock = advisoryLock(load);
    expect(load).not.toHaveBeenCalled();
    lock(7);
    expect(load).toHaveBeenCalledTimes(1);
  });

  it.each([
    [
      'has no binary for this operating system',
      () => {
        throw new Error('Cannot find addon');
      },
      'Cannot find addon',
    ],
    [
      'reports that the file system has no locks',
      () => ({
        tryLock: () => {
          throw new Error('no locks available');
        },
      }),
      'no locks available',
    ],
  ])('allows every recorder if the package %s, and warns once', (_why, load, detail) => {
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
    const lock = advisoryLock(load);
    expect([lock(7), lock(8)]).toEqual([true, true]);
    expect(warn.mock.calls).toEqual([
      [
        expect.stringMatching(
          /^Recordings are not locked, because .*\. Use each path in one recorder only; in a bundle, mark that package as external\.$/,
        ),
        { type: 'RecordingWarning', code: 'RX_TRADE_FEED_NO_LOCK', detail },
      ],
    ]);
  });
});
