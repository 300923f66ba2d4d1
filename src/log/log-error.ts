import { failurePage, row } from '../protocol/failures/meanings.js';

/**
 * The code of a {@link LogError}: another writer has the log, another process runs this consumer, a later writer has
 * taken over, there is no log, a part of it is damaged or can't be read, the disk or the server refuses records, or what a
 * consumer needs next is gone.
 */
export type LogErrorCode =
  'log-in-use' | 'consumer-in-use' | 'log-fenced' | 'log-missing' | 'log-corrupt' | 'log-write-failed' | 'log-behind';

/**
 * Reports a log that can't be written or read. The message names the file or the stream, the problem and
 * what to do.
 *
 * It never contains a payload. If the file system failed, its error is the `cause`.
 *
 * @example
 * ```ts
 * import { feedLog, LogError } from 'rx-trade-feed/log';
 *
 * feedLog('./market')
 *   .read$({ follow: false })
 *   .subscribe({
 *     error: (error) => {
 *       if (error instanceof LogError)
 *         console.error(`${error.code}: ${error.path}`);
 *     },
 *   });
 * ```
 */
export class LogError extends Error {
  override readonly name = 'LogError';
  /** Branch on this, never on the message. */
  readonly code: LogErrorCode;
  /** The file or folder with the problem; of a log on a server, its stream or the key of a cursor. */
  readonly path: string;
  /** If the problem is a line: the byte in that file at which it begins. */
  declare readonly lineAt?: number;

  /** @param problem - what happened, in a sentence; the advice and the page follow it */
  constructor(code: LogErrorCode, problem: string, fields: LogErrorFields) {
    const { path, lineAt, cause, advice = logErrors[code].advice } = fields;
    super(`${problem} ${advice} See ${failurePage(code)}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.path = path;
    if (lineAt !== undefined) this.lineAt = lineAt;
  }
}

export const inUse = (path: string): LogError =>
  new LogError('log-in-use', `The log ${path} has a writer already.`, { path });

export const consumerInUse = (consumer: string, log: string, path = log): LogError =>
  new LogError('consumer-in-use', `The consumer ${consumer} of the log ${log} runs already.`, { path });

/** The failures in the gaps and events that a log adds to the feed's. */
export const logMeanings = {
  paused: row({ stage: 'stream' }, 'log-paused', 'backoff', [
    'No process wrote the log.',
    'Nothing to do: the frames of that time are not in the log. To lose fewer, start the next writer sooner.',
  ]),
  writeFailed: row({ stage: 'stream' }, 'log-write-failed', 'backoff', [
    'The disk or the server of the log was full or failed, so frames were not written.',
    'Free space, or lower `maxBytes` of the log.',
  ]),
  behind: row({ stage: 'stream' }, 'log-behind', 'backoff', [
    'The log no longer has these records.',
    'If a reader is too slow, keep more with `maxAgeMs` and `maxBytes`, or make it faster.',
  ]),
  damaged: row({ stage: 'stream' }, 'log-damaged', 'backoff', [
    'Lines of the log are damaged.',
    'Check the disk; `rx-trade-feed log status --verify` names the lines.',
  ]),
  writerGone: row({ stage: 'stream' }, 'log-writer-gone', 'backoff', [
    'The process that writes the log has ended, or does not respond.',
    'Start it again, or look at its log. Readers continue when it writes again.',
  ]),
};

/** What each code means. */
export const logErrors = {
  'log-in-use': row({}, 'log-in-use', 'stop', [
    'Another writer has the log, in this process or another one.',
    'Stop it, or use another folder, or another `name` on a server: a log has one writer.',
  ]),
  'consumer-in-use': row({}, 'consumer-in-use', 'stop', [
    'This consumer of the log runs already, in this process or another one.',
    'Stop it, or use another name.',
  ]),
  'log-fenced': row({}, 'log-fenced', 'stop', [
    'Another writer has taken the log over.',
    "Use one writer for each log, and don't remove or replace the files of a folder while it's written. On a server, the newest writer goes on.",
  ]),
  'log-missing': row({}, 'log-missing', 'stop', [
    'There is no log with this path.',
    'Check the path. If nothing has written this log yet, write it first.',
  ]),
  'log-corrupt': row({}, 'log-corrupt', 'stop', [
    "A part of the log can't be read, or is damaged.",
    "Check the path and the disk, or the stream on its server; `rx-trade-feed log status --verify` names damaged lines. To read on after them, use `onDamage: 'gap'`.",
  ]),
  'log-write-failed': row({}, 'log-write-failed', 'stop', [
    "The log can't be written.",
    'Correct this and subscribe again. To go on without the lost frames, set `onError` to a function.',
  ]),
  'log-behind': row({}, 'log-behind', 'stop', [
    'The log no longer has the next records of this consumer.',
    "Repair what is missing, then go on after it with `onLoss: 'gap'`. Keep more with `maxAgeMs` and `maxBytes`.",
  ]),
};

/** The fields of a {@link LogError}. */
export interface LogErrorFields {
  readonly path: string;
  readonly lineAt?: number | undefined;
  readonly cause?: unknown;
  /** @internal What to do, if the advice of the code doesn't help: by default `log-corrupt` is about damaged lines. */
  readonly advice?: string | undefined;
}

const systemErrors: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EEXIST: 'the path is a file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the disk is read-only',
  EISDIR: 'the path is a folder',
  ENOTDIR: "a part of the path isn't a folder",
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
  const problem = `Can't ${action} the log ${path}: ${systemErrors[code] ?? message}.`;
  if (action === 'write') return new LogError('log-write-failed', problem, { path, cause });
  return new LogError(code === 'ENOENT' ? 'log-missing' : 'log-corrupt', problem, { path, cause });
};
