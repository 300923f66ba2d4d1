import type { FailureCode } from '../protocol/failures/meanings.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { printable } from '../protocol/printable.js';
import { counted } from './text.js';

/** Every exit code, with its meaning in all commands. */
const exits = {
  ok: [0, 'done; or you ended a command that has no other end, or its reader has exited'],
  failed: [1, "a file, a port, the output or this version of Node can't be used; or this program has a bug"],
  usage: [2, 'wrong arguments or settings'],
  access: [3, "no access: the API key isn't valid, or the account is inactive or not entitled"],
  replaced: [4, 'another client connected with this account (4001)'],
  wrong: [
    5,
    "not as it must be: the service or a proxy doesn't follow the contract, its certificate isn't trusted, a log is " +
      'damaged, or a cluster has nothing to hand over or to resume',
  ],
  unavailable: [
    6,
    "not available in time: the service or the engine of a cluster didn't answer or refused, --retries was used up, " +
      'or --duration or --frame-within passed first',
  ],
  interrupted: [130, 'ended by Ctrl-C, SIGTERM or SIGHUP before it was done'],
} as const satisfies Readonly<Record<string, readonly [code: number, meaning: string]>>;

type ExitCodes = { readonly [Name in keyof typeof exits]: (typeof exits)[Name][0] };
export type ExitCode = ExitCodes[keyof ExitCodes];
export const ExitCode = Object.fromEntries(Object.entries(exits).map(([name, [code]]) => [name, code])) as ExitCodes;

export const exitCodeRows: readonly (readonly [code: ExitCode, meaning: string])[] = Object.values(exits);

/** The exit codes of failures. Any other failure that stops a feed means that the service isn't as it must be. */
const failureExits: Readonly<Partial<Record<FailureCode, ExitCode>>> = {
  'invalid-options': ExitCode.usage,
  'api-key-unavailable': ExitCode.access,
  'invalid-api-key': ExitCode.access,
  'not-entitled': ExitCode.access,
  'access-expired': ExitCode.access,
  'access-revoked': ExitCode.access,
  'connection-replaced': ExitCode.replaced,
  'invalid-frame': ExitCode.wrong,
  'retries-exhausted': ExitCode.unavailable,
  'engine-refused': ExitCode.unavailable,
  'engine-closed': ExitCode.unavailable,
};

export const exitCodeOf = (error: unknown): ExitCode => {
  if (error instanceof TradeFeedError)
    return failureExits[error.code] ?? (error.verdict === 'stop' ? ExitCode.wrong : ExitCode.unavailable);
  return error instanceof CliError ? error.exitCode : ExitCode.failed;
};

/** A failure with a message for the user: ends the command with its exit code and is printed without a stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

export const usageError = (message: string): CliError => new CliError(ExitCode.usage, message);

export const localError = (what: string, cause: unknown, hint = ''): CliError => {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new CliError(ExitCode.failed, `${what}: ${systemErrors[code ?? ''] ?? message}.${hint && ` ${hint}`}`, cause);
};

const systemErrors: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'the path is a directory',
  ENOSPC: 'no space is left',
  EFBIG: 'the file may not grow any more',
  EADDRINUSE: 'the port is in use',
  EPIPE: 'its reader has exited',
  // What a pipe of Node's says if its reader leaves data unread.
  ECONNRESET: 'its reader has exited',
};

type CommandTexts = Readonly<Partial<Record<'summary' | 'advice', string>>>;

/** Texts that replace the library's advice about the code of an app. */
const commandTexts: Readonly<Partial<Record<FailureCode, CommandTexts>>> = {
  'invalid-options': { summary: "The settings aren't valid.", advice: 'See --help.' },
  'retries-exhausted': { advice: 'To allow more reconnects, raise --retries.' },
  'invalid-api-key': { advice: 'Set TRADE_FEED_API_KEY to a valid key, or use --key-file.' },
  'api-key-unavailable': { summary: "The API key can't be read.", advice: 'Check TRADE_FEED_API_KEY or --key-file.' },
  'untrusted-certificate': {
    advice:
      'If the service is private, pass its CA with --ca FILE. Otherwise check which server answers at this address.',
  },
  'connection-replaced': { advice: 'Find the other client. Reconnecting would only kick it out.' },
  'invalid-frame': { advice: 'Check whether a proxy changes the bytes.' },
  'client-too-slow': { advice: 'Stop other programs that use the CPU, or use a faster machine.' },
};

/** What users of the command call the library's options. */
const settingNames: Readonly<Record<string, string>> = {
  baseUrl: 'the base URL',
  apiKey: 'the API key',
  maxAttempts: '--retries',
  'backoff.maxAttempts': '--retries',
  maxFrameBytes: '16 MiB',
};

const withSettings = (text: string): string =>
  text.replaceAll(/`([\w.]+)`/g, (quoted, option: string) => settingNames[option] ?? quoted);

export const whatHappened = ({ code, summary, detail, option }: TradeFeedError): string => {
  // These details name options of the library. That of the first begins with its limit: `maxAttempts is 3; …`.
  if (code === 'retries-exhausted') {
    const [limit] = /\d+/.exec(detail ?? '') ?? [];
    return `The feed gave up after ${counted(Number(limit), 'reconnect')} (--retries) without a stable connection.`;
  }
  if (code === 'ticket-endpoint-without-tls') return withSettings(summary);
  const text = commandTexts[code]?.summary ?? withSettings(summary);
  const observed = [option && (settingNames[option] ?? option), detail].filter((part) => part !== undefined).join(' ');
  return printable(observed === '' ? text : `${text.replace(/\.$/, '')} (${observed}).`);
};

export const adviceFor = ({ code, advice, certificate }: TradeFeedError): string =>
  (certificate === undefined ? commandTexts[code]?.advice : undefined) ?? withSettings(advice);

/** Says what happened, what had failed before, and what to do. If the feed gave up, the last failure is the cause. */
export const failureWords = (failure: TradeFeedError): string => {
  const { code, previous, cause } = failure;
  const before = previous && previous.code !== code ? [`Before that: ${whatHappened(previous)}`] : [];
  const last =
    cause instanceof TradeFeedError
      ? [`The last failure was ${cause.code}: ${whatHappened(cause)} ${adviceFor(cause)}`]
      : before;
  return [whatHappened(failure), ...last, adviceFor(failure)].join(' ');
};
