import type * as fs from 'node:fs';
import { noop } from 'rxjs';
import { cannot, RecordingError } from './recording-error.js';
import type { LineBuffer } from './line-buffer.js';
import { removeIfEmpty } from './file-checks.js';

/** What it needs of the file system: a test may give a disk of its own. */
export type Disk = Pick<typeof fs, 'openSync' | 'closeSync' | 'write' | 'writeSync' | 'fstatSync'>;

/** One file of a recording that is open. */
export interface FileWriter {
  /**
   * Writes lines behind what is written, one call at a time.
   *
   * @param done - told once, when the disk is done with them: they were written, written again by `writeNow`, given up by `close`, or
   * there was an error
   */
  write(lines: LineBuffer, done: (error?: RecordingError) => void): void;
  /** Writes what `write` has not written yet, and then these lines. Does not return before. */
  writeNow(lines: LineBuffer): void;
  /**
   * Looks whether somebody else has changed the file.
   *
   * @throws RecordingError when it was cut, grew or was removed
   */
  check(): void;
  /**
   * Closes the file, when the disk is done with it. What is not written yet is given up. A new file that is still empty is removed.
   *
   * @param free - called once, when the recording may have another writer: at once, or when an empty file has been closed, since
   * it can be removed until then
   */
  close(free?: () => void): void;
}

/**
 * Makes a file of a recording, of one that is open. All but `write` throw a RecordingError for what the disk refuses.
 *
 * Each write goes to its own position of the file, so it can be done again: whoever cannot wait writes synchronously what is not known
 * to be written, whatever the other write has done of it by then.
 *
 * @param length - how much of it is written already, in bytes
 * @param isNew - whether this recording has created it: then it is removed if nothing is ever written to it
 */
export const createFileWriter = (fd: number, path: string, length: number, disk: Disk, isNew: boolean): FileWriter => {
  let written = length;
  /** What the disk writes, unless somebody has written it again. */
  let flight: LineBuffer | undefined;
  let isBusy = false;
  let isClosing = false;
  let freed = noop;

  const trying = (act: () => void): void => {
    try {
      act();
    } catch (cause) {
      throw cannot('write', path, cause);
    }
  };

  const land = (lines: LineBuffer, bytes: number): void => {
    if (bytes === 0) throw new RecordingError(`Cannot write the recording ${path}: the disk took nothing.`, { path });
    lines.done += bytes;
    written += bytes;
  };

  const writeSync = (lines: LineBuffer): void => {
    while (lines.done < lines.length)
      land(lines, disk.writeSync(fd, lines.bytes, lines.done, lines.length - lines.done, written));
  };

  const arrive = (error: unknown, done: (error?: RecordingError) => void): void => {
    flight = undefined;
    isBusy = false;
    let failure = error ? cannot('write', path, error) : undefined;
    try {
      if (isClosing) closeNow();
    } catch (closing) {
      failure ??= closing as RecordingError;
    }
    done(failure);
  };

  const closeNow = (): void => {
    if (isNew) removeIfEmpty(path, fd);
    try {
      trying(() => disk.closeSync(fd));
    } finally {
      freed();
    }
  };

  const close = (free: () => void = noop): void => {
    // A second call must not release what another recorder may have claimed by now.
    if (isClosing) return;
    flight = undefined;
    isClosing = true;
    if (written > 0) free();
    else freed = free;
    if (!isBusy) closeNow();
  };

  return {
    write: (lines, done) => {
      isBusy = true;
      flight = lines;
      const go = (): void =>
        disk.write(fd, lines.bytes, lines.done, lines.length - lines.done, written, (error, bytes) => {
          // Nobody waits for it any more.
          if (flight !== lines) return arrive(undefined, done);
          if (error) return arrive(error, done);
          try {
            land(lines, bytes);
          } catch (cause) {
            return arrive(cause, done);
          }
          if (lines.done < lines.length) go();
          else arrive(undefined, done);
        });
      go();
    },
    writeNow: (lines) =>
      trying(() => {
        const again = flight;
        flight = undefined;
        if (again !== undefined) writeSync(again);
        writeSync(lines);
      }),
    check: () =>
      trying(() => {
        const { size, nlink } = disk.fstatSync(fd);
        // A write that is under way may have written already.
        if (!isBusy && size !== written) throw changed(path);
        if (nlink === 0)
          throw new RecordingError(`Cannot write the recording ${path}: it was removed meanwhile.`, { path });
      }),
    close,
  };
};

const changed = (path: string): RecordingError =>
  new RecordingError(
    `Cannot write the recording ${path}: somebody else has changed it meanwhile. Let one process record to a path, and move or cut a recording when none does.`,
    { path },
  );
