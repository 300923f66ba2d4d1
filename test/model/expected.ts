import type { Stage, Verdict } from '../../src/index.js';
import { expectedFailure } from '../support/failure-table.js';
import type { Lifecycle } from '../support/ten-rules/seen.js';

/** How a failure should look: its row in the failure table, and the delay that the service asks for. */
export interface Expected {
  readonly stage: Stage;
  readonly code: string;
  readonly verdict: Verdict;
  readonly retryAfterMs?: number;
}

type Refusal = readonly [status: number, retryAfter: string | undefined, Expected];
type Close = readonly [code: number | undefined, reason: string, Expected];

type Answer = readonly [status: number, retryAfterSeconds?: number];

const refusals = (stage: 'ticket' | 'handshake', answers: readonly Answer[]): readonly Refusal[] =>
  answers.map(([status, seconds]) => [
    status,
    seconds === undefined ? undefined : `${seconds}`,
    { ...expectedFailure({ stage, status }), ...(seconds !== undefined && { retryAfterMs: seconds * 1_000 }) },
  ]);
const withoutHeader = (...statuses: readonly number[]): readonly Answer[] => statuses.map((status) => [status]);

/** Answers to a ticket request: status, `Retry-After` header, and what they mean (contract, section 7.1). */
export const ticketRefusals: readonly Refusal[] = refusals('ticket', [
  ...([
    [429, 2],
    [429, 60],
    [503, 5],
  ] as const),
  ...withoutHeader(401, 403, 422, 429, 503, 500, 502, 408, 302, 404, 418),
]);

/** Answers to a handshake (contract, section 7.2). */
export const handshakeRefusals: readonly Refusal[] = refusals('handshake', [
  ...([
    [503, 3],
    [429, 4],
  ] as const),
  ...withoutHeader(400, 401, 503, 500, 408, 429, 302, 404),
]);

/** Closes (contract, section 7.3, and the codes of RFC 6455, 7.4). */
export const closes: readonly Close[] = (
  [
    [4001, 'connection replaced'],
    [1008, 'server push only'],
    [4003, 'access expired'],
    [4003, 'access revoked'],
    [4003, 'some other reason'],
    [1013, 'client too slow'],
    [1001, 'server shutdown'],
    [1000, ''],
    [1011, 'oops'],
    [4999, 'unknown'],
    [undefined, ''],
  ] as const
).map(([code, reason]) => [
  code,
  reason,
  // 1005 reports a close frame without a code.
  expectedFailure({ stage: 'stream', closeCode: code ?? 1005, reason }),
]);

export const unreachableTicket = expectedFailure({ stage: 'ticket', code: 'ticket-endpoint-unreachable' });
export const noTicket = expectedFailure({ stage: 'ticket', code: 'invalid-ticket' });
export const unreachableHandshake = expectedFailure({ stage: 'handshake', code: 'handshake-unreachable' });
export const expiredTicket = expectedFailure({ stage: 'handshake', code: 'ticket-expired' });
export const mismatch = expectedFailure({ stage: 'handshake', code: 'subprotocol-mismatch' });
export const lost = expectedFailure({ stage: 'stream', code: 'connection-lost' });
export const stalled = expectedFailure({ stage: 'stream', code: 'connection-stalled' });
export const invalidFrame = expectedFailure({ stage: 'stream', code: 'invalid-frame' });
export const shutdown = expectedFailure({ stage: 'stream', closeCode: 1001 });

/** Every failure that the model can produce. */
export const failures: readonly Expected[] = [
  ...[...ticketRefusals, ...handshakeRefusals, ...closes].map(([, , failure]) => failure),
  ...[unreachableTicket, noTicket, unreachableHandshake, expiredTicket, mismatch],
  ...[lost, stalled, invalidFrame, shutdown],
];

/** A step that the model expects of the feed. */
export type Step = Lifecycle['type'] | 'frame' | 'errored' | 'unsubscribed';
