import type * as fs from 'node:fs';
import { noop } from 'rxjs';
import { removeIfEmpty } from './file-checks.js';
import { type LineBuffer, newline } from './line-buffer.js';
import { RecordingError, toRecordingError } from './recording-error.js';

/** A test may pass a fake disk. */
export type Disk = Pick<typeof fs, 'openSync' | 'closeSync' | 'write' | 'writeSync' | 'fstatSync' | 'readSync'>;

/** Writes one open file of a recording. All methods but `write` throw a RecordingError when the disk fails. */
export interface FileWriter {
  /**
   * Appends lines asynchronously, one call at a time. `done` is called once, when the disk has finished: the lines were
   * written, `writeNow` wrote them first, `close` discarded them, or the disk failed.
   */
  write(lines: LineBuffer, done: (error?: RecordingError) => void): void;
  /** Writes synchronously: first the lines of a `write` in progress, then these lines. */
  writeNow(lines: LineBuffer): void;
  /** Throws a RecordingError when another program has truncated, extended or removed the file. */
  check(): void;
  /**
   * Closes the file when the disk has finished, and discards lines that are not written. Removes a new file that is
   * still empty. `release` is called once, when another recorder may use the recording: for an empty file after it is
   * closed.
   */
  close(release?: () => void): void;
}

/**
 * Creates a writer of an open file. Each write names its position, so the same bytes can be written twice: `writeNow`
 * writes all bytes that are not confirmed, even if the asynchronous write has already stored some of them.
 *
 * @param isNew - whether `close` removes a file that is still empty; `false` for the first file, which the claim
 *   removes
 */
export const createFileWriter = (fd: number, path: string, length: number, disk: Disk, isNew: boolean): FileWriter => {
  let position = length;
  /** Where the last write began: the byte before it ends a line. */
  let startedAt = length;
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
    if (bytes === 0) throw new RecordingError(`Can't write the recording ${path}: the disk wrote 0 bytes.`, { path });
    lines.written += bytes;
    position += bytes;
  };

  const writeSync = (lines: LineBuffer): void => {
    while (lines.written < lines.length)
      confirm(lines, disk.writeSync(fd, lines.bytes, lines.written, lines.length - lines.written, position));
  };

  // A file that was truncated just before a write has its old size after it, but no newline before that write.
  const hasHole = (): boolean => {
    if (startedAt === 0) return false;
    const byte = Buffer.alloc(1);
    return disk.readSync(fd, byte, 0, 1, startedAt - 1) !== 1 || byte[0] !== newline;
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
      startedAt = position;
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
        if (unconfirmed === undefined) startedAt = position;
        else writeSync(unconfirmed);
        writeSync(lines);
      }),
    check: () =>
      wrapErrors(() => {
        const stats = disk.fstatSync(fd);
        // A device such as `/dev/null` has no size.
        if (!stats.isFile()) return;
        const { size, nlink } = stats;
        // A write in progress may have stored bytes that are not confirmed yet.
        const unconfirmed = inFlight === undefined ? 0 : inFlight.length - inFlight.written;
        if (size < position || size > position + unconfirmed || hasHole()) throw changedError(path);
        if (nlink === 0)
          throw new RecordingError(`Can't write the recording ${path}: the file was removed during the recording.`, {
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
    `Can't write the recording ${path}: another program changed the file during the recording. Record to a path from one process only, and move or truncate a recording only after it has ended.`,
    { path },
  );
