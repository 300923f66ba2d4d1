/**
 * Reports a recording that cannot be written or read. The message names the file, the problem and what to do.
 *
 * The message never contains a payload. A failure of the file system is the `cause`.
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
  /** The file with the problem. */
  readonly path: string;
  /** The byte in that file at which the line with the problem begins, if the problem is a line. */
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

const systemErrors: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EEXIST: 'the file already exists',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the disk is read-only',
  EISDIR: 'the path is a directory',
  ENOTDIR: "a part of the path isn't a directory",
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file is larger than this operating system allows',
  ENAMETOOLONG: 'the name or the path is too long',
  ELOOP: 'the symbolic links form a loop',
  EMFILE: 'too many files are open in this process',
};

/** Converts an error of the file system; returns a RecordingError unchanged. */
export const toRecordingError = (action: 'write' | 'read', path: string, cause: unknown): RecordingError => {
  if (cause instanceof RecordingError) return cause;
  const { code = '', message } = cause as NodeJS.ErrnoException;
  return new RecordingError(`Can't ${action} the recording ${path}: ${systemErrors[code] ?? message}.`, {
    path,
    cause,
  });
};
