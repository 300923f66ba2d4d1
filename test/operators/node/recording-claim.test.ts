import { describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { claimRecording } from '../../../src/operators/node/recording-claim.js';
import { tempFolder } from '../../cli/support/temp-folder.js';

const folder = tempFolder();
let count = 0;
const fresh = (): string => folder.path(`recording-${(count += 1)}`);
const ended = (): number => spawnSync(process.execPath, ['--version']).pid;

describe('claimRecording', () => {
  it('gives a path to one alone, until that gives it back', () => {
    const path = fresh();
    const release = claimRecording(path);
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe(`${process.pid} ${performance.timeOrigin} ${hostname()}\n`);
    expect(() => claimRecording(path)).toThrow(
      expect.objectContaining({
        name: 'RecordingError',
        path,
        message: `Cannot write the recording ${path}: this process records to it. Give another path; if that is not so, remove ${path}.lock.`,
      }),
    );
    release();
    release();
    expect(existsSync(`${path}.lock`)).toBe(false);
    claimRecording(path)();
  });

  it('knows a file by another name', () => {
    const path = fresh();
    writeFileSync(path, '');
    symlinkSync(path, `${path}-link`);
    const release = claimRecording(`${path}-link`);
    expect(() => claimRecording(path)).toThrow(/records to it/);
    release();
  });

  it.each([
    ['whose process has ended', () => `${ended()} 1 ${hostname()}\n`],
    ['of an earlier process of the same number', () => `${process.pid} 1 ${hostname()}\n`],
  ])('takes over one %s', (_which, text) => {
    const path = fresh();
    writeFileSync(`${path}.lock`, text());
    const release = claimRecording(path);
    release();
    expect(readdirSync(folder.path('.')).filter((name) => folder.path(name).startsWith(`${path}.`))).toEqual([]);
  });

  it.each([
    ['another process that is there', process.ppid, ` 1 ${hostname()}\n`, `another process (pid ${process.ppid})`],
    // No process has such a number here.
    [
      'another machine, which it cannot see',
      99_999_999,
      ' 1 elsewhere\n',
      'another process (pid 99999999 on elsewhere)',
    ],
    ['somebody who has just begun, or was cut off', '', '', 'another process (pid unknown)'],
  ])('respects one of %s', (_whose, pid, rest, who) => {
    const path = fresh();
    const text = `${pid}${rest}`;
    writeFileSync(`${path}.lock`, text);
    expect(() => claimRecording(path)).toThrow(`Cannot write the recording ${path}: ${who} records to it.`);
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe(text);
  });

  it('does not give back what is somebody else’s by now', () => {
    const path = fresh();
    const release = claimRecording(path);
    writeFileSync(`${path}.lock`, 'other');
    release();
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe('other');
    unlinkSync(`${path}.lock`);
    release();
  });

  it('needs none for a device', () => {
    claimRecording('/dev/null')();
    expect(existsSync('/dev/null.lock')).toBe(false);
  });

  it('says what the file system refuses', () => {
    expect(() => claimRecording(folder.path('missing/feed'))).toThrow(/feed: there is no such file or folder\.$/);
    expect(() => claimRecording(folder.path('x'.repeat(300)))).toThrow(/: its name or its path is too long\.$/);
    const path = fresh();
    symlinkSync(path, path);
    expect(() => claimRecording(path)).toThrow(/: its symbolic links lead in a circle\.$/);
    const locked = fresh();
    writeFileSync(locked, '');
    mkdirSync(`${locked}.lock`);
    expect(() => claimRecording(locked)).toThrow(`Cannot write the recording ${locked}.lock: it is a directory.`);
  });
});
