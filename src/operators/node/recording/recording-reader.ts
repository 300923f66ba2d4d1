import { constants } from 'node:buffer';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { noop } from 'rxjs';
import { carriageReturn, newline } from './line-buffer.js';
import { RecordingError, toRecordingError } from './recording-error.js';
import { fileOf } from './recording-path.js';

/** Complete lines of a file. The next read overwrites the bytes. */
export interface RecordedLines {
  readonly bytes: Buffer;
  readonly path: string;
  /** The position of the lines in that file. */
  readonly fileOffset: number;
  /** The position of the lines in the recording. */
  readonly offset: number;
}

export interface RecordingReader {
  /** The length of all files of the recording when it was opened, in bytes. */
  readonly totalBytes: number;
  /** The number of bytes after the last newline, once `read` has reached the end: a line that a crash has torn. */
  readonly tornBytes: number;
  /** Resolves with the next lines; with `undefined` at the end, with or without a torn line. */
  read(): Promise<RecordedLines | undefined>;
  unsubscribe(): void;
}

const defaultChunkBytes = 256 * 1024;
/** A longer line cannot be converted to a string, in bytes. */
const maxLineBytes = constants.MAX_STRING_LENGTH;

/**
 * Creates a reader of all files of a recording. It stores one chunk, or one line if that is longer.
 *
 * @param offset - where to begin, counted over all files: 0, or the end of a line
 */
export const createRecordingReader = (
  path: string,
  offset: number,
  chunkBytes = defaultChunkBytes,
  longest = maxLineBytes,
): RecordingReader => {
  let buffer = Buffer.allocUnsafe(chunkBytes);
  // The buffer contains the lines of the last result, up to `returned`, and the bytes after them, up to `length`.
  let [returned, length] = [0, 0];
  let handle: FileHandle | undefined;
  let next: FileHandle | undefined;
  let number = 0;
  // The position of the file in the recording, and of the buffer in the file.
  let [fileStart, position] = [0, 0];
  let totalBytes = 0;
  let isClosed = false;

  const begin = async (): Promise<void> => {
    const sizes = await sizesOf(path);
    totalBytes = sizes.reduce((sum, size) => sum + size, 0);
    if (offset > totalBytes)
      throw new RecordingError(
        `The offset ${offset} is after the end of the recording ${path}, which has ${totalBytes} bytes. Use an offset that a replay reported, or 0.`,
        { path },
      );
    let [first, start] = [0, 0];
    // An offset at the end of a file is in that file, not at the beginning of the next one.
    while (start + (sizes[first] ?? 0) < offset) start += sizes[first++] ?? 0;
    fileStart = start;
    handle = await openFile(first);
    number = first;
    position = offset - start;
    // The end of a file that another file follows is allowed: this offset skips a line that a crash has torn there.
    const isBetweenFiles = position === sizes[first] && first < sizes.length - 1;
    if (position > 0 && !isBetweenFiles) await checkLineStart(position);
  };

  const openFile = async (number: number): Promise<FileHandle> => {
    const file = fileOf(path, number);
    const handle = await open(file).catch((cause: unknown) => {
      throw toRecordingError('read', file, cause);
    });
    if (isClosed) await handle.close();
    return handle;
  };

  const checkLineStart = async (at: number): Promise<void> => {
    const { bytesRead, buffer: byte } = await (handle as FileHandle).read(Buffer.alloc(1), 0, 1, at - 1);
    if (bytesRead === 1 && byte[0] === newline) return;
    throw new RecordingError(
      `The offset ${offset} is inside a line of the recording ${path}. Use an offset that a replay reported, or 0.`,
      { path },
    );
  };

  /** Continues with bytes that were appended in the meantime, or with the next file; `false` at the end. */
  const advance = async (): Promise<boolean> => {
    // A file does not grow once the next one exists: first open that one, and `read` looks for appended bytes.
    if (next === undefined) {
      try {
        next = await openFile(number + 1);
        return true;
      } catch (error) {
        if (((error as Error).cause as NodeJS.ErrnoException).code === 'ENOENT') return false;
        throw error;
      }
    }
    const [last, lastPath] = [handle, fileOf(path, number)];
    [handle, next] = [next, undefined];
    number += 1;
    await last?.close();
    if (length > 0)
      throw new RecordingError(
        `The file ${lastPath} ends inside a line, at byte ${position}, but the recording continues in ${fileOf(path, number)}. To skip that line, continue from offset ${fileStart + position + length}.`,
        { path: lastPath, lineAt: position },
      );
    fileStart += position;
    position = 0;
    return true;
  };

  /** Removes the returned lines from the buffer, or enlarges the buffer for a long line. */
  const makeRoom = (): void => {
    if (returned > 0) buffer.copyWithin(0, returned, length);
    else if (length === buffer.length) {
      if (length >= longest)
        throw new RecordingError(
          `The line at byte ${position} of ${fileOf(path, number)} is too long. Check that the file is a recording.`,
          { path: fileOf(path, number), lineAt: position },
        );
      const larger = Buffer.allocUnsafe(Math.min(length * 2, longest));
      buffer.copy(larger, 0, 0, length);
      buffer = larger;
    }
    position += returned;
    length -= returned;
    returned = 0;
  };

  const read = async (): Promise<RecordedLines | undefined> => {
    if (handle === undefined) await begin();
    while (!isClosed) {
      makeRoom();
      const { bytesRead } = await (handle as FileHandle).read(
        buffer,
        length,
        buffer.length - length,
        position + length,
      );
      if (bytesRead === 0) {
        if (await advance()) continue;
        return undefined;
      }
      // Without this check, a large file of another format would be read to its end in search of a newline.
      if (position + length === 0 && !lineStarts.includes(buffer[0] as number))
        throw notARecording(fileOf(path, number));
      const end = buffer.subarray(length, length + bytesRead).lastIndexOf(newline) + 1;
      if (end > 0) returned = length + end;
      length += bytesRead;
      if (returned > 0) {
        const bytes = buffer.subarray(0, returned);
        return { bytes, path: fileOf(path, number), fileOffset: position, offset: fileStart + position };
      }
    }
    return undefined;
  };

  return {
    get totalBytes() {
      return totalBytes;
    },
    get tornBytes() {
      return length - returned;
    },
    read: () =>
      read().catch((cause: unknown) => {
        throw toRecordingError('read', fileOf(path, number), cause);
      }),
    unsubscribe: () => {
      isClosed = true;
      // `close` waits for a read in progress. Nothing uses the result of that read, or a failure of it.
      handle?.close().catch(noop);
      next?.close().catch(noop);
    },
  };
};

/** The first byte of a line: an opening brace, or the end of an empty line. */
const lineStarts = [0x7b, newline, carriageReturn];

const notARecording = (path: string): RecordingError =>
  new RecordingError(
    `The file ${path} isn't a recording: its first line isn't one that recordTo or \`rx-trade-feed listen --json\` writes. Check the path.`,
    { path, lineAt: 0 },
  );

const sizesOf = async (path: string): Promise<readonly number[]> => {
  const sizes: number[] = [];
  for (;;) {
    const file = fileOf(path, sizes.length);
    try {
      const stats = await stat(file);
      if (!stats.isFile())
        throw Object.assign(new Error("the path isn't a file"), stats.isDirectory() && { code: 'EISDIR' });
      sizes.push(stats.size);
    } catch (error) {
      if (sizes.length > 0 && (error as NodeJS.ErrnoException).code === 'ENOENT') return sizes;
      throw toRecordingError('read', file, error);
    }
  }
};
