import { closeSync, constants, existsSync, fstatSync, ftruncateSync, openSync, readSync, type Stats } from 'node:fs';
import { cannot, RecordingError } from './recording-error.js';
import { fileOf, newline } from './recording-path.js';
import { isRecordingStart, startBytes, timeIn } from '../recording-line.js';
import { refuseSpecial } from './file-checks.js';

/** The file that a recording goes on with. */
export interface OpenRecording {
  readonly fd: number;
  /** Which file of the recording it is: 0, 1, 2, … */
  readonly number: number;
  /** Its length, in bytes: where the next line goes. */
  readonly length: number;
  /** When the recording stopped that it holds already, in epoch ms. */
  readonly stoppedAt: number | undefined;
}

/**
 * Opens the newest file of a recording that is claimed, so its first file is there. Cuts off a last line that a crash has torn.
 *
 * @throws RecordingError when it cannot be written, or is no recording: then it is left as it is
 */
export const openRecording = (path: string): OpenRecording => {
  const number = newestOf(path);
  const file = fileOf(path, number);
  let fd: number | undefined;
  try {
    refuseSpecial(file);
    fd = openSync(file, constants.O_RDWR);
    const opened = resumed(file, number, fd);
    return opened.length > 0 ? opened : { ...opened, stoppedAt: stoppedBefore(path, number) ?? opened.stoppedAt };
  } catch (cause) {
    if (fd !== undefined) closeSync(fd);
    throw cannot('write', file, cause);
  }
};

const newestOf = (path: string): number => {
  let number = 0;
  while (existsSync(fileOf(path, number + 1))) number += 1;
  return number;
};

const resumed = (path: string, number: number, fd: number): OpenRecording => {
  const stats = fstatSync(fd);
  if (stats.size === 0) return { fd, number, length: 0, stoppedAt: undefined };
  if (!isRecordingStart(bytesAt(fd, 0, startBytes).toString('latin1')))
    throw new RecordingError(
      `The file ${path} is there already, and is no recording: nothing was written to it. Give another path.`,
      { path },
    );
  const { length, stoppedAt } = endOf(fd, stats);
  if (length < stats.size) ftruncateSync(fd, length);
  return { fd, number, length, stoppedAt };
};

/** When a recording stopped whose newest file was begun and holds nothing: a crash can fall between two files. */
const stoppedBefore = (path: string, number: number): number | undefined => {
  if (number === 0) return undefined;
  const fd = openSync(fileOf(path, number - 1), 'r');
  try {
    const stats = fstatSync(fd);
    return stats.size > 0 ? endOf(fd, stats).stoppedAt : stoppedBefore(path, number - 1);
  } finally {
    closeSync(fd);
  }
};

/** Finds the end of the last line that is whole, and its time. */
const endOf = (fd: number, { size, mtimeMs }: Stats): { length: number; stoppedAt: number } => {
  const length = newlineBefore(fd, size) + 1;
  if (length === 0) return { length, stoppedAt: mtimeMs };
  const start = newlineBefore(fd, length - 1) + 1;
  try {
    return { length, stoppedAt: timeIn(bytesAt(fd, start, length - 1 - start)) ?? mtimeMs };
  } catch {
    // Its newline was written, but not all before it: a power cut may do that.
    return { length: start, stoppedAt: mtimeMs };
  }
};

const blockBytes = 64 * 1024;

/** Finds the last newline before a position; -1 when there is none. */
const newlineBefore = (fd: number, position: number): number => {
  for (let end = position; end > 0;) {
    const start = Math.max(0, end - blockBytes);
    const at = bytesAt(fd, start, end - start).lastIndexOf(newline);
    if (at >= 0) return start + at;
    end = start;
  }
  return -1;
};

const bytesAt = (fd: number, position: number, length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const read = readSync(fd, bytes, done, length - done, position + done);
    if (read === 0) break;
    done += read;
  }
  return bytes.subarray(0, done);
};
