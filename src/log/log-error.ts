import type { FailureCode, Meaning } from '../protocol/failures/meanings.js';

/**
 * What is wrong with a log: another writer has it, another process has this consumer, a later writer has taken over, a
 * line is damaged, the disk can't be written, or the log no longer has what a reader asked for.
 */
export type LogErrorCode =
  'log-in-use' | 'consumer-in-use' | 'log-fenced' | 'log-corrupt' | 'log-write-failed' | 'log-behind';

/**
 * Reports a log that can't be written or read. The message names the file, the problem and what to do.
 *
 * It never contains a payload. A failure of the file system is the `cause`.
 */
export class LogError extends Error {
  override readonly name = 'LogError';
  readonly code: LogErrorCode;
  /** The file or folder with the problem. */
  readonly path: string;
  /** The byte in that file at which the line with the problem begins, if the problem is a line. */
  declare readonly lineAt?: number;

  constructor(code: LogErrorCode, message: string, { path, lineAt, cause }: LogErrorFields) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.path = path;
    if (lineAt !== undefined) this.lineAt = lineAt;
  }
}

/** The fields of a {@link LogError}. */
export interface LogErrorFields {
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
  EISDIR: 'the path is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file is larger than this operating system allows',
  ENAMETOOLONG: 'the name or the path is too long',
  EMFILE: 'too many files are open in this process',
  EIO: 'the disk reported an error',
};

/** Converts an error of the file system; returns a LogError unchanged. */
export const toLogError = (action: 'write' | 'read', path: string, cause: unknown): LogError => {
  if (cause instanceof LogError) return cause;
  const { code = '', message } = cause as NodeJS.ErrnoException;
  const reason = systemErrors[code] ?? message;
  return action === 'write'
    ? new LogError('log-write-failed', `Cannot write the log ${path}: ${reason}.`, { path, cause })
    : new LogError('log-corrupt', `Cannot read the log ${path}: ${reason}.`, { path, cause });
};

const gap = (code: string, meaning: string, advice: string): Meaning => ({
  stage: 'stream',
  code: code as FailureCode,
  verdict: 'backoff',
  meaning,
  advice,
});

/** The failures of the gaps and events that a log adds to those of the feed. */
export const logFailures = {
  paused: gap(
    'log-paused',
    'No process wrote the log.',
    'Nothing to do: the frames of that time are not in the log. To lose fewer, start the next writer sooner.',
  ),
  writeFailed: gap(
    'log-write-failed',
    'The disk of the log was full or failed, so frames were not written.',
    'Free space, or lower `maxBytes` of the log.',
  ),
  behind: gap(
    'log-behind',
    'The log no longer has these records.',
    'If a consumer is too slow, keep more with `maxAgeMs` and `maxBytes`, or make it faster.',
  ),
  damaged: gap(
    'log-damaged',
    'Lines of the log are damaged.',
    'Check the disk. `rx-trade-feed log verify` names the lines.',
  ),
  writerGone: gap(
    'log-writer-gone',
    'The process that writes the log has ended or does not respond.',
    'Start it again, or look at its log.',
  ),
};
