import { afterEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { lockFile } from '../../../../src/log/advisory-lock.js';
import { claimRecording } from '../../../../src/operators/node/recording/claim-recording.js';
import { tempFolder } from '../../../cli/support/temp-folder.js';
import { openFiles } from '../support/open-files.js';

const folder = tempFolder();
let count = 0;
const fresh = (): string => folder.path(`recording-${(count += 1)}`);

afterEach(() => {
  expect(openFiles().filter((path) => path.startsWith(folder.path('.')))).toEqual([]);
});

describe('claimRecording', () => {
  it('refuses a second claim until the first is released', () => {
    const path = fresh();
    const release = claimRecording(path);
    expect(() => claimRecording(path)).toThrow(
      expect.objectContaining({
        name: 'RecordingError',
        path,
        message: `Can't write the recording ${path}: another recorder, in this process or another one, is writing to it. Use another path, or stop that recorder.`,
      }),
    );
    release();
    claimRecording(path)();
  });

  describe('at its end', () => {
    it('removes a file that it created and that is still empty', () => {
      const path = fresh();
      claimRecording(path)();
      expect(existsSync(path)).toBe(false);
    });

    it('keeps an empty file that existed before, and a new file with a line', () => {
      const [old, written] = [fresh(), fresh()];
      writeFileSync(old, '');
      claimRecording(old)();
      expect(existsSync(old)).toBe(true);
      const release = claimRecording(written);
      writeFileSync(written, 'line\n');
      release();
      expect(readFileSync(written, 'utf8')).toBe('line\n');
    });
  });

  describe('when the file is replaced between opening and locking', () => {
    const replace = (path: string): void => {
      writeFileSync(`${path}-other`, '');
      renameSync(`${path}-other`, path);
    };

    it.each([
      ['replaced', replace],
      ['removed', unlinkSync],
    ])('opens the file again: %s', (_how, act) => {
      const path = fresh();
      const inodes: number[] = [];
      const release = claimRecording(path, (fd) => {
        if (inodes.length === 0) act(path);
        inodes.push(statSync(path, { throwIfNoEntry: false })?.ino ?? 0);
        return lockFile(fd);
      });
      expect(inodes).toHaveLength(2);
      // The file at the path is locked.
      const fd = openSync(path, 'r+');
      expect(lockFile(fd)).toBe(false);
      closeSync(fd);
      release();
    });
  });

  it('explains errors of the file system', () => {
    expect(() => claimRecording(folder.path('missing/feed'))).toThrow(/feed: there is no such file or folder\.$/);
    expect(() => claimRecording(folder.path('x'.repeat(300)))).toThrow(/: the name or the path is too long\.$/);
    expect(() => claimRecording(folder.path('.'))).toThrow(/: the path is a directory\.$/);
    const path = fresh();
    symlinkSync(path, path);
    expect(() => claimRecording(path)).toThrow(/: the symbolic links form a loop\.$/);
  });

  it('refuses a pipe without waiting for its reader', () => {
    const path = fresh();
    execFileSync('mkfifo', [path]);
    expect(() => claimRecording(path)).toThrow(/: the path is a pipe or a socket, not a file\.$/);
  });

  it('refuses to create the first file when its continuation exists', () => {
    const path = fresh();
    writeFileSync(`${path}.1`, '');
    expect(() => claimRecording(path)).toThrow(/: the file doesn't exist, but its continuation .*\.1 does\./);
    expect(existsSync(path)).toBe(false);
  });
});
