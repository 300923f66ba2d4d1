import { type FailureCode, TradeFeedError } from '../index.js';
import { LogError } from '../log/log-error.js';
import { printable } from '../protocol/printable.js';
import { interrupts } from './context.js';

export const ExitCode = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  access: 3,
  replaced: 4,
  refused: 5,
  certificate: 6,
  unavailable: 7,
  local: 8,
  timeUp: 124,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

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
  EADDRINUSE: 'the port is in use',
};

export const exitCodeOf = (error: unknown): ExitCode => {
  if (error instanceof TradeFeedError) return ofFailure[error.code] ?? ExitCode.unavailable;
  if (error instanceof LogError) return ExitCode.local;
  return error instanceof CliError ? error.exitCode : ExitCode.unexpected;
};

const following = ['demo', 'listen', 'record'] as const;
const asking = [...following, 'doctor'] as const;
const all = [...following, 'replay', 'log', 'serve', 'cluster', 'doctor', 'top'] as const;

type Named = (typeof all)[number];

/** Each exit code, with the commands that use it and what it means for them. */
export const exitCodeRows: readonly (readonly [code: number, commands: readonly Named[], meaning: string])[] = [
  [0, ['demo'], endOf('--duration', 'the reader of stdout has exited')],
  [0, ['listen'], endOf('--count or --duration', 'the reader of stdout has exited')],
  [0, ['record'], endOf('--count or --duration')],
  [0, ['replay'], 'the end of the log or --count reached, the reader of stdout has exited, or Ctrl-C with --follow'],
  [0, ['log'], 'success: verify found no damage'],
  [0, ['serve'], 'ended by Ctrl-C, SIGTERM or SIGHUP'],
  [0, ['cluster'], 'success'],
  [0, ['doctor'], 'no check failed'],
  [0, ['top'], 'ended by q, Ctrl-C, SIGTERM or SIGHUP, --duration reached, or the reader of stdout has exited'],
  [1, all, 'an unexpected error: a bug in this program'],
  [2, all, 'wrong arguments or settings'],
  [3, asking, "no access: the API key isn't valid, or the account is inactive or not entitled"],
  [4, asking, 'another client connected with this account (4001)'],
  [5, asking, "the service, or a proxy, doesn't follow the contract"],
  [5, ['cluster'], "there is nothing to do: no owner, no other replica, or the cluster hasn't stopped"],
  [5, ['log'], 'verify found damage'],
  [6, asking, "the server's certificate isn't trusted"],
  [7, ['demo', 'record'], "the service wasn't available, and --retries was used up"],
  [
    7,
    ['listen'],
    "the service wasn't available, and --retries was used up; or the engine of --cluster wasn't available",
  ],
  [7, ['cluster'], "the engine wasn't available, or refused what the command needs"],
  [7, ['doctor'], "the service isn't available"],
  [8, all.filter((name) => name !== 'doctor'), "a file, a port or the output can't be used"],
  [8, ['doctor'], "a file or this version of Node can't be used"],
  [124, ['demo'], '--duration passed before a connection opened'],
  [124, ['listen', 'record'], '--duration passed before --count frames arrived, or before a connection opened'],
  [124, ['doctor'], 'no frame arrived within --frame-within'],
  ...Object.entries(interrupts).flatMap(([signal, code]) => {
    const ended = `ended by ${signal === 'SIGINT' ? 'Ctrl-C' : signal} before`;
    return [
      [code, ['demo'], `${ended} --duration was reached`],
      [code, ['listen', 'record'], `${ended} --count or --duration was reached`],
      [code, ['replay', 'log'], `${ended} the end`],
    ] as const;
  }),
];

function endOf(bounds: string, more?: string): string {
  const unbounded = bounds.replace(' or ', ' and ');
  return `${bounds} reached, ${more ? `${more}, ` : ''}or Ctrl-C, SIGTERM or SIGHUP in a run without ${unbounded}`;
}

/** The exit codes of failures. Any other failure means that the service or the engine wasn't available. */
const ofFailure: Readonly<Partial<Record<FailureCode, ExitCode>>> = {
  'invalid-options': ExitCode.usage,
  'api-key-unavailable': ExitCode.access,
  'invalid-api-key': ExitCode.access,
  'not-entitled': ExitCode.access,
  'access-expired': ExitCode.access,
  'access-revoked': ExitCode.access,
  'connection-replaced': ExitCode.replaced,
  'invalid-ticket-request': ExitCode.refused,
  'ticket-endpoint-without-tls': ExitCode.refused,
  'ticket-request-rejected': ExitCode.refused,
  'invalid-ticket': ExitCode.refused,
  'handshake-rejected': ExitCode.refused,
  'subprotocol-mismatch': ExitCode.refused,
  'handshake-failed': ExitCode.refused,
  'policy-violation': ExitCode.refused,
  'invalid-frame': ExitCode.refused,
  'untrusted-certificate': ExitCode.certificate,
};

interface CommandTexts {
  readonly summary?: string;
  /** Hides the detail, which names options of the library. */
  readonly detail?: false;
  readonly advice?: string;
}

/** Texts that replace the library's advice about the code of an app. */
const commandTexts: Readonly<Partial<Record<FailureCode, CommandTexts>>> = {
  'invalid-options': { summary: "The settings aren't valid.", advice: 'See --help.' },
  'retries-exhausted': { detail: false },
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

/** Says what happened, without the advice. */
export const whatHappened = ({ code, summary, detail, option }: TradeFeedError): string => {
  const texts = commandTexts[code] ?? {};
  const setting = option === undefined ? [] : [settingNames[option] ?? option];
  const observed = texts.detail === false ? '' : [...setting, ...(detail === undefined ? [] : [detail])].join(' ');
  const text = texts.summary ?? withSettings(summary);
  return printable(observed === '' ? text : `${text.replace(/\.$/, '')} (${observed}).`);
};

export const adviceFor = ({ code, advice }: TradeFeedError): string =>
  commandTexts[code]?.advice ?? withSettings(advice);

/** Says what happened, what had failed before, and what to do. */
export const failureWords = (failure: TradeFeedError): string => {
  const { code, previous, cause } = failure;
  const before = cause instanceof TradeFeedError ? cause : previous;
  return [
    whatHappened(failure),
    ...(before && before.code !== code ? [`Before that: ${whatHappened(before)}`] : []),
    adviceFor(failure),
  ].join(' ');
};
