/**
 * A recording that cannot be written or read: the message says which file, what is wrong and what to do.
 *
 * It shows no payload. A failure of the file system is its `cause`.
 *
 * @example
 * ```ts
 * import { RecordingError, replay$ } from 'rx-trade-feed';
 *
 * replay$('missing.ndjson').subscribe({
 *   error: (error) => {
 *     if (error instanceof RecordingError) console.log(`${error.path}: ${error.message}`);
 *   },
 * });
 * ```
 */
export class RecordingError extends Error {
  override readonly name = 'RecordingError';
  /** The file that it is about. */
  readonly path: string;
  /** The byte in that file at which the line in question begins, when it is about a line. */
  declare readonly lineAt?: number;

  constructor(message: string, { path, lineAt, cause }: RecordingErrorFields) {
    super(message, cause === undefined ? undefined : { cause });
    this.path = path;
    if (lineAt !== undefined) this.lineAt = lineAt;
  }
}

/** The fields of a {@link RecordingError}. */
export interface RecordingErrorFields {
  readonly path: string;
  readonly lineAt?: number | undefined;
  readonly cause?: unknown;
}

const systemWords: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EEXIST: 'it is there already',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the disk is read-only',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is no directory',
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'it is larger than this system allows',
  ENAMETOOLONG: 'its name or its path is too long',
  ELOOP: 'its symbolic links lead in a circle',
  EMFILE: 'too many files are open in this process',
};

/** Makes the error for what the file system refused, in plain words. */
export const cannot = (what: 'write' | 'read', path: string, cause: unknown): RecordingError => {
  if (cause instanceof RecordingError) return cause;
  const { code = '', message } = cause as NodeJS.ErrnoException;
  return new RecordingError(`Cannot ${what} the recording ${path}: ${systemWords[code] ?? message}.`, { path, cause });
};
