import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { noop } from 'rxjs';
import {
  appendFileSync,
  existsSync,
  linkSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import type { RecordingError } from '../../../../src/index.js';
import { frameLine } from '../../../../src/operators/node/recording/recording-line.js';
import {
  type RecordingWriter,
  createRecordingWriter,
} from '../../../../src/operators/node/recording/recording-writer.js';
import { tempFolder } from '../../../cli/support/temp-folder.js';
import { openFiles } from '../support/open-files.js';
import { frameAt } from '../support/recorded.js';
import { type SlowDisk, slowDisk } from '../support/slow-disk.js';

const folder = tempFolder();
let count = 0;
let path: string;
let disk: SlowDisk;
let failures: RecordingError[];
beforeEach(() => {
  path = folder.path(`recording-${(count += 1)}`);
  disk = slowDisk();
  failures = [];
});
afterEach(() => {
  expect(openFiles().filter((file) => file.startsWith(path))).toEqual([]);
});

const writerTo = ({ maxFileBytes = Infinity, maxWaitingBytes = 1e6 } = {}): RecordingWriter =>
  createRecordingWriter(path, { maxFileBytes, maxWaitingBytes }, (error) => failures.push(error), disk);

const lines = (...times: number[]): string => times.map((ms) => frameLine(frameAt(ms))).join('');
const add = (writer: RecordingWriter, ...times: number[]): void => {
  for (const ms of times) writer.add(frameAt(ms));
};
const text = (file = path): string => readFileSync(file, 'utf8');
const turn = (): Promise<void> => Promise.resolve();

describe('createRecordingWriter', () => {
  it('writes all lines of a turn together, and lines that arrive during a write right after it', async () => {
    const writer = writerTo();
    add(writer, 1, 2);
    expect(disk.waiting).toHaveLength(0);
    await turn();
    expect(disk.waiting).toMatchObject([{ text: lines(1, 2), position: 0 }]);
    add(writer, 3);
    await turn();
    add(writer, 4);
    await turn();
    expect(disk.waiting).toHaveLength(1);
    disk.waiting[0]?.land();
    expect(text()).toBe(lines(1, 2));
    expect(disk.waiting).toMatchObject([{ text: lines(3, 4), position: lines(1, 2).length }]);
    disk.waiting[0]?.land();
    expect(disk.waiting).toHaveLength(0);
    add(writer, 5);
    await turn();
    disk.waiting[0]?.land();
    expect(text()).toBe(lines(1, 2, 3, 4, 5));
    writer.end();
    expect(disk.sync).toEqual([]);
  });

  it('writes the rest when the disk writes only a part', async () => {
    const writer = writerTo();
    add(writer, 1, 2);
    await turn();
    disk.waiting[0]?.land(10);
    expect(disk.waiting).toMatchObject([{ text: lines(1, 2).slice(10), position: 10 }]);
    disk.waiting[0]?.land();
    expect(text()).toBe(lines(1, 2));
    writer.end();
  });

  it('has written the complete file at the end, whatever a write in progress does later', async () => {
    const writer = writerTo();
    add(writer, 1, 2);
    await turn();
    disk.waiting[0]?.land(10);
    add(writer, 3);
    disk.mostSync = 7;
    writer.end();
    expect(text()).toBe(lines(1, 2, 3));
    expect(disk.closed).toEqual([]);
    disk.waiting[0]?.land(20);
    expect(disk.waiting).toHaveLength(0);
    expect(text()).toBe(lines(1, 2, 3));
    expect(disk.closed).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  it('writes synchronously when too many bytes wait, and then asynchronously again', async () => {
    const writer = writerTo({ maxWaitingBytes: lines(1, 2).length });
    add(writer, 1);
    await turn();
    add(writer, 2);
    expect(disk.sync).toEqual([]);
    add(writer, 3);
    expect(text()).toBe(lines(1, 2, 3));
    expect(disk.sync).toEqual([lines(1), lines(2, 3)]);
    add(writer, 4);
    await turn();
    expect(disk.waiting).toHaveLength(1);
    disk.waiting[0]?.land();
    expect(disk.waiting).toMatchObject([{ text: lines(4), position: lines(1, 2, 3).length }]);
    disk.waiting[0]?.land();
    writer.end();
    expect(text()).toBe(lines(1, 2, 3, 4));
  });

  describe('rotation', () => {
    const two = lines(1, 2).length;

    it('has written the complete old file, and closes it when the disk has finished', async () => {
      const writer = writerTo({ maxFileBytes: two });
      add(writer, 1);
      await turn();
      add(writer, 2, 3);
      expect(text()).toBe(lines(1, 2));
      await turn();
      expect(disk.waiting).toHaveLength(1);
      expect(disk.closed).toHaveLength(0);
      disk.waiting[0]?.land();
      expect(disk.closed).toHaveLength(1);
      expect(disk.waiting).toMatchObject([{ text: lines(3), position: 0 }]);
      disk.waiting[0]?.land();
      writer.end();
      expect(text(`${path}.1`)).toBe(lines(3));
    });
  });

  describe('failing', () => {
    it('reports the failure once, stops writing and closes the file', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      add(writer, 2);
      disk.waiting[0]?.fail('ENOSPC', 5);
      expect(failures).toMatchObject([
        {
          name: 'RecordingError',
          path,
          message: `Can't write the recording ${path}: no space is left on the disk.`,
          cause: { code: 'ENOSPC' },
        },
      ]);
      add(writer, 3);
      writer.end();
      await turn();
      expect(disk.waiting).toHaveLength(0);
      expect(failures).toHaveLength(1);
      expect(text()).toBe(lines(1).slice(0, 5));
    });

    it('closes each file descriptor once, because it may be reused', () => {
      const close = jest.spyOn(disk, 'closeSync');
      const writer = writerTo();
      add(writer, 1);
      disk.failSync = 'EIO';
      disk.failClose = 'EIO';
      writer.end();
      expect(failures).toHaveLength(1);
      expect(close).toHaveBeenCalledTimes(1);
    });
  });

  describe('a file that another program uses', () => {
    const changed: unknown = expect.stringMatching(/another program changed the file during the recording/);

    it('is refused for a second recorder until the first one has ended', () => {
      const first = writerTo();
      expect(() => writerTo()).toThrow(/another recorder, in this process or another one, is writing to it/);
      add(first, 1);
      first.end();
      const second = writerTo();
      add(second, 3);
      second.end();
      expect(text()).toBe(lines(1, 3));
      expect(failures).toEqual([]);
    });

    it('is also refused by the name of a later file, whether it is being written, full, or not there yet', () => {
      const first = writerTo({ maxFileBytes: 1 });
      add(first, 1, 2, 3);
      const named = (name: string) => () => createRecordingWriter(name, { maxFileBytes: 1, maxWaitingBytes: 1 }, noop);
      for (const number of [1, 2, 3])
        expect(named(`${path}.${number}`)).toThrow(/belongs to the recording .*Record to/);
      symlinkSync(`${path}.2`, `${path}-link`);
      expect(named(`${path}-link`)).toThrow(/another recorder/);
      linkSync(`${path}.2`, `${path}-other`);
      expect(named(`${path}-other`)).toThrow(/another recorder/);
      named(`${path}.5`)().end();
      first.end();
      expect([text(`${path}.1`), text(`${path}.2`)]).toEqual([lines(2), lines(3)]);
      expect(failures).toEqual([]);
    });

    it('is reported when it was truncated or removed', () => {
      writeFileSync(path, lines(1));
      const cut = writerTo();
      truncateSync(path, 3);
      add(cut, 2);
      cut.end();
      expect(failures).toMatchObject([{ message: changed }]);
      writeFileSync(path, lines(1));
      const removed = writerTo();
      unlinkSync(path);
      add(removed, 2);
      removed.end();
      expect(failures[1]).toMatchObject({
        message: expect.stringMatching(/the file was removed during the recording/),
      });
    });

    it('is detected before the next write', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.waiting[0]?.land();
      appendFileSync(path, 'other');
      add(writer, 2);
      await turn();
      expect(failures).toMatchObject([{ message: changed }]);
      expect(text()).toBe(`${lines(1)}other`);
    });

    it.each([
      ['truncated', () => truncateSync(path, 0)],
      ['cut in a line', () => truncateSync(path, lines(1).length - 3)],
      ['extended', () => appendFileSync(path, lines(8, 9))],
    ])('is detected before the next write, also if it was %s during a write', async (_how, change) => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.waiting[0]?.land();
      add(writer, 2);
      await turn();
      change();
      disk.waiting[0]?.land();
      add(writer, 3);
      await turn();
      expect(failures).toMatchObject([{ message: changed }]);
      expect(disk.waiting).toEqual([]);
    });
  });

  describe('an empty file', () => {
    const files = (): string[] => [path, `${path}.1`].filter((file) => existsSync(file));

    it('is removed when the disk is full, so that the next recorder starts again', async () => {
      const first = writerTo();
      add(first, 1);
      await turn();
      disk.waiting[0]?.fail('ENOSPC');
      expect(failures).toMatchObject([{ cause: { code: 'ENOSPC' } }]);
      expect(files()).toEqual([]);
      const second = writerTo();
      add(second, 2);
      second.end();
      expect(text()).toBe(lines(2));
    });

    it('stays claimed until the disk has finished a write, which may fill it', async () => {
      const first = writerTo({ maxWaitingBytes: 1e6 });
      add(first, 1);
      await turn();
      first.add(frameAt(NaN));
      expect(failures).toHaveLength(1);
      expect(() => writerTo()).toThrow(/another recorder/);
      disk.waiting[0]?.land();
      expect(text()).toBe(lines(1));
      writerTo().end();
    });
  });

  it('writes all lines when the process exits, and removes its listener', () => {
    const listeners = process.listenerCount('exit');
    const writer = writerTo();
    add(writer, 1);
    const [atExit] = process.listeners('exit').slice(-1) as (() => void)[];
    expect(process.listenerCount('exit')).toBe(listeners + 1);
    atExit?.();
    expect(text()).toBe(lines(1));
    expect(process.listenerCount('exit')).toBe(listeners);
  });
});
