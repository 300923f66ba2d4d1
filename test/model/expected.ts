import type { Lifecycle } from '../support/ten-rules/seen.js';

/** An expected failure, written from the contract, not taken from src. */
export interface Expected {
  readonly code: string;
  readonly verdict: 'stop' | 'renew' | 'wait' | 'backoff';
  readonly stage: 'ticket' | 'handshake' | 'stream';
  readonly retryAfterMs?: number;
}

const at =
  (stage: Expected['stage']) =>
  (code: string, verdict: Expected['verdict'], retryAfterMs?: number): Expected => ({
    ...{ stage, code, verdict },
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
const ticket = at('ticket');
const handshake = at('handshake');
const stream = at('stream');

/** Answers to a ticket request: the status, the `Retry-After` and the meaning (contract, section 7.1). */
export const ticketRefusals: readonly (readonly [status: number, retryAfter: string | undefined, Expected])[] = [
  [401, undefined, ticket('invalid-api-key', 'stop')],
  [403, undefined, ticket('not-entitled', 'stop')],
  [422, undefined, ticket('invalid-ticket-request', 'stop')],
  [429, '2', ticket('ticket-rate-limited', 'wait', 2_000)],
  [429, '60', ticket('ticket-rate-limited', 'wait', 60_000)],
  [429, undefined, ticket('ticket-rate-limited', 'wait')],
  [503, undefined, ticket('credential-service-unavailable', 'backoff')],
  [503, '5', ticket('credential-service-unavailable', 'backoff', 5_000)],
  [500, undefined, ticket('ticket-request-failed', 'backoff')],
  [502, undefined, ticket('ticket-request-failed', 'backoff')],
  [408, undefined, ticket('ticket-request-failed', 'backoff')],
  [302, undefined, ticket('ticket-request-rejected', 'stop')],
  [404, undefined, ticket('ticket-request-rejected', 'stop')],
  [418, undefined, ticket('ticket-request-rejected', 'stop')],
];

/** Answers to a handshake (contract, section 7.2). */
export const handshakeRefusals: readonly (readonly [status: number, retryAfter: string | undefined, Expected])[] = [
  [400, undefined, handshake('handshake-rejected', 'stop')],
  [401, undefined, handshake('ticket-rejected', 'renew')],
  [503, undefined, handshake('capacity-full', 'backoff')],
  [503, '3', handshake('capacity-full', 'backoff', 3_000)],
  [500, undefined, handshake('handshake-failed', 'backoff')],
  [408, undefined, handshake('handshake-failed', 'backoff')],
  [429, undefined, handshake('handshake-failed', 'backoff')],
  [429, '4', handshake('handshake-failed', 'backoff', 4_000)],
  [302, undefined, handshake('handshake-failed', 'stop')],
  [404, undefined, handshake('handshake-failed', 'stop')],
];

/** Closes (contract, section 7.3, and the codes of RFC 6455, 7.4). */
export const closes: readonly (readonly [code: number | undefined, reason: string, Expected])[] = [
  [4001, 'connection replaced', stream('connection-replaced', 'stop')],
  [1008, 'server push only', stream('policy-violation', 'stop')],
  [4003, 'access expired', stream('access-expired', 'renew')],
  [4003, 'access revoked', stream('access-revoked', 'renew')],
  [4003, 'some other reason', stream('connection-closed', 'renew')],
  [1013, 'client too slow', stream('client-too-slow', 'backoff')],
  [1001, 'server shutdown', stream('server-shutdown', 'backoff')],
  [1000, '', stream('connection-closed', 'backoff')],
  [1011, 'oops', stream('connection-closed', 'backoff')],
  [4999, 'unknown', stream('connection-closed', 'backoff')],
  [undefined, '', stream('connection-closed', 'backoff')],
];

export const unreachableTicket = ticket('ticket-endpoint-unreachable', 'backoff');
export const noTicket = ticket('invalid-ticket', 'stop');
export const unreachableHandshake = handshake('handshake-unreachable', 'backoff');
export const expiredTicket = handshake('ticket-expired', 'renew');
export const mismatch = handshake('subprotocol-mismatch', 'stop');
export const lost = stream('connection-lost', 'renew');
export const stalled = stream('connection-stalled', 'renew');
export const invalidFrame = stream('invalid-frame', 'backoff');
export const shutdown = stream('server-shutdown', 'backoff');

/** Every failure that can happen. */
export const failures: readonly Expected[] = [
  ...[...ticketRefusals, ...handshakeRefusals, ...closes].map(([, , failure]) => failure),
  ...[
    unreachableTicket,
    noTicket,
    unreachableHandshake,
    expiredTicket,
    mismatch,
    lost,
    stalled,
    invalidFrame,
    shutdown,
  ],
];

/** A step of the feed as the model expects it. */
export type Step = Lifecycle['type'] | 'frame' | 'errored' | 'unsubscribed';
