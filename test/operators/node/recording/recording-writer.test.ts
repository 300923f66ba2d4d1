import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { appendFileSync, existsSync, readFileSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
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

  it('ignores the failure of a write that was repeated synchronously', async () => {
    const writer = writerTo();
    add(writer, 1);
    await turn();
    writer.end();
    disk.waiting[0]?.fail('EIO');
    expect(text()).toBe(lines(1));
    expect(failures).toEqual([]);
  });

  it('ignores lines after the end', async () => {
    const writer = writerTo();
    add(writer, 1);
    writer.end();
    writer.end();
    add(writer, 2);
    await turn();
    expect(text()).toBe(lines(1));
    expect(disk.waiting).toHaveLength(0);
    expect(disk.closed).toHaveLength(1);
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

  it('writes synchronously when too many bytes arrive in one turn', () => {
    const writer = writerTo({ maxWaitingBytes: 1 });
    add(writer, 1, 2);
    expect(disk.sync).toEqual([lines(1), lines(2)]);
    writer.end();
  });

  describe('rotation', () => {
    const two = lines(1, 2).length;

    it('begins another file for a line that does not fit', () => {
      const writer = writerTo({ maxFileBytes: two });
      add(writer, 1, 2, 3, 4, 5);
      writer.end();
      expect([text(), text(`${path}.1`), text(`${path}.2`)]).toEqual([lines(1, 2), lines(3, 4), lines(5)]);
      expect(existsSync(`${path}.3`)).toBe(false);
    });

    it('writes a line that is larger than a file to a separate file', () => {
      const writer = writerTo({ maxFileBytes: 1 });
      add(writer, 1, 2);
      writer.end();
      expect([text(), text(`${path}.1`)]).toEqual([lines(1), lines(2)]);
    });

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

    it('keeps few files open when it rotates many times in one turn', async () => {
      const writer = writerTo({ maxFileBytes: 1 });
      add(writer, 1);
      await turn();
      for (let ms = 2; ms < 50; ms += 1) add(writer, ms);
      // The first file for its lock, the last file, and the file of the write in progress.
      expect(openFiles().filter((file) => file.startsWith(path)).length).toBeLessThanOrEqual(3);
      disk.waiting[0]?.land();
      writer.end();
      disk.waiting[0]?.land();
      expect(text(`${path}.48`)).toBe(lines(49));
    });

    it('counts the existing lines of the file', () => {
      writeFileSync(path, lines(1));
      const writer = writerTo({ maxFileBytes: two });
      expect(writer.stoppedAt).toBe(1);
      add(writer, 2, 3);
      writer.end();
      expect([text(), text(`${path}.1`)]).toEqual([lines(1, 2), lines(3)]);
    });

    it('does not change a file that another program has created', () => {
      const writer = writerTo({ maxFileBytes: 1 });
      add(writer, 1);
      writeFileSync(`${path}.1`, 'mine');
      add(writer, 2);
      expect(failures).toMatchObject([
        { path: `${path}.1`, message: `Cannot write the recording ${path}.1: the file already exists.` },
      ]);
      expect([text(), text(`${path}.1`)]).toEqual([lines(1), 'mine']);
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
          message: `Cannot write the recording ${path}: no space is left on the disk.`,
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

    it('reports a disk that writes 0 bytes', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.waiting[0]?.land(0);
      expect(failures).toMatchObject([{ message: `Cannot write the recording ${path}: the disk wrote 0 bytes.` }]);
    });

    it('reports a failure of the last write', () => {
      const writer = writerTo();
      add(writer, 1);
      disk.failSync = 'EDQUOT';
      writer.end();
      expect(failures).toMatchObject([{ message: `Cannot write the recording ${path}: the disk quota is used up.` }]);
    });

    it('reports a failure of the last write while another one is in progress', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.failSync = 'EIO';
      writer.end();
      expect(failures).toMatchObject([{ message: `Cannot write the recording ${path}: EIO, on purpose.` }]);
      expect(disk.closed).toHaveLength(0);
      disk.waiting[0]?.land();
      expect(disk.closed).toHaveLength(1);
      expect(failures).toHaveLength(1);
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

    it('reports a failure to close the file', () => {
      const writer = writerTo();
      add(writer, 1);
      disk.failClose = 'ENOSPC';
      writer.end();
      expect(failures).toMatchObject([{ cause: { code: 'ENOSPC' } }]);
      expect(disk.closed).toHaveLength(1);
    });

    it('reports a failure to close the file after the end', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      writer.end();
      disk.failClose = 'EIO';
      disk.waiting[0]?.land();
      expect(failures).toMatchObject([{ cause: { code: 'EIO' } }]);
    });

    it('reports a failed write, but not a failure to close the file after it', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.failClose = 'EIO';
      disk.waiting[0]?.fail('ENOSPC');
      expect(failures).toMatchObject([{ cause: { code: 'ENOSPC' } }]);
    });

    it('reports a frame that cannot be written as a line', () => {
      const writer = writerTo();
      writer.add(frameAt(NaN));
      expect(failures).toMatchObject([
        { message: expect.stringMatching(/a frame has a feed, and numbers/), cause: expect.any(TypeError) },
      ]);
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

    it('is also refused after a rotation', () => {
      const first = writerTo({ maxFileBytes: 1 });
      add(first, 1, 2, 3);
      expect(() => writerTo()).toThrow(/another recorder/);
      first.end();
      writerTo().end();
      expect(failures).toEqual([]);
    });

    it('is available when the first recorder has ended, even if the disk has not finished the last write', async () => {
      const first = writerTo();
      add(first, 1);
      await turn();
      first.end();
      const second = writerTo();
      add(second, 2);
      second.end();
      disk.waiting[0]?.land();
      expect(failures).toEqual([]);
      expect(text()).toBe(lines(1, 2));
    });

    it('is available again after a refused file, and after a failed recording', () => {
      writeFileSync(path, 'mine');
      expect(() => writerTo()).toThrow(/is not a recording/);
      writeFileSync(path, '');
      const failed = writerTo();
      disk.failSync = 'EIO';
      add(failed, 1);
      failed.end();
      expect(failures).toHaveLength(1);
      const second = writerTo();
      add(second, 2);
      second.end();
      expect(failures).toHaveLength(1);
      expect(text()).toBe(lines(2));
    });

    it('is detected before the next write if the last check was some time ago', async () => {
      const now = jest.spyOn(performance, 'now').mockReturnValue(5_000);
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.waiting[0]?.land();
      appendFileSync(path, 'other');
      now.mockReturnValue(6_000);
      add(writer, 2);
      await turn();
      now.mockRestore();
      expect(failures).toMatchObject([{ message: changed }]);
      expect(text()).toBe(`${lines(1)}other`);
    });

    it('is also detected at the last write', () => {
      const writer = writerTo();
      add(writer, 1);
      appendFileSync(path, 'other');
      writer.end();
      expect(failures).toMatchObject([{ message: changed }]);
      expect(text()).toBe('other');
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

    it('is not checked before each write', async () => {
      const writer = writerTo();
      for (const ms of [1, 2, 3]) {
        add(writer, ms);
        await turn();
        disk.waiting[0]?.land();
      }
      expect(disk.looked).toBe(1);
      writer.end();
    });

    it('is not confused with a write in progress', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      writeFileSync(path, lines(1));
      add(writer, 2);
      writer.end();
      disk.waiting[0]?.land();
      expect(failures).toEqual([]);
      expect(text()).toBe(lines(1, 2));
    });
  });

  describe('an empty file', () => {
    const files = (): string[] => [path, `${path}.1`].filter((file) => existsSync(file));

    it('is removed when there was no event', () => {
      writerTo().end();
      expect(files()).toEqual([]);
    });

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

    it('is removed when a rotation created it and no line was written', async () => {
      const writer = writerTo({ maxFileBytes: 1 });
      add(writer, 1, 2);
      await turn();
      disk.waiting[0]?.fail('ENOSPC');
      expect(failures).toHaveLength(1);
      expect(files()).toEqual([path]);
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

    it('is removed when the disk has finished a failed write', async () => {
      const first = writerTo();
      add(first, 1);
      await turn();
      first.add(frameAt(NaN));
      expect(files()).toEqual([path]);
      disk.waiting[0]?.fail('ENOSPC');
      expect(files()).toEqual([]);
      expect(failures).toHaveLength(1);
      writerTo().end();
    });

    it('is kept if it existed before', () => {
      writeFileSync(path, '');
      writerTo().end();
      expect(files()).toEqual([path]);
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
