import { RecordingError, TradeFeedError } from '../index.js';
import { ExitCode, exitCodes } from './exit-code.js';

/** A failure with a message for the user. It ends the command with its exit code and is printed without a stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}

/** Creates the failure for wrong arguments or a wrong environment. */
export const usageError = (message: string): CliError => new CliError(ExitCode.usage, message);

const systemErrors: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'the path is a directory',
  ENOSPC: 'no space is left',
  EADDRINUSE: 'the port is in use',
};

/** Creates the failure for a file, a port or an output of this machine. */
export const localError = (what: string, cause: unknown, hint = ''): CliError => {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new CliError(ExitCode.local, `${what}: ${systemErrors[code ?? ''] ?? message}.${hint && ` ${hint}`}`, cause);
};

/** Returns the exit code for an error. */
export const exitCodeOf = (error: unknown): ExitCode => {
  if (error instanceof TradeFeedError) return exitCodes[error.code] ?? ExitCode.unexpected;
  if (error instanceof RecordingError) return ExitCode.local;
  return error instanceof CliError ? error.exitCode : ExitCode.unexpected;
};
