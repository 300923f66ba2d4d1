import type { Replayed } from '../../items/item.js';
import { readLine } from './recording-line.js';
import { carriageReturn, newline } from './line-buffer.js';
import { RecordingError } from './recording-error.js';
import type { RecordedLines } from './recording-reader.js';

export interface EventReader {
  /** The offset of the last line, in bytes of the recording, if that line is invalid. */
  readonly invalidAt: number | undefined;
  /** Sets the next lines. Call it when `next` has returned `undefined`. */
  push(lines: RecordedLines): void;
  /**
   * Returns the next event; `undefined` at the end of the lines. Throws a RecordingError for an invalid line, but only
   * when another line follows it, because a crash may have torn the last line.
   */
  next(): Replayed | undefined;
}

export const createEventReader = (): EventReader => {
  let lines: RecordedLines | undefined;
  let start = 0;
  let isFirst = true;
  let failure: RecordingError | undefined;
  let invalidAt: number | undefined;

  const read = (lines: RecordedLines, end: number): Replayed | undefined => {
    try {
      return readLine(lines.bytes.subarray(start, end), lines.offset + end + 1);
    } catch (error) {
      failure = invalidLine(lines, start, error as Error);
      invalidAt = lines.offset + start;
      // An invalid first line: the file is not a recording. After an offset, it may also be the torn last line.
      if (isFirst && lines.offset === 0) throw failure;
      return undefined;
    }
  };

  return {
    get invalidAt() {
      return invalidAt;
    },
    push: (next) => {
      lines = next;
      start = 0;
    },
    next: () => {
      while (lines !== undefined && start < lines.bytes.length) {
        const end = lines.bytes.indexOf(newline, start);
        // An editor may add an empty line, usually at the end.
        if (isEmpty(lines.bytes, start, end)) {
          start = end + 1;
          continue;
        }
        if (failure !== undefined) throw failure;
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

const invalidLine = (
  { path, fileOffset, offset, bytes }: RecordedLines,
  start: number,
  { message }: Error,
): RecordingError => {
  const lineAt = fileOffset + start;
  const next = offset + bytes.indexOf(newline, start) + 1;
  return new RecordingError(
    `The line at byte ${lineAt} of ${path} isn't a valid line of a recording: ${message}. To skip it, continue from offset ${next}.`,
    { path, lineAt },
  );
};
