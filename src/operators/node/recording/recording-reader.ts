import { constants } from 'node:buffer';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { noop } from 'rxjs';
import { cannot, RecordingError } from './recording-error.js';
import { carriageReturn, fileOf, newline } from './recording-path.js';

/** Lines that were read, whole ones. They are overwritten by the next read. */
export interface RecordedLines {
  readonly bytes: Buffer;
  readonly path: string;
  /** Where they begin in that file. */
  readonly fileOffset: number;
  /** Where they begin in the recording. */
  readonly offset: number;
}

/** Reads a recording, piece by piece. */
export interface RecordingReader {
  /** The length of all files of the recording when it was opened, in bytes. */
  readonly totalBytes: number;
  /** How many bytes follow the last newline, once `read` has found the end: a line that a crash has torn. */
  readonly tornBytes: number;
  /** Gives the next lines; nothing at the end, whether or not a torn line is left there. */
  read(): Promise<RecordedLines | undefined>;
  /** Closes the file. */
  unsubscribe(): void;
}

/** How much is read at a time, in bytes. */
const pieceBytes = 256 * 1024;
/** A longer line cannot be made a text, in bytes. */
const longestLine = constants.MAX_STRING_LENGTH;

/**
 * Makes a reader of a recording, of all its files. Holds one piece of it, or one line if that is longer.
 *
 * @param offset - where to begin, counted over all files: 0, or right behind a line
 * @param piece - how much is read at a time, in bytes
 * @param longest - how long a line may be, in bytes
 */
export const createRecordingReader = (
  path: string,
  offset: number,
  piece = pieceBytes,
  longest = longestLine,
): RecordingReader => {
  let buffer = Buffer.allocUnsafe(piece);
  // What was read and not given yet is in front, behind what was given last.
  let [given, length] = [0, 0];
  let handle: FileHandle | undefined;
  let next: FileHandle | undefined;
  let number = 0;
  // Where the file begins in the recording, and where the buffer begins in the file.
  let [fileStart, position] = [0, 0];
  let totalBytes = 0;
  let isClosed = false;

  const begin = async (): Promise<void> => {
    const sizes = await sizesOf(path);
    totalBytes = sizes.reduce((sum, size) => sum + size, 0);
    if (offset > totalBytes)
      throw new RecordingError(`There is no offset ${offset} in the recording ${path}: it has ${totalBytes} bytes.`, {
        path,
      });
    let [first, start] = [0, 0];
    // The end of a file is its own, not the beginning of the next one.
    while (start + (sizes[first] ?? 0) < offset) start += sizes[first++] ?? 0;
    fileStart = start;
    handle = await opened(first);
    number = first;
    position = offset - start;
    // What a crash has torn at the end of a file, before the next one, can be left out.
    const isBetween = position === sizes[first] && first < sizes.length - 1;
    if (position > 0 && !isBetween) await checkBoundary(position - 1);
  };

  const opened = async (number: number): Promise<FileHandle> => {
    const file = fileOf(path, number);
    const handle = await open(file).catch((cause: unknown) => {
      throw cannot('read', file, cause);
    });
    if (isClosed) await handle.close();
    return handle;
  };

  const checkBoundary = async (at: number): Promise<void> => {
    const { bytesRead, buffer: byte } = await (handle as FileHandle).read(Buffer.alloc(1), 0, 1, at);
    if (bytesRead === 1 && byte[0] === newline) return;
    throw new RecordingError(
      `The offset ${offset} is inside a line of the recording ${path}. Give one that a replay has told, or 0.`,
      { path },
    );
  };

  /** Goes on behind the end of a file: with what was added to it meanwhile, or else with the next one, if there is one. */
  const advance = async (): Promise<boolean> => {
    // Nothing is added to a file any more once the next one is there: its end is the last one when it was met after that.
    if (next === undefined) {
      try {
        next = await opened(number + 1);
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
        `The file ${lastPath} ends inside a line, at byte ${position}, but the recording goes on in ${fileOf(path, number)}. To leave it out, go on from offset ${fileStart + position + length}.`,
        { path: lastPath, lineAt: position },
      );
    fileStart += position;
    position = 0;
    return true;
  };

  const makeRoom = (): void => {
    if (given > 0) buffer.copyWithin(0, given, length);
    else if (length === buffer.length) {
      if (length >= longest)
        throw new RecordingError(
          `The line at byte ${position} of ${fileOf(path, number)} is too long: is it a recording?`,
          { path: fileOf(path, number), lineAt: position },
        );
      const larger = Buffer.allocUnsafe(Math.min(length * 2, longest));
      buffer.copy(larger, 0, 0, length);
      buffer = larger;
    }
    position += given;
    length -= given;
    given = 0;
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
      // A large file of another kind would be read to its end, in search of a newline.
      if (position + length === 0 && !startsOfLine.includes(buffer[0] as number))
        throw noRecording(fileOf(path, number));
      const end = buffer.subarray(length, length + bytesRead).lastIndexOf(newline) + 1;
      if (end > 0) given = length + end;
      length += bytesRead;
      if (given > 0) {
        const bytes = buffer.subarray(0, given);
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
      return length - given;
    },
    read: () =>
      read().catch((cause: unknown) => {
        throw cannot('read', fileOf(path, number), cause);
      }),
    unsubscribe: () => {
      isClosed = true;
      // It waits for a read that is under way. What was read is nobody's any more, nor is a failure.
      handle?.close().catch(noop);
      next?.close().catch(noop);
    },
  };
};

/** An opening brace, or an empty line. */
const startsOfLine = [0x7b, newline, carriageReturn];

const noRecording = (path: string): RecordingError =>
  new RecordingError(
    `The file ${path} is no recording: it does not begin with a line that recordTo or \`rx-trade-feed listen --json\` writes.`,
    { path, lineAt: 0 },
  );

const sizesOf = async (path: string): Promise<readonly number[]> => {
  const sizes: number[] = [];
  for (;;) {
    const file = fileOf(path, sizes.length);
    try {
      const stats = await stat(file);
      if (!stats.isFile()) throw Object.assign(new Error('it is no file'), stats.isDirectory() && { code: 'EISDIR' });
      sizes.push(stats.size);
    } catch (error) {
      if (sizes.length > 0 && (error as NodeJS.ErrnoException).code === 'ENOENT') return sizes;
      throw cannot('read', file, error);
    }
  }
};
