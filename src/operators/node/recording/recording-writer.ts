import * as fs from 'node:fs';
import type { Gap } from '../../../protocol/event.js';
import type { AnyFrame } from '../../../protocol/frame.js';
import { atExit } from './at-exit.js';
import { claimRecording } from './claim-recording.js';
import { cannot, RecordingError } from './recording-error.js';
import { type Disk, createFileWriter } from './file-writer.js';
import { fileOf } from './recording-path.js';
import { frameLine, gapLine } from '../recording-line.js';
import { LineBuffer } from './line-buffer.js';
import { openRecording } from './open-recording.js';

/** Writes lines to a recording, behind the stream's back. */
export interface RecordingWriter {
  /** When the recording stopped that the file held already, in epoch ms. */
  readonly stoppedAt: number | undefined;
  /** Writes the line of a frame or a gap. Does not wait for the disk, unless too much waits for it already. */
  add(event: AnyFrame | Gap): void;
  /** Writes all that waits, and does not return before. The file is closed; a later `add` does nothing. */
  end(): void;
}

/** How a recording is written. */
export interface RecordingBounds {
  /** A line that would make a file larger goes into the next one, in bytes. */
  readonly maxFileBytes: number;
  /** How much may wait for the disk, in bytes. */
  readonly maxWaitingBytes: number;
}

/** How often it looks whether somebody else has changed or removed the file, in ms. */
const lookEveryMs = 1_000;

/**
 * Opens a recording to write to. One asynchronous write is under way at a time, and what comes meanwhile makes up the next one.
 *
 * @param path - an absolute path
 * @param fail - told once, when a line cannot be written: nothing is written any more
 * @throws RecordingError when the file cannot be opened, or another recorder writes to it
 */
export const createRecordingWriter = (
  path: string,
  { maxFileBytes, maxWaitingBytes }: RecordingBounds,
  fail: (error: RecordingError) => void,
  disk: Disk = fs,
): RecordingWriter => {
  const { release, fd, number: first, length: before, stoppedAt } = claimedRecording(path);
  let number = first;
  // The claim has created the first file, if anybody has, and removes it.
  let file = createFileWriter(fd, fileOf(path, number), before, disk, false);
  // How long the file will be when all is written, and how much of that is lines that wait or are under way.
  let length = before;
  let waiting = new LineBuffer();
  let spare = new LineBuffer();
  let underWay: LineBuffer | undefined;
  let isScheduled = false;
  let lookedAt = -Infinity;
  let isOver = false;
  let hasFailed = false;

  const stop = (error: RecordingError): void => {
    if (hasFailed) return;
    hasFailed = true;
    leave();
    fail(error);
  };

  const leave = (): void => {
    isOver = true;
    forgetExit();
    tryTo(() => file.close(release));
  };

  const tryTo = (act: () => void): void => {
    try {
      act();
    } catch (cause) {
      stop(cannot('write', fileOf(path, number), cause));
    }
  };

  const unwritten = (): number => waiting.length + (underWay === undefined ? 0 : underWay.length - underWay.done);

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
      // Whatever is there already is left as it is.
      fd = disk.openSync(next, 'wx+');
    } catch (cause) {
      throw cannot('write', next, cause);
    }
    const last = file;
    number += 1;
    [file, length, lookedAt] = [createFileWriter(fd, next, 0, disk, true), 0, -Infinity];
    last.close();
  };

  const schedule = (): void => {
    if (isScheduled || underWay !== undefined) return;
    isScheduled = true;
    // Behind what comes in this turn: a read of the socket holds many frames.
    queueMicrotask(() => tryTo(depart));
  };

  const depart = (): void => {
    isScheduled = false;
    if (isOver || waiting.length === 0) return;
    const now = performance.now();
    if (now - lookedAt >= lookEveryMs) {
      lookedAt = now;
      file.check();
    }
    const lines = waiting;
    [underWay, waiting] = [lines, spare];
    file.write(lines, (error) => {
      underWay = undefined;
      spare = lines.cleared();
      if (error) stop(error);
      else tryTo(depart);
    });
  };

  const end = (): void => {
    if (isOver) return;
    tryTo(() => {
      if (unwritten() > 0) writeNow();
    });
    // A failure has left already: to leave again does nothing.
    leave();
  };

  // A program may end itself while lines wait.
  const forgetExit = atExit(end);

  return {
    stoppedAt,
    add: (event) => {
      if (isOver) return;
      tryTo(() => {
        const line = event.type === 'frame' ? frameLine(event) : gapLine(event);
        const bytes = waiting.add(line);
        if (length > 0 && length + bytes > maxFileBytes) {
          waiting.drop(bytes);
          rotate();
          waiting.add(line);
        }
        length += bytes;
        if (unwritten() > maxWaitingBytes) writeNow();
        else schedule();
      });
    },
    end,
  };
};

const claimedRecording = (path: string) => {
  const release = claimRecording(path);
  try {
    return { release, ...openRecording(path) };
  } catch (error) {
    release();
    throw error;
  }
};
