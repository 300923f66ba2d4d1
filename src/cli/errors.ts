import { LogError } from '../log/log-error.js';
import type { FailureCode } from '../protocol/failures/meanings.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { printable } from '../protocol/printable.js';

export const commandNames = ['demo', 'listen', 'record', 'replay', 'log', 'serve', 'cluster', 'doctor', 'top'] as const;
const connecting = ['demo', 'listen', 'record', 'doctor'] as const;
export type CommandName = (typeof commandNames)[number];

type Meaning = readonly [commands: readonly CommandName[], meaning: string];
type Exit<Code = number> = readonly [code: Code, failures: readonly FailureCode[], ...meanings: readonly Meaning[]];

const endOf = (bounds: string, more = ''): string =>
  `${bounds} reached, ${more}or Ctrl-C, SIGTERM or SIGHUP in a run without ${bounds.replace(' or ', ' and ')}`;

const endedBy = (signal: string): readonly Meaning[] => [
  [['demo'], `ended by ${signal} before --duration was reached`],
  [['listen', 'record'], `ended by ${signal} before --count or --duration was reached`],
  [['replay', 'log'], `ended by ${signal} before the end`],
  [['demo', 'listen', 'serve', 'top'], `ended by ${signal} before the reader of stdout had taken all output`],
];

/**
 * All exit codes, with the failures that end a command with them, and what they mean. Other failures mean that the
 * service or the engine wasn't available.
 */
const exits = {
  ok: [
    0,
    [],
    [['demo'], endOf('--duration', 'the reader of stdout has exited, ')],
    [['listen'], endOf('--count or --duration', 'the reader of stdout has exited, ')],
    [['record'], endOf('--count or --duration')],
    [['replay'], 'the end of the log or --count reached, the reader of stdout has exited, or Ctrl-C with --follow'],
    [['log'], 'success: verify found no damage'],
    [['serve'], 'ended by Ctrl-C, SIGTERM or SIGHUP'],
    [['cluster'], 'success'],
    [['doctor'], 'no check failed'],
    [['top'], 'ended by q, Ctrl-C, SIGTERM or SIGHUP, --duration reached, or the reader of stdout has exited'],
  ],
  unexpected: [1, [], [commandNames, 'an unexpected error: a bug in this program']],
  usage: [2, ['invalid-options'], [commandNames, 'wrong arguments or settings']],
  access: [
    3,
    ['api-key-unavailable', 'invalid-api-key', 'not-entitled', 'access-expired', 'access-revoked'],
    [connecting, "no access: the API key isn't valid, or the account is inactive or not entitled"],
  ],
  replaced: [4, ['connection-replaced'], [connecting, 'another client connected with this account (4001)']],
  refused: [
    5,
    [
      'invalid-ticket-request',
      'ticket-endpoint-without-tls',
      'ticket-request-rejected',
      'invalid-ticket',
      'handshake-rejected',
      'subprotocol-mismatch',
      'handshake-failed',
      'policy-violation',
      'invalid-frame',
    ],
    [connecting, "the service, or a proxy, doesn't follow the contract"],
    [['cluster'], "there is nothing to do: no owner, no other replica, or the cluster hasn't stopped"],
    [['log'], 'verify found damage'],
  ],
  certificate: [6, ['untrusted-certificate'], [connecting, "the server's certificate isn't trusted"]],
  unavailable: [
    7,
    [],
    [['demo', 'record'], "the service wasn't available, and --retries was used up"],
    [
      ['listen'],
      "the service wasn't available, and --retries was used up; or the engine of --cluster wasn't available",
    ],
    [['cluster'], "the engine wasn't available, or refused what the command needs"],
    [['doctor'], "the service isn't available"],
  ],
  local: [
    8,
    [],
    [commandNames.filter((name) => name !== 'doctor'), "a file, a port or the output can't be used"],
    [['doctor'], "a file, the output or this version of Node can't be used"],
  ],
  timeUp: [
    124,
    [],
    [['demo'], '--duration passed before a connection opened'],
    [['listen', 'record'], '--duration passed before --count frames arrived, or before a connection opened'],
    [['doctor'], 'no frame arrived within --frame-within'],
  ],
  SIGHUP: [129, [], ...endedBy('SIGHUP')],
  SIGINT: [130, [], ...endedBy('Ctrl-C')],
  SIGTERM: [143, [], ...endedBy('SIGTERM')],
} as const satisfies Readonly<Record<string, Exit>>;

type ExitCodes = { readonly [Name in keyof typeof exits]: (typeof exits)[Name][0] };
export type ExitCode = ExitCodes[keyof ExitCodes];
export const ExitCode = Object.fromEntries(Object.entries(exits).map(([name, [code]]) => [name, code])) as ExitCodes;

const allExits: readonly Exit<ExitCode>[] = Object.values(exits);

export const exitCodeRows = allExits.flatMap(([code, , ...meanings]) => meanings.map((row) => [code, ...row] as const));

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
  return new CliError(ExitCode.local, `${what}: ${systemErrors[code ?? ''] ?? message}.${hint && ` ${hint}`}`, cause);
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

export const exitCodeOf = (error: unknown): ExitCode => {
  if (error instanceof TradeFeedError)
    return allExits.find(([, failures]) => failures.includes(error.code))?.[0] ?? ExitCode.unavailable;
  if (error instanceof LogError) return ExitCode.local;
  return error instanceof CliError ? error.exitCode : ExitCode.unexpected;
};

interface CommandTexts {
  readonly summary?: string | ((detail: string | undefined) => string);
  /** Hides the detail, which names options of the library. */
  readonly detail?: false;
  readonly advice?: string;
}

/** Texts that replace the library's advice about the code of an app. */
const commandTexts: Readonly<Partial<Record<FailureCode, CommandTexts>>> = {
  'invalid-options': { summary: "The settings aren't valid.", advice: 'See --help.' },
  'retries-exhausted': {
    summary: (detail) => `The feed gave up after ${reconnectsIn(detail)} without a stable connection.`,
    detail: false,
    advice: 'To allow more reconnects, raise --retries.',
  },
  'invalid-api-key': { advice: 'Set TRADE_FEED_API_KEY to a valid key, or use --key-file.' },
  'api-key-unavailable': { summary: "The API key can't be read.", advice: 'Check TRADE_FEED_API_KEY or --key-file.' },
  'untrusted-certificate': {
    advice:
      'If the service is private, pass its CA with --ca FILE. Otherwise check which server answers at this address.',
  },
  'ticket-endpoint-without-tls': { detail: false },
  'connection-replaced': { advice: 'Find the other client. Reconnecting would only kick it out.' },
  'invalid-frame': { advice: 'Check whether a proxy changes the bytes.' },
  'client-too-slow': { advice: 'Stop other programs that use the CPU, or use a faster machine.' },
};

/** The detail of `retries-exhausted` begins with the limit: `maxAttempts is 3; …`. */
const reconnectsIn = (detail = ''): string => {
  const number = /\d+/.exec(detail)?.[0];
  return `${number} reconnect${number === '1' ? '' : 's'} (--retries)`;
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
  const texts = commandTexts[code] ?? {};
  const setting = option === undefined ? [] : [settingNames[option] ?? option];
  const observed = texts.detail === false ? '' : [...setting, ...(detail === undefined ? [] : [detail])].join(' ');
  const text = typeof texts.summary === 'function' ? texts.summary(detail) : (texts.summary ?? withSettings(summary));
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
