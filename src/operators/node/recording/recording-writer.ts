import * as fs from 'node:fs';
import { noop } from 'rxjs';
import type { Gap } from '../../../protocol/event.js';
import type { AnyFrame } from '../../../protocol/frame.js';
import { frameLine, gapLine } from './recording-line.js';
import { atExit } from '../../../log/at-exit.js';
import { claimRecording, lockPart } from './claim-recording.js';
import { createFileWriter, type Disk } from './file-writer.js';
import { LineBuffer } from './line-buffer.js';
import { openRecording } from './open-recording.js';
import { type RecordingError, toRecordingError } from './recording-error.js';
import { fileOf } from './recording-path.js';

export interface RecordingWriter {
  /** When the existing recording stopped, in epoch ms; `undefined` for a new recording. */
  readonly stoppedAt: number | undefined;
  /** Writes a line. Waits for the disk only when a file is full or more than `maxWaitingBytes` are not written. */
  add(event: AnyFrame | Gap): void;
  /** Writes all waiting lines synchronously and closes the file. Later calls of `add` do nothing. */
  end(): void;
}

export interface RecordingLimits {
  /** A line that would make the file larger is written to the next file, in bytes. */
  readonly maxFileBytes: number;
  /** How many bytes may wait for the disk. */
  readonly maxWaitingBytes: number;
}

/**
 * Opens a recording for writing, with one asynchronous write at a time.
 *
 * @param fail - called at most once, when the file cannot be written, checked or closed; the recording has ended then
 */
export const createRecordingWriter = (
  path: string,
  { maxFileBytes, maxWaitingBytes }: RecordingLimits,
  fail: (error: RecordingError) => void,
  disk: Disk = fs,
): RecordingWriter => {
  const { release, fd, number: first, length: existing, stoppedAt, ...opened } = claimAndOpen(path);
  let { releasePart } = opened;
  let number = first;
  // The claim may have created the first file, and then removes it if it stays empty.
  let file = createFileWriter(fd, fileOf(path, number), existing, disk, false);
  // The length of the file once all lines are written.
  let length = existing;
  let waiting = new LineBuffer();
  let spare = new LineBuffer();
  let inFlight: LineBuffer | undefined;
  let isScheduled = false;
  let hasEnded = false;
  let hasFailed = false;

  const stop = (error: RecordingError): void => {
    if (hasFailed) return;
    hasFailed = true;
    close();
    fail(error);
  };

  const close = (): void => {
    hasEnded = true;
    removeExitListener();
    orStop(() =>
      file.close(() => {
        releasePart();
        release();
      }),
    );
  };

  const orStop = (action: () => void): void => {
    try {
      action();
    } catch (cause) {
      stop(toRecordingError('write', fileOf(path, number), cause));
    }
  };

  const unwrittenBytes = (): number =>
    waiting.length + (inFlight === undefined ? 0 : inFlight.length - inFlight.written);

  const writeNow = (): void => {
    file.check();
    file.writeNow(waiting);
    waiting.clear();
  };

  const rotate = (): void => {
    writeNow();
    const next = fileOf(path, number + 1);
    let fd: number;
    try {
      // `wx` fails if the file exists, so no file is overwritten.
      fd = disk.openSync(next, 'wx+');
    } catch (cause) {
      throw toRecordingError('write', next, cause);
    }
    const [last, releaseLast] = [file, releasePart];
    number += 1;
    [file, length, releasePart] = [createFileWriter(fd, next, 0, disk, true), 0, noop];
    last.close(releaseLast);
    releasePart = lockPart(next);
  };

  const schedule = (): void => {
    if (isScheduled || inFlight !== undefined) return;
    isScheduled = true;
    // One read of the socket has many frames: the microtask runs after all of them, for one write.
    queueMicrotask(() => orStop(writeWaiting));
  };

  const writeWaiting = (): void => {
    isScheduled = false;
    if (hasEnded || waiting.length === 0) return;
    file.check();
    const lines = waiting;
    [inFlight, waiting] = [lines, spare];
    file.write(lines, (error) => {
      inFlight = undefined;
      spare = lines.recycle();
      if (error) stop(error);
      else orStop(writeWaiting);
    });
  };

  const end = (): void => {
    if (hasEnded) return;
    orStop(() => {
      if (unwrittenBytes() > 0) writeNow();
    });
    // After a failure the file is closed already, and closing it again does nothing.
    close();
  };

  // A program may call `process.exit` while lines wait.
  const removeExitListener = atExit(end);

  return {
    stoppedAt,
    add: (event) => {
      if (hasEnded) return;
      orStop(() => {
        const line = event.type === 'frame' ? frameLine(event) : gapLine(event);
        const bytes = waiting.add(line);
        if (length > 0 && length + bytes > maxFileBytes) {
          waiting.drop(bytes);
          rotate();
          waiting.add(line);
        }
        length += bytes;
        if (unwrittenBytes() > maxWaitingBytes) writeNow();
        else schedule();
      });
    },
    end,
  };
};

const claimAndOpen = (path: string) => {
  const release = claimRecording(path);
  try {
    return { release, ...openRecording(path) };
  } catch (error) {
    release();
    throw error;
  }
};
