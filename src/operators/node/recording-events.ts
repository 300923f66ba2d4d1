import { RecordingError } from './recording-error.js';
import { carriageReturn, newline } from './recording-files.js';
import type { Replayed } from '../items/replayed.js';
import { readLine } from './recording-line.js';
import type { RecordedLines } from './recording-reader.js';

/** Makes events of lines, one at a time. */
export interface RecordedEvents {
  /** The offset of an unreadable line that no other line follows so far, in bytes of the recording. */
  readonly unreadableAt: number | undefined;
  /** Takes the next lines, when those before are used up. */
  take(lines: RecordedLines): void;
  /**
   * Gives the next event; nothing when the lines are used up.
   *
   * @throws RecordingError for a line that is not readable, once another one follows it: the last one may be torn
   */
  next(): Replayed | undefined;
}

/** Makes the events of a recording. */
export const recordedEvents = (): RecordedEvents => {
  let lines: RecordedLines | undefined;
  let start = 0;
  let isFirst = true;
  let unreadable: RecordingError | undefined;
  let unreadableAt: number | undefined;

  const read = (lines: RecordedLines, end: number): Replayed | undefined => {
    try {
      return readLine(lines.bytes.subarray(start, end), lines.offset + end + 1);
    } catch (error) {
      unreadable = errorAt(lines, start, error as Error);
      unreadableAt = lines.offset + start;
      // The first line of a recording is always readable; the first line after an offset may be torn.
      if (isFirst && lines.offset === 0) throw unreadable;
      return undefined;
    }
  };

  return {
    get unreadableAt() {
      return unreadableAt;
    },
    take: (next) => {
      lines = next;
      start = 0;
    },
    next: () => {
      while (lines !== undefined && start < lines.bytes.length) {
        const end = lines.bytes.indexOf(newline, start);
        // An editor may have left an empty line, at the end above all.
        if (isEmpty(lines.bytes, start, end)) {
          start = end + 1;
          continue;
        }
        if (unreadable !== undefined) throw unreadable;
        const event = read(lines, end);
        start = end + 1;
        isFirst = false;
        if (event !== undefined) return event;
      }
      return undefined;
    },
  };
};

const isEmpty = (bytes: Buffer, start: number, end: number): boolean =>
  start === end || (end - start === 1 && bytes[start] === carriageReturn);

const errorAt = (
  { path, fileOffset, offset, bytes }: RecordedLines,
  start: number,
  { message }: Error,
): RecordingError => {
  const lineAt = fileOffset + start;
  const next = offset + bytes.indexOf(newline, start) + 1;
  return new RecordingError(
    `The line at byte ${lineAt} of ${path} is not readable as a recording: ${message}. To leave it out, go on from offset ${next}.`,
    { path, lineAt },
  );
};
