import { expect } from '@jest/globals';
import { type Stage, TradeFeedError, type Verdict } from 'rx-trade-feed';
import { everythingIn } from '../support/everything-in.js';
import type { Outcome } from '../support/feed.js';

/** The secrets of every case. */
export const plantedKey = 'planted-key-5be1';
export const plantedTicket = 'planted-ticket-90c4';

/** The failure table of the design, section 4, by stage and code: written from there, not from src. */
const verdicts: Readonly<Record<Stage, Readonly<Record<string, Verdict>>>> = {
  ticket: {
    'invalid-api-key': 'stop',
    'not-entitled': 'stop',
    'invalid-ticket-request': 'stop',
    'ticket-rate-limited': 'wait',
    'credential-service-unavailable': 'backoff',
    'ticket-request-failed': 'backoff',
    'ticket-request-rejected': 'stop',
    'ticket-endpoint-unreachable': 'backoff',
    'invalid-ticket': 'stop',
  },
  handshake: {
    'handshake-rejected': 'stop',
    'ticket-rejected': 'renew',
    'capacity-full': 'backoff',
    'subprotocol-mismatch': 'stop',
    'handshake-failed': 'stop',
    'handshake-unreachable': 'backoff',
    'ticket-expired': 'renew',
  },
  stream: {
    'connection-replaced': 'stop',
    'policy-violation': 'stop',
    'access-expired': 'renew',
    'access-revoked': 'renew',
    'client-too-slow': 'backoff',
    'server-shutdown': 'backoff',
    'connection-lost': 'renew',
    'connection-stalled': 'renew',
    'invalid-frame': 'backoff',
    'connection-closed': 'backoff',
  },
};

const known = {
  ticket: {
    ...{ 401: 'invalid-api-key', 403: 'not-entitled', 422: 'invalid-ticket-request', 429: 'ticket-rate-limited' },
    ...{ 503: 'credential-service-unavailable', 408: 'ticket-request-failed' },
  } as Readonly<Record<number, string>>,
  handshake: { 400: 'handshake-rejected', 401: 'ticket-rejected', 503: 'capacity-full' } as Readonly<
    Record<number, string>
  >,
  close: {
    ...{ 1001: 'server-shutdown', 1006: 'connection-lost', 1008: 'policy-violation', 1013: 'client-too-slow' },
    ...{ 4001: 'connection-replaced' },
  } as Readonly<Record<number, string>>,
};

const isServerError = (status: number): boolean => status >= 500 && status <= 599;

/** The code of an HTTP status, by the table. */
export const codeOfStatus = (stage: 'ticket' | 'handshake', status: number): string =>
  known[stage][status] ??
  (stage === 'handshake'
    ? 'handshake-failed'
    : isServerError(status)
      ? 'ticket-request-failed'
      : 'ticket-request-rejected');

/** The code of a WebSocket close, by the table. */
export const codeOfClose = (code: number, reason: string): string =>
  code === 4003 && (reason === 'access expired' || reason === 'access revoked')
    ? reason.replace(' ', '-')
    : (known.close[code] ?? 'connection-closed');

const verdictOf = ({ stage, code, status = 0, closeCode }: TradeFeedError): Verdict | undefined => {
  if (code === 'handshake-failed' && (isServerError(status) || status === 408 || status === 429)) return 'backoff';
  if (code === 'connection-closed' && closeCode === 4003) return 'renew';
  return verdicts[stage][code];
};

// What could move a cursor, forge a line of a log, or turn a text around.
const harmful = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
const longestTimerMs = 2 ** 31 - 1;

/** Holds what must be true of every end of an attempt, whatever the server did. Gives the code. */
export const checkOutcome = ({ failure, goesOn, delayMs, events }: Outcome): string => {
  expect(failure).toBeInstanceOf(TradeFeedError);
  const { code, stage, verdict, status, closeCode, reason = '', message, advice, retryAfterMs } = failure;
  expect({ code, verdict }).toEqual({ code, verdict: verdictOf(failure) });
  if (stage !== 'stream' && status !== undefined) expect(code).toBe(codeOfStatus(stage, status));
  if (closeCode !== undefined) expect(code).toBe(codeOfClose(closeCode, reason));
  for (const text of [message, advice]) {
    expect(text.length).toBeGreaterThan(10);
    expect(text).not.toMatch(harmful);
  }
  expect(goesOn).toBe(verdict !== 'stop');
  if (retryAfterMs !== undefined) expect([retryAfterMs >= 0, Number.isFinite(retryAfterMs)]).toEqual([true, true]);
  if (delayMs !== undefined) {
    expect(delayMs).toBeGreaterThanOrEqual(Math.max(1, Math.min(retryAfterMs ?? 0, longestTimerMs)));
    expect(delayMs).toBeLessThanOrEqual(longestTimerMs);
  }
  // A frame is what the service sent, and nothing else.
  const told = everythingIn([failure, String(failure.stack), ...events.filter(({ type }) => type !== 'frame')]);
  for (const secret of [plantedKey, plantedTicket]) expect(told.toLowerCase()).not.toContain(secret);
  return code;
};
