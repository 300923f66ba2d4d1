import type * as fs from 'node:fs';
import { noop } from 'rxjs';
import { removeIfEmpty } from './file-checks.js';
import type { LineBuffer } from './line-buffer.js';
import { RecordingError, toRecordingError } from './recording-error.js';

/** The functions of `node:fs` that a writer uses. A test may pass a fake disk. */
export type Disk = Pick<typeof fs, 'openSync' | 'closeSync' | 'write' | 'writeSync' | 'fstatSync'>;

/** Writes one open file of a recording. All methods but `write` throw a RecordingError when the disk fails. */
export interface FileWriter {
  /**
   * Appends lines asynchronously. Only one call may be in progress.
   *
   * @param done - called once, when the disk has finished: the lines were written, `writeNow` wrote them first, `close` discarded them, or
   * the disk failed
   */
  write(lines: LineBuffer, done: (error?: RecordingError) => void): void;
  /** Writes synchronously: first the lines of a `write` in progress, then these lines. */
  writeNow(lines: LineBuffer): void;
  /**
   * Checks that no other program has changed the file.
   *
   * @throws RecordingError when the file was truncated, extended or removed
   */
  check(): void;
  /**
   * Closes the file when the disk has finished, and discards lines that are not written. Removes a new file that is still empty.
   *
   * @param release - called once, when another recorder may use the recording: immediately, or for an empty file after it is closed,
   * because the file may be removed until then
   */
  close(release?: () => void): void;
}

/**
 * Creates a writer of an open file.
 *
 * Each write names its position in the file, so the same bytes can be written twice. `writeNow` relies on this: it writes all bytes that are
 * not confirmed, even if the asynchronous write has already stored some of them.
 *
 * @param length - the current length of the file, in bytes
 * @param isNew - whether `close` removes the file if it is still empty; `false` for the first file, which the claim removes
 */
export const createFileWriter = (fd: number, path: string, length: number, disk: Disk, isNew: boolean): FileWriter => {
  let position = length;
  /** The lines of the write in progress, until they are written or discarded. */
  let inFlight: LineBuffer | undefined;
  let isWriting = false;
  let isClosing = false;
  let onClosed = noop;

  const wrapErrors = (action: () => void): void => {
    try {
      action();
    } catch (cause) {
      throw toRecordingError('write', path, cause);
    }
  };

  const confirm = (lines: LineBuffer, bytes: number): void => {
    if (bytes === 0) throw new RecordingError(`Cannot write the recording ${path}: the disk wrote 0 bytes.`, { path });
    lines.written += bytes;
    position += bytes;
  };

  const writeSync = (lines: LineBuffer): void => {
    while (lines.written < lines.length)
      confirm(lines, disk.writeSync(fd, lines.bytes, lines.written, lines.length - lines.written, position));
  };

  const finish = (error: unknown, done: (error?: RecordingError) => void): void => {
    inFlight = undefined;
    isWriting = false;
    let failure = error ? toRecordingError('write', path, error) : undefined;
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
      wrapErrors(() => disk.closeSync(fd));
    } finally {
      onClosed();
    }
  };

  return {
    write: (lines, done) => {
      isWriting = true;
      inFlight = lines;
      const writeRest = (): void =>
        disk.write(fd, lines.bytes, lines.written, lines.length - lines.written, position, (error, bytes) => {
          // `writeNow` has written these lines, or `close` has discarded them.
          if (inFlight !== lines) return finish(undefined, done);
          if (error) return finish(error, done);
          try {
            confirm(lines, bytes);
          } catch (cause) {
            return finish(cause, done);
          }
          if (lines.written < lines.length) writeRest();
          else finish(undefined, done);
        });
      writeRest();
    },
    writeNow: (lines) =>
      wrapErrors(() => {
        const unconfirmed = inFlight;
        inFlight = undefined;
        if (unconfirmed !== undefined) writeSync(unconfirmed);
        writeSync(lines);
      }),
    check: () =>
      wrapErrors(() => {
        const { size, nlink } = disk.fstatSync(fd);
        // A write in progress may have stored bytes that are not confirmed yet.
        if (!isWriting && size !== position) throw changedError(path);
        if (nlink === 0)
          throw new RecordingError(`Cannot write the recording ${path}: the file was removed during the recording.`, {
            path,
          });
      }),
    close: (release = noop) => {
      // A second call must not release a claim that another recorder may have by now.
      if (isClosing) return;
      inFlight = undefined;
      isClosing = true;
      if (position > 0) release();
      else onClosed = release;
      if (!isWriting) closeNow();
    },
  };
};

const changedError = (path: string): RecordingError =>
  new RecordingError(
    `Cannot write the recording ${path}: another program changed the file during the recording. Record to a path from one process only, and move or truncate a recording only after it has ended.`,
    { path },
  );
