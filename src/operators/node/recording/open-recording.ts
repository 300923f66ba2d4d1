import { closeSync, constants, existsSync, fstatSync, ftruncateSync, openSync, readSync, type Stats } from 'node:fs';
import { noop } from 'rxjs';
import { lockPart } from './claim-recording.js';
import { isRecordingStart, startBytes, timeIn } from './recording-line.js';
import { refuseSpecial } from './file-checks.js';
import { newline } from './line-buffer.js';
import { RecordingError, toRecordingError } from './recording-error.js';
import { fileOf } from './recording-path.js';

/** The newest file of a recording, open for writing. */
export interface OpenRecording {
  readonly fd: number;
  /** The number of the file in the recording: 0, 1, 2, … */
  readonly number: number;
  /** The length of the file, in bytes: the next line is written here. */
  readonly length: number;
  /** When the existing recording stopped, in epoch ms; `undefined` for an empty recording. */
  readonly stoppedAt: number | undefined;
  /** Releases the lock of the file, and must be called once. The lock of the first file belongs to the claim. */
  readonly releasePart: () => void;
}

/** Opens the newest file of a claimed recording, and removes a last line that a crash has torn. */
export const openRecording = (path: string): OpenRecording => {
  const number = newestNumber(path);
  const file = fileOf(path, number);
  let fd: number | undefined;
  let releasePart = noop;
  try {
    refuseSpecial(file);
    if (number > 0) releasePart = lockPart(file);
    fd = openSync(file, constants.O_RDWR);
    const opened = { ...openAtEnd(file, number, fd), releasePart };
    return opened.length > 0 ? opened : { ...opened, stoppedAt: stoppedBefore(path, number) ?? opened.stoppedAt };
  } catch (cause) {
    if (fd !== undefined) closeSync(fd);
    releasePart();
    throw toRecordingError('write', file, cause);
  }
};

const newestNumber = (path: string): number => {
  let number = 0;
  while (existsSync(fileOf(path, number + 1))) number += 1;
  return number;
};

const openAtEnd = (path: string, number: number, fd: number): Omit<OpenRecording, 'releasePart'> => {
  const stats = fstatSync(fd);
  if (stats.size === 0) return { fd, number, length: 0, stoppedAt: undefined };
  if (!isRecordingStart(readBytes(fd, 0, startBytes).toString('latin1')))
    throw new RecordingError(
      `The file ${path} already exists and isn't a recording. Nothing was written to it. Use another path.`,
      { path },
    );
  const { length, stoppedAt } = findEnd(fd, stats);
  if (length < stats.size) ftruncateSync(fd, length);
  return { fd, number, length, stoppedAt };
};

/** Returns when a recording stopped whose newest file is empty: a crash happened before its first line. */
const stoppedBefore = (path: string, number: number): number | undefined => {
  if (number === 0) return undefined;
  const fd = openSync(fileOf(path, number - 1), 'r');
  try {
    const stats = fstatSync(fd);
    return stats.size > 0 ? findEnd(fd, stats).stoppedAt : stoppedBefore(path, number - 1);
  } finally {
    closeSync(fd);
  }
};

/** Returns the end of the last complete line, and its time. */
const findEnd = (fd: number, { size, mtimeMs }: Stats): { length: number; stoppedAt: number } => {
  const length = lastNewlineBefore(fd, size) + 1;
  if (length === 0) return { length, stoppedAt: mtimeMs };
  const start = lastNewlineBefore(fd, length - 1) + 1;
  try {
    return { length, stoppedAt: timeIn(readBytes(fd, start, length - 1 - start)) ?? mtimeMs };
  } catch {
    // After a power cut, the newline may be on the disk although a part of its line is not.
    return { length: start, stoppedAt: mtimeMs };
  }
};

const blockBytes = 64 * 1024;

const lastNewlineBefore = (fd: number, position: number): number => {
  for (let end = position; end > 0;) {
    const start = Math.max(0, end - blockBytes);
    const at = readBytes(fd, start, end - start).lastIndexOf(newline);
    if (at >= 0) return start + at;
    end = start;
  }
  return -1;
};

const readBytes = (fd: number, position: number, length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const read = readSync(fd, bytes, done, length - done, position + done);
    if (read === 0) break;
    done += read;
  }
  return bytes.subarray(0, done);
};
