/** @lane processes */
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { advisoryLock, lockFile } from '../../src/log/lock.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { itInCi } from '../support/cases.js';

const folder = tempFolder();

describe('lockFile', () => {
  it('locks a file for one file descriptor until it is closed', () => {
    const path = folder.path('locked');
    writeFileSync(path, 'text');
    const [first, second, reader] = [openSync(path, 'r+'), openSync(path, 'r+'), openSync(path, 'r+')];
    expect([lockFile(first, path), lockFile(second, path)]).toEqual([true, false]);
    // An operating system may drop a process's locks when it closes any file descriptor of the file.
    closeSync(reader);
    expect(lockFile(second, path)).toBe(false);
    closeSync(first);
    expect(lockFile(second, path)).toBe(true);
    closeSync(second);
  });
});

describe('advisoryLock', () => {
  const tryLock = jest.fn(() => true);
  afterEach(() => {
    tryLock.mockClear();
  });

  it.each([
    ['the whole file, because macOS cannot lock a part', 'darwin', 0, 0],
    ['the whole file', 'linux', 0, 0],
    ['one byte after every line, because a locked range cannot be read', 'win32', 2 ** 62, 1],
  ])('locks %s, on %s', (_what, platform, offset, length) => {
    expect(advisoryLock(() => ({ tryLock }), platform)(7, 'path')).toBe(true);
    expect(tryLock.mock.calls).toEqual([[7, offset, length]]);
  });

  it('loads the native package only when a file is locked', () => {
    const load = jest.fn(() => ({ tryLock }));
    const lock = advisoryLock(load);
    expect(load).not.toHaveBeenCalled();
    lock(7, 'path');
    expect(load).toHaveBeenCalledTimes(1);
  });

  const fails = (message: string) => () => {
    throw new Error(message);
  };
  it.each([
    ['the package has no binary for this system', fails('Cannot find addon'), 'Cannot find addon'],
    ['the file system has no locks', () => ({ tryLock: fails('no locks available') }), 'no locks available'],
  ])('refuses a path if %s, and says what to do', (_why, load, detail) => {
    expect(() => advisoryLock(load)(7, '/mnt/writer.json')).toThrow(
      expect.objectContaining({
        code: 'log-write-failed',
        path: '/mnt/writer.json',
        message: expect.stringMatching(
          new RegExp(
            `^Can't lock /mnt/writer.json: ${detail}\\. .*use a folder on a disk of this machine, or a log on a server\\.`,
          ),
        ),
      }),
    );
  });
});

itInCi(
  'locks a file on Alpine, even though the package has no binary for it',
  () => {
    const program = `
    const fs = require('node:fs');
    const exists = fs.existsSync;
    fs.existsSync = (path) => path === '/etc/alpine-release' || exists(path);
    const [path] = process.argv.slice(1);
    require('esbuild').buildSync({ entryPoints: ['src/log/load-native-lock.cts'], outfile: path + '.cjs', format: 'cjs', platform: 'node' });
    let isMissing = false;
    try { require('fs-native-extensions'); } catch { isMissing = true; }
    const Module = require('node:module');
    const loaded = new Module(process.cwd() + '/x.cjs', module);
    loaded.filename = process.cwd() + '/x.cjs';
    loaded.paths = module.paths;
    loaded._compile(fs.readFileSync(path + '.cjs', 'utf8'), loaded.filename);
    const lock = loaded.exports();
    fs.writeFileSync(path, '');
    const [one, other] = [fs.openSync(path, 'r+'), fs.openSync(path, 'r+')];
    console.log(JSON.stringify([isMissing, lock.tryLock(one, 0, 0), lock.tryLock(other, 0, 0)]));
  `;
    const args = ['-e', program, folder.path('alpine')];
    const printed = execFileSync(process.execPath, args, { encoding: 'utf8' });
    expect(JSON.parse(printed)).toEqual(process.platform === 'linux' ? [true, true, false] : expect.anything());
  },
  120_000,
);
