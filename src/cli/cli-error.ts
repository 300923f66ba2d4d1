import { RecordingError, TradeFeedError } from '../index.js';
import { ExitCode, exitCodes } from './exit-code.js';

/** A failure that is told in plain words, without a stack, and ends the command with its exit code. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}

/** Makes the failure for arguments or an environment that cannot be used. */
export const usageError = (message: string): CliError => new CliError(ExitCode.usage, message);

const systemWords: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'the path is a directory',
  ENOSPC: 'no space is left',
  EADDRINUSE: 'the port is in use',
};

/** Makes the failure for something of this machine: a file, a port, an output. */
export const localError = (what: string, cause: unknown, hint = ''): CliError => {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new CliError(ExitCode.local, `${what}: ${systemWords[code ?? ''] ?? message}.${hint && ` ${hint}`}`, cause);
};

/** Gives the exit code for whatever ended the command. */
export const exitCodeOf = (error: unknown): ExitCode => {
  if (error instanceof TradeFeedError) return exitCodes[error.code] ?? ExitCode.unexpected;
  if (error instanceof RecordingError) return ExitCode.local;
  return error instanceof CliError ? error.exitCode : ExitCode.unexpected;
};
