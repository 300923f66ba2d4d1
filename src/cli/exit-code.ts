import type { FailureCode, ServiceFailureCode } from '../index.js';

/** The exit codes of the command. */
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

const anyCommand = {
  [ExitCode.unexpected]: 'an unexpected error: a bug in this program',
  [ExitCode.usage]: 'wrong arguments or settings',
  [ExitCode.local]: 'a file, a port or the output cannot be used',
};

/** The meanings of the exit codes of `listen`, for the help. Codes of signals follow the convention of shells. */
export const exitCodeMeanings: Readonly<Record<number, string>> = {
  ...anyCommand,
  [ExitCode.ok]:
    'success: --count or --duration reached, the reader of stdout has exited, or Ctrl-C, SIGTERM or SIGHUP in a run without --count and --duration',
  [ExitCode.access]: 'no access: the API key is not valid, or the account is inactive or not entitled',
  [ExitCode.replaced]: 'another connection of the same account took over (4001)',
  [ExitCode.refused]: 'the service, or a proxy, does not follow the contract',
  [ExitCode.certificate]: "the server's certificate is not trusted",
  [ExitCode.unavailable]: 'the service was not available, and --retries was used up',
  [ExitCode.timeUp]: '--duration passed before --count frames arrived, or before a connection opened',
  129: 'ended by SIGHUP before --count or --duration was reached',
  130: 'ended by Ctrl-C before --count or --duration was reached',
  143: 'ended by SIGTERM before --count or --duration was reached',
};

/** The meanings of the exit codes of `demo`, which has no `--count`. */
export const demoExitCodeMeanings: Readonly<Record<number, string>> = {
  ...exitCodeMeanings,
  [ExitCode.ok]:
    'success: --duration reached, the reader of stdout has exited, or Ctrl-C, SIGTERM or SIGHUP in a run without --duration',
  [ExitCode.timeUp]: '--duration passed before a connection opened',
  129: 'ended by SIGHUP before --duration was reached',
  130: 'ended by Ctrl-C before --duration was reached',
  143: 'ended by SIGTERM before --duration was reached',
};

/** The meanings of the exit codes of `record`, which does not write to stdout. */
export const recordExitCodeMeanings: Readonly<Record<number, string>> = {
  ...exitCodeMeanings,
  [ExitCode.ok]:
    'success: --count or --duration reached, or Ctrl-C, SIGTERM or SIGHUP in a run without --count and --duration',
};

/** The meanings of the exit codes of `replay`. */
export const replayExitCodeMeanings: Readonly<Record<number, string>> = {
  ...anyCommand,
  [ExitCode.ok]: 'success: the end of the recording or --count reached, or the reader of stdout has exited',
  129: 'ended by SIGHUP before the end',
  130: 'ended by Ctrl-C before the end',
  143: 'ended by SIGTERM before the end',
};

/** The meanings of the exit codes of `serve`. */
export const serveExitCodeMeanings: Readonly<Record<number, string>> = {
  ...anyCommand,
  [ExitCode.ok]: 'ended by Ctrl-C, SIGTERM or SIGHUP',
};

/** The meanings of the exit codes of `cluster`. */
export const clusterExitCodeMeanings: Readonly<Record<number, string>> = {
  ...anyCommand,
  [ExitCode.ok]: 'success',
  [ExitCode.refused]: 'there is nothing to do: no owner, no other replica, or the cluster has not stopped',
  [ExitCode.unavailable]: 'the engine was not available',
};

/** The meanings of the exit codes of `doctor`. */
export const doctorExitCodeMeanings: Readonly<Record<number, string>> = {
  ...anyCommand,
  [ExitCode.ok]: 'no check failed',
  [ExitCode.access]: exitCodeMeanings[ExitCode.access] as string,
  [ExitCode.replaced]: exitCodeMeanings[ExitCode.replaced] as string,
  [ExitCode.refused]: exitCodeMeanings[ExitCode.refused] as string,
  [ExitCode.certificate]: exitCodeMeanings[ExitCode.certificate] as string,
  [ExitCode.unavailable]: 'the service is not available',
  [ExitCode.local]: 'a file or this version of Node cannot be used',
  [ExitCode.timeUp]: 'no frame arrived within --frame-within',
};

/** The meanings of the exit codes of `top`. It shows failures, and continues. */
export const topExitCodeMeanings: Readonly<Record<number, string>> = {
  ...anyCommand,
  [ExitCode.ok]: 'ended by q, Ctrl-C, SIGTERM or SIGHUP, --duration reached, or the reader of stdout has exited',
};

/**
 * The exit code of each failure. After most failures the feed reconnects, and only `retries-exhausted` ends the command. The rows of these
 * failures apply only if the backoff policy stops at one.
 */
export const exitCodes: Readonly<Record<ServiceFailureCode, ExitCode> & Partial<Record<FailureCode, ExitCode>>> = {
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
  'ticket-rate-limited': ExitCode.unavailable,
  'credential-service-unavailable': ExitCode.unavailable,
  'ticket-request-failed': ExitCode.unavailable,
  'ticket-endpoint-unreachable': ExitCode.unavailable,
  'ticket-rejected': ExitCode.unavailable,
  'ticket-expired': ExitCode.unavailable,
  'capacity-full': ExitCode.unavailable,
  'handshake-unreachable': ExitCode.unavailable,
  'client-too-slow': ExitCode.unavailable,
  'server-shutdown': ExitCode.unavailable,
  'connection-lost': ExitCode.unavailable,
  'connection-stalled': ExitCode.unavailable,
  'connection-closed': ExitCode.unavailable,
  'retries-exhausted': ExitCode.unavailable,
};
