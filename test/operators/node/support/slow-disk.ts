import * as fs from 'node:fs';
import type { Disk } from '../../../../src/operators/node/recording/file-writer.js';

type WriteDone = (error: NodeJS.ErrnoException | null, written: number) => void;

/** An asynchronous write that waits. */
export interface WaitingWrite {
  readonly text: string;
  readonly position: number;
  /** Writes a number of bytes, or all, to the real disk, and calls back. */
  land(bytes?: number): void;
  /** Fails after the real disk has written a number of bytes. */
  fail(code: string, bytes?: number): void;
}

/** The real disk, with asynchronous writes that wait for a call of the test. */
export interface SlowDisk extends Disk {
  /** The writes that wait. */
  readonly waiting: WaitingWrite[];
  /** The texts of synchronous writes. */
  readonly sync: string[];
  /** The most bytes of one synchronous write. */
  mostSync: number;
  /** The error of the next synchronous write. */
  failSync: string | undefined;
  /** The error of the next close. */
  failClose: string | undefined;
  readonly closed: number[];
}

const errorOf = (code: string): NodeJS.ErrnoException => Object.assign(new Error(`${code}, on purpose`), { code });

export const slowDisk = (): SlowDisk => {
  const land = (fd: number, bytes: Buffer, offset: number, length: number, position: number): number =>
    length === 0 ? 0 : fs.writeSync(fd, bytes, offset, length, position);
  const disk: SlowDisk = {
    waiting: [],
    sync: [],
    closed: [],
    mostSync: Infinity,
    failSync: undefined,
    failClose: undefined,
    openSync: fs.openSync,
    readSync: fs.readSync,
    closeSync: (fd) => {
      fs.closeSync(fd);
      disk.closed.push(fd);
      const code = disk.failClose;
      disk.failClose = undefined;
      if (code !== undefined) throw errorOf(code);
    },
    fstatSync: fs.fstatSync,
    write: ((fd: number, bytes: Buffer, offset: number, length: number, position: number, done: WriteDone) => {
      disk.waiting.push({
        text: bytes.toString('utf8', offset, offset + length),
        position,
        land: (most = length) => {
          disk.waiting.shift();
          done(null, land(fd, bytes, offset, Math.min(most, length), position));
        },
        fail: (code, some = 0) => {
          disk.waiting.shift();
          land(fd, bytes, offset, some, position);
          done(errorOf(code), 0);
        },
      });
    }) as typeof fs.write,
    writeSync: ((fd: number, bytes: Buffer, offset: number, length: number, position: number) => {
      const code = disk.failSync;
      disk.failSync = undefined;
      if (code !== undefined) throw errorOf(code);
      const most = Math.min(length, disk.mostSync);
      disk.sync.push(bytes.toString('utf8', offset, offset + most));
      return land(fd, bytes, offset, most, position);
    }) as typeof fs.writeSync,
  };
  return disk;
};
