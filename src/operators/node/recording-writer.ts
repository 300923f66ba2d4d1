import * as fs from 'node:fs';
import type { Gap } from '../../protocol/event.js';
import type { Frame } from '../../protocol/frame.js';
import { cannot, RecordingError } from './recording-error.js';
import { fileOf } from './recording-files.js';
import { frameLine, gapLine } from './recording-line.js';
import { openRecording } from './recording-open.js';
import { Lines } from './recording-lines.js';

/** Writes lines to a recording, behind the stream's back. */
export interface RecordingWriter {
  /** When the recording stopped that the file held already, in epoch ms. */
  readonly stoppedAt: number | undefined;
  /** Writes the line of a frame or a gap. Does not wait for the disk, unless too much waits for it already. */
  add(event: Frame | Gap): void;
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

/** What it needs of the file system: a test may give a disk of its own. */
export type Disk = Pick<typeof fs, 'openSync' | 'closeSync' | 'write' | 'writeSync' | 'fstat' | 'fstatSync'>;

interface File {
  readonly path: string;
  readonly fd: number;
  /** Up to where it is known to be written, in bytes. */
  written: number;
  /** How long it will be when all that waits is written, in bytes. */
  length: number;
  lookedAt: number;
  isClosed: boolean;
}

/** What the disk is busy with. */
interface Flight {
  readonly file: File;
  readonly lines: Lines;
  /** It was written a second time meanwhile, since nobody could wait for it. */
  isSettled: boolean;
}

/** How often it looks whether somebody else changes the file, in ms. */
const lookEveryMs = 1_000;

/**
 * Opens a recording to write to.
 *
 * One asynchronous write is under way at a time, and what comes meanwhile makes up the next one. Each goes to its own position of the
 * file, so it can be done again: whoever cannot wait writes synchronously what is not known to be written, whatever the other write
 * has done of it by then.
 *
 * @param fail - told once, when a line cannot be written: nothing is written any more
 * @throws RecordingError when the file cannot be opened
 */
export const recordingWriter = (
  path: string,
  { maxFileBytes, maxWaitingBytes }: RecordingBounds,
  fail: (error: RecordingError) => void,
  disk: Disk = fs,
): RecordingWriter => {
  const { fd, number: first, length, stoppedAt } = openRecording(path);
  const fileAt = (fd: number, number: number, length: number): File => ({
    path: fileOf(path, number),
    fd,
    written: length,
    length,
    lookedAt: -Infinity,
    isClosed: false,
  });
  let number = first;
  let file = fileAt(fd, number, length);
  let waiting = new Lines();
  let spare = new Lines();
  let flight: Flight | undefined;
  let isScheduled = false;
  let isOver = false;
  let hasFailed = false;

  const unwritten = (): number => file.length - file.written;

  const close = (file: File): void => {
    // What the disk is busy with needs the file: it is closed when that is done.
    if (file.isClosed || flight?.file === file) return;
    file.isClosed = true;
    try {
      disk.closeSync(file.fd);
    } catch (cause) {
      stop(cannot('write', file.path, cause));
    }
  };

  const stop = (error: RecordingError): void => {
    if (hasFailed) return;
    hasFailed = true;
    isOver = true;
    close(file);
    fail(error);
  };

  const tryTo = (act: () => void): void => {
    try {
      act();
    } catch (cause) {
      stop(cannot('write', file.path, cause));
    }
  };

  const writeNow = (): void => {
    if (flight === undefined) check(file, disk.fstatSync(file.fd));
    else if (!flight.isSettled) {
      flight.isSettled = true;
      writeSync(flight.lines);
    }
    writeSync(waiting);
    waiting.clear();
  };

  const writeSync = (lines: Lines): void => {
    while (lines.done < lines.length) {
      const { bytes, done, length } = lines;
      land(file, lines, disk.writeSync(file.fd, bytes, done, length - done, file.written));
    }
  };

  const rotate = (): void => {
    const last = file;
    writeNow();
    number += 1;
    const next = fileOf(path, number);
    try {
      // Whatever is there already is left as it is.
      file = fileAt(disk.openSync(next, 'wx+'), number, 0);
    } catch (cause) {
      throw cannot('write', next, cause);
    }
    close(last);
  };

  const schedule = (): void => {
    if (isScheduled || flight !== undefined) return;
    isScheduled = true;
    // Behind what comes in this turn: a read of the socket holds many frames.
    queueMicrotask(depart);
  };

  const depart = (): void => {
    isScheduled = false;
    if (isOver || waiting.length === 0) return;
    const begun: Flight = { file, lines: waiting, isSettled: false };
    flight = begun;
    waiting = spare;
    if (performance.now() - file.lookedAt < lookEveryMs) write(begun);
    else look(begun);
  };

  const look = (flight: Flight): void => {
    const { file } = flight;
    disk.fstat(file.fd, (error, stats) => {
      file.lookedAt = performance.now();
      tryTo(() => {
        if (flight.isSettled || isOver) return;
        if (error) throw error;
        check(file, stats);
      });
      write(flight);
    });
  };

  const write = (flight: Flight): void => {
    const { file, lines } = flight;
    if (flight.isSettled || isOver) return arrive(flight);
    disk.write(file.fd, lines.bytes, lines.done, lines.length - lines.done, file.written, (error, written) => {
      tryTo(() => {
        if (flight.isSettled || isOver) return;
        if (error) throw error;
        land(file, lines, written);
      });
      if (lines.done < lines.length) write(flight);
      else arrive(flight);
    });
  };

  const arrive = ({ file: there, lines }: Flight): void => {
    flight = undefined;
    spare = lines.cleared();
    if (isOver || there !== file) close(there);
    if (!isOver) depart();
  };

  return {
    stoppedAt,
    add: (event) => {
      if (isOver) return;
      tryTo(() => {
        const line = event.type === 'frame' ? frameLine(event) : gapLine(event);
        const bytes = waiting.add(line);
        if (file.length > 0 && file.length + bytes > maxFileBytes) {
          waiting.drop(bytes);
          rotate();
          waiting.add(line);
        }
        file.length += bytes;
        if (unwritten() > maxWaitingBytes) writeNow();
        else schedule();
      });
    },
    end: () => {
      if (isOver) return;
      tryTo(() => {
        if (unwritten() > 0) writeNow();
      });
      isOver = true;
      close(file);
    },
  };
};

const land = (file: File, lines: Lines, written: number): void => {
  if (written === 0) throw new RecordingError(`Cannot write the recording ${file.path}: the disk took nothing.`, file);
  lines.done += written;
  file.written += written;
};

/** Throws when somebody else has changed the file: two writers would write over each other. */
const check = ({ path, written }: File, { size, nlink }: Pick<fs.Stats, 'size' | 'nlink'>): void => {
  if (size !== written)
    throw new RecordingError(
      `Cannot write the recording ${path}: somebody else has changed it meanwhile. Let one process record to a path, and move or cut a recording when none does.`,
      { path },
    );
  if (nlink === 0) throw new RecordingError(`Cannot write the recording ${path}: it was removed meanwhile.`, { path });
};
