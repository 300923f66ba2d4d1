import type { ServiceFailureCode, Stage, Verdict } from '../../src/index.js';
import type { CertificateProblem } from '../../src/protocol/failures/meanings.js';

/** What the service or the client observes when an attempt ends. */
export interface Observed {
  readonly stage: Stage;
  readonly status?: number | undefined;
  readonly closeCode?: number | undefined;
  readonly reason?: string | undefined;
  readonly code?: string | undefined;
  readonly certificate?: CertificateProblem | undefined;
  readonly hasOpened?: boolean | undefined;
}

/** One row of the table: what happened, and what it means. */
export interface FailureRow {
  /** Absent: any stage. */
  readonly stage?: Stage;
  readonly status?: number | '5xx' | 'other';
  readonly closeCode?: number | 'other';
  /** Absent: any reason. */
  readonly reason?: string;
  /** Absent: any problem of a certificate. */
  readonly certificate?: CertificateProblem;
  readonly code: ServiceFailureCode;
  readonly verdict: Verdict;
  /** The verdict once a connection has opened, if it's another one. */
  readonly afterOpened?: Verdict;
}

type Row = Omit<FailureRow, 'code'>;

const ticket = (status: number | '5xx' | 'other', verdict: Verdict): Row => ({ stage: 'ticket', status, verdict });
const handshake = (status: number | '5xx' | 'other', verdict: Verdict): Row => ({
  ...{ stage: 'handshake', status, verdict },
});
const close = (closeCode: number | 'other', verdict: Verdict, reason?: string): Row => ({
  ...{ stage: 'stream', closeCode, verdict },
  ...(reason !== undefined && { reason }),
});
// The client observes these itself, without a status or a close code.
const local = (stage: Stage, verdict: Verdict): Row => ({ stage, verdict });
const untrusted = (stage: Stage): readonly Row[] => {
  const row: Row = { stage, verdict: 'stop', afterOpened: 'backoff' };
  return [row, { ...row, certificate: 'date' }, { ...row, certificate: 'host' }];
};

/**
 * The meaning of every failure, taken from the service contract (section 7) rather than src, so that tests can compare.
 * The compiler requires every code of {@link ServiceFailureCode}.
 */
const rowsByCode = {
  // The ticket request: contract, section 7.1.
  'invalid-api-key': [ticket(401, 'stop')],
  'not-entitled': [ticket(403, 'stop')],
  'invalid-ticket-request': [ticket(422, 'stop')],
  'ticket-rate-limited': [ticket(429, 'wait')],
  'credential-service-unavailable': [ticket(503, 'backoff')],
  'ticket-request-failed': [ticket('5xx', 'backoff'), ticket(408, 'backoff')],
  'ticket-request-rejected': [ticket('other', 'stop')],
  'ticket-endpoint-unreachable': [local('ticket', 'backoff')],
  'ticket-endpoint-without-tls': [local('ticket', 'stop')],
  'untrusted-certificate': [...untrusted('ticket'), ...untrusted('handshake')],
  'api-key-unavailable': [local('ticket', 'backoff')],
  'invalid-ticket': [local('ticket', 'stop')],
  // The handshake: contract, section 7.2.
  'handshake-rejected': [handshake(400, 'stop')],
  'ticket-rejected': [handshake(401, 'renew')],
  'capacity-full': [handshake(503, 'backoff')],
  'handshake-failed': [
    handshake('5xx', 'backoff'),
    handshake(408, 'backoff'),
    handshake(429, 'backoff'),
    handshake('other', 'stop'),
  ],
  'subprotocol-mismatch': [local('handshake', 'stop')],
  'handshake-unreachable': [local('handshake', 'backoff')],
  'ticket-expired': [local('handshake', 'renew')],
  // The open stream: contract, section 7.3.
  'connection-replaced': [close(4001, 'stop')],
  'policy-violation': [close(1008, 'stop')],
  'access-expired': [close(4003, 'renew', 'access expired')],
  'access-revoked': [close(4003, 'renew', 'access revoked')],
  'client-too-slow': [close(1013, 'backoff')],
  'server-shutdown': [close(1001, 'backoff')],
  'connection-lost': [close(1006, 'renew')],
  'connection-stalled': [local('stream', 'renew')],
  'invalid-frame': [local('stream', 'backoff')],
  'connection-closed': [close(4003, 'renew'), close('other', 'backoff')],
  // At any stage.
  'invalid-options': [{ verdict: 'stop' }],
  'retries-exhausted': [{ verdict: 'stop' }],
} as const satisfies Readonly<Record<ServiceFailureCode, readonly Row[]>>;

export const failureCodes = Object.keys(rowsByCode).sort() as readonly ServiceFailureCode[];

export const failureTable: readonly FailureRow[] = failureCodes.flatMap((code) =>
  rowsByCode[code].map((row: Row) => ({ ...row, code })),
);

/** Codes that stop the feed whenever they occur. */
export const stoppingCodes: readonly string[] = failureCodes.filter((code) =>
  rowsByCode[code].every((row: Row) => row.verdict === 'stop' && row.afterOpened === undefined),
);

/**
 * Returns the row for what happened. The status or close code decides, or the code if there's neither.
 *
 * @throws Error when the table has no such row
 */
export const failureRow = (observed: Observed): FailureRow => {
  const { stage, status, closeCode, reason, code, certificate } = observed;
  const rows = failureTable.filter((row) => row.stage === stage);
  const ofClose = rows.filter((row) => row.closeCode === closeCode);
  const otherStatus = /^5\d\d$/.test(String(status)) ? '5xx' : 'other';
  const found =
    failureTable.find((row) => row.stage === undefined && row.code === code) ??
    (status !== undefined
      ? (rows.find((row) => row.status === status) ?? rows.find((row) => row.status === otherStatus))
      : closeCode !== undefined
        ? (ofClose.find((row) => row.reason !== undefined && row.reason === reason) ??
          ofClose.find((row) => row.reason === undefined) ??
          rows.find((row) => row.closeCode === 'other'))
        : (rows.find((row) => row.code === code && row.certificate === certificate) ??
          rows.find((row) => row.code === code)));
  if (found === undefined) throw new Error(`The failure table has no row for ${JSON.stringify(observed)}.`);
  return found;
};

/** Returns the expected code and verdict for what happened, with its stage. */
export const expectedFailure = (
  observed: Observed,
): { readonly stage: Stage; readonly code: ServiceFailureCode; readonly verdict: Verdict } => {
  const { code, verdict, afterOpened = verdict } = failureRow(observed);
  return { stage: observed.stage, code, verdict: observed.hasOpened ? afterOpened : verdict };
};
