import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { appendFileSync, existsSync, readFileSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import type { RecordingError } from '../../../../src/index.js';
import { frameLine } from '../../../../src/operators/node/recording-line.js';
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
  it('writes what comes in a turn at once, and what comes meanwhile as soon as that is written', async () => {
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

  it('goes on with the rest when the disk takes a part', async () => {
    const writer = writerTo();
    add(writer, 1, 2);
    await turn();
    disk.waiting[0]?.land(10);
    expect(disk.waiting).toMatchObject([{ text: lines(1, 2).slice(10), position: 10 }]);
    disk.waiting[0]?.land();
    expect(text()).toBe(lines(1, 2));
    writer.end();
  });

  it('is whole when it has ended, whatever is under way, and whatever that does later', async () => {
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

  it('does not mind that a write fails which was done again', async () => {
    const writer = writerTo();
    add(writer, 1);
    await turn();
    writer.end();
    disk.waiting[0]?.fail('EIO');
    expect(text()).toBe(lines(1));
    expect(failures).toEqual([]);
  });

  it('takes nothing more when it has ended', async () => {
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

  it('writes synchronously when too much waits, and goes on asynchronously', async () => {
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

  it('writes synchronously when too much comes in a turn', () => {
    const writer = writerTo({ maxWaitingBytes: 1 });
    add(writer, 1, 2);
    expect(disk.sync).toEqual([lines(1), lines(2)]);
    writer.end();
  });

  describe('rotation', () => {
    const two = lines(1, 2).length;

    it('begins another file for the line that would make one larger', () => {
      const writer = writerTo({ maxFileBytes: two });
      add(writer, 1, 2, 3, 4, 5);
      writer.end();
      expect([text(), text(`${path}.1`), text(`${path}.2`)]).toEqual([lines(1, 2), lines(3, 4), lines(5)]);
      expect(existsSync(`${path}.3`)).toBe(false);
    });

    it('gives a line that is larger than a file one to itself', () => {
      const writer = writerTo({ maxFileBytes: 1 });
      add(writer, 1, 2);
      writer.end();
      expect([text(), text(`${path}.1`)]).toEqual([lines(1), lines(2)]);
    });

    it('has the old file whole, and closes it when the disk is done with it', async () => {
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

    it('keeps few files open however often it rotates in a turn', async () => {
      const writer = writerTo({ maxFileBytes: 1 });
      add(writer, 1);
      await turn();
      for (let ms = 2; ms < 50; ms += 1) add(writer, ms);
      // The first one for its lock, the last one, and the one that a write goes to.
      expect(openFiles().filter((file) => file.startsWith(path)).length).toBeLessThanOrEqual(3);
      disk.waiting[0]?.land();
      writer.end();
      disk.waiting[0]?.land();
      expect(text(`${path}.48`)).toBe(lines(49));
    });

    it('counts what the file holds already', () => {
      writeFileSync(path, lines(1));
      const writer = writerTo({ maxFileBytes: two });
      expect(writer.stoppedAt).toBe(1);
      add(writer, 2, 3);
      writer.end();
      expect([text(), text(`${path}.1`)]).toEqual([lines(1, 2), lines(3)]);
    });

    it('does not touch a file that has come up meanwhile', () => {
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
    it('tells it once, writes nothing more and closes the file', async () => {
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

    it('tells of a disk that takes nothing', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.waiting[0]?.land(0);
      expect(failures).toMatchObject([{ message: `Cannot write the recording ${path}: the disk wrote 0 bytes.` }]);
    });

    it('tells what the last write met', () => {
      const writer = writerTo();
      add(writer, 1);
      disk.failSync = 'EDQUOT';
      writer.end();
      expect(failures).toMatchObject([{ message: `Cannot write the recording ${path}: the disk quota is used up.` }]);
    });

    it('tells what the last write met while another one is under way', async () => {
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

    it('closes each file once, since its number may belong to another file by then', () => {
      const close = jest.spyOn(disk, 'closeSync');
      const writer = writerTo();
      add(writer, 1);
      disk.failSync = 'EIO';
      disk.failClose = 'EIO';
      writer.end();
      expect(failures).toHaveLength(1);
      expect(close).toHaveBeenCalledTimes(1);
    });

    it('tells what the closing met', () => {
      const writer = writerTo();
      add(writer, 1);
      disk.failClose = 'ENOSPC';
      writer.end();
      expect(failures).toMatchObject([{ cause: { code: 'ENOSPC' } }]);
      expect(disk.closed).toHaveLength(1);
    });

    it('tells what a late closing met, when it has ended', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      writer.end();
      disk.failClose = 'EIO';
      disk.waiting[0]?.land();
      expect(failures).toMatchObject([{ cause: { code: 'EIO' } }]);
    });

    it('tells of a write that failed, and not of its closing as well', async () => {
      const writer = writerTo();
      add(writer, 1);
      await turn();
      disk.failClose = 'EIO';
      disk.waiting[0]?.fail('ENOSPC');
      expect(failures).toMatchObject([{ cause: { code: 'ENOSPC' } }]);
    });

    it('tells of a frame that cannot be a line', () => {
      const writer = writerTo();
      writer.add(frameAt(NaN));
      expect(failures).toMatchObject([
        { message: expect.stringMatching(/a frame has a feed, and numbers/), cause: expect.any(TypeError) },
      ]);
    });
  });

  describe('sharing a file with somebody else', () => {
    const changed: unknown = expect.stringMatching(/another program changed the file during the recording/);

    it('is refused to a second recorder, until the first one has ended', () => {
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

    it('is refused after a rotation as well', () => {
      const first = writerTo({ maxFileBytes: 1 });
      add(first, 1, 2, 3);
      expect(() => writerTo()).toThrow(/another recorder/);
      first.end();
      writerTo().end();
      expect(failures).toEqual([]);
    });

    it('is allowed at once when the first one has ended, though the disk is not done with its last write', async () => {
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

    it('is allowed again when the file was refused, and when the recording has failed', () => {
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

    it('is told before the next write when the last look was a while ago', async () => {
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

    it('is refused at the last write as well', () => {
      const writer = writerTo();
      add(writer, 1);
      appendFileSync(path, 'other');
      writer.end();
      expect(failures).toMatchObject([{ message: changed }]);
      expect(text()).toBe('other');
    });

    it('tells of a file that was cut or removed', () => {
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

    it('does not look before each write', async () => {
      const writer = writerTo();
      for (const ms of [1, 2, 3]) {
        add(writer, ms);
        await turn();
        disk.waiting[0]?.land();
      }
      expect(disk.looked).toBe(1);
      writer.end();
    });

    it('takes its own write that is under way for nobody else', async () => {
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

    it('is removed when nothing came', () => {
      writerTo().end();
      expect(files()).toEqual([]);
    });

    it('is removed when the disk is full, so the next recorder begins anew', async () => {
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

    it('is removed when the file that it rotated into gets no line', async () => {
      const writer = writerTo({ maxFileBytes: 1 });
      add(writer, 1, 2);
      await turn();
      disk.waiting[0]?.fail('ENOSPC');
      expect(failures).toHaveLength(1);
      expect(files()).toEqual([path]);
    });

    it('stays claimed and there until the disk is done with a write, which may have filled it', async () => {
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

    it('is removed when the disk is done with a write that it has refused', async () => {
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

    it('is kept when it was there before', () => {
      writeFileSync(path, '');
      writerTo().end();
      expect(files()).toEqual([path]);
    });
  });

  it('writes all when the process ends itself, and keeps no listener behind', () => {
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
