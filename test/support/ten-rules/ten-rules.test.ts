import { describe, expect, it } from '@jest/globals';
import { createTradeFeedError } from 'rx-trade-feed';
import type { Lifecycle, Numbered, Seen, Subscribed } from './seen.js';
import { violations } from './rules.js';

const apiKey = 'planted-key-1-end';
const facts: Subscribed = {
  ...{ subscription: 1, apiKey, initialDelayMs: 100, maxDelayMs: 1_000, stableAfterMs: 50, earlyMs: 0 },
  isOwnError: (error) => error instanceof RangeError,
};
const expired = createTradeFeedError({ stage: 'stream', closeCode: 4003, reason: 'access expired', uptimeMs: 80 });

const requested: Seen = {
  what: 'ticket-request',
  at: 0,
  request: { url: '/v1/wss/tickets', headers: { 'x-api-key': apiKey }, body: '' },
};
const ticket = (n: number) => ({ ticket: `planted-ticket-1-${n}`, path: `/ws/${n}`, subprotocol: `p${n}` });
const issued = (n: number): Seen => ({ what: 'ticket-answered', at: 0, ticket: ticket(n) });
const handshake = (n: number, headerFields: object = {}): Seen => {
  const headers = {
    authorization: `Bearer ${ticket(n).ticket}`,
    'sec-websocket-protocol': ticket(n).subprotocol,
    ...headerFields,
  };
  return { what: 'handshake', at: 0, socket: n, request: { url: ticket(n).path, headers, body: '' } };
};
const emits = (event: object, at = 0): Seen => ({ what: 'event', at, event: { at, ...event } as Lifecycle });
const frame = (socket: number, seq: number, connection = socket): Seen => ({
  ...{ what: 'frame', at: 0, connection },
  payload: { subscription: 1, socket, seq } satisfies Numbered,
});
const sent = (socket: number, seq: number): Seen => ({ what: 'sent', at: 0, socket, seq });
const settled: Seen = { what: 'settled', at: 0 };
const gone = (socket: number): Seen => ({ what: 'gone', at: 0, socket });
const again = (failure = expired, delayMs = 0): Seen[] => [
  emits({ type: 'disconnected', failure }),
  emits({ type: 'reconnecting', delayMs, attempt: 1, verdict: failure.verdict }),
];
const attempt = (n: number): Seen[] => [
  emits({ type: 'ticket-requested' }),
  ...[requested, issued(n)],
  emits({ type: 'ticket-issued' }),
  ...[handshake(n), { what: 'handshake-answered', at: 0, isOpen: true } as const],
  emits({ type: 'opened', connection: n }),
];
const first = [...attempt(1), sent(1, 1), frame(1, 1), settled];
const gap = emits({ type: 'gap', from: 0, to: 0, durationMs: 0, failure: expired });
const good: Seen[] = [
  ...first,
  { what: 'closed', at: 0, socket: 1 },
  ...again(),
  ...attempt(2),
  gap,
  gone(1),
  sent(2, 1),
  frame(2, 1),
  settled,
];
const end: Seen = { what: 'unsubscribed', at: 0 };
const refused = createTradeFeedError({ stage: 'ticket', status: 503 });
const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001 });
const own = createTradeFeedError({
  ...{ stage: 'ticket', code: 'ticket-endpoint-unreachable', cause: new RangeError('own') },
});

describe('the ten rules', () => {
  it('accept the log of a correct feed', () => {
    expect(violations(good, facts)).toEqual([]);
    expect(violations([...good, end, gone(2), { ...settled, at: 9_000 }], facts)).toEqual([]);
  });

  it.each<[string, string, readonly Seen[]]>([
    ['1', 'not a sequence of attempts', [...first, ...attempt(2)]],
    ['1', 'not a sequence of attempts', [...first, ...again(), ...attempt(2), frame(2, 1)]],
    ['1', '2 connections at once', [...first, ...again(), ...attempt(2), gap, settled]],
    ['2', 'the key is elsewhere in a handshake', [issued(1), handshake(1, { 'x-api-key': apiKey })]],
    ['2', 'a ticket is elsewhere in a handshake', [issued(1), handshake(1, { cookie: ticket(1).ticket })]],
    ['2', 'a secret is in event', [emits({ type: 'ticket-requested', feed: apiKey })]],
    ['2', 'a secret is in errored', [{ what: 'errored', at: 0, error: new RangeError(apiKey) }]],
    ['3', 'without a fresh ticket', [issued(1), handshake(1), handshake(1)]],
    ['3', 'with another subprotocol', [issued(1), handshake(1, { 'sec-websocket-protocol': 'x' })]],
    ['4', 'emitted frame after the end', [...first, end, frame(1, 2)]],
    ['4', 'a ticket-request after the end', [...first, end, settled, requested]],
    ['4', '1 sockets are open after the end', [...first, end, { ...settled, at: 9_000 }]],
    ['5', 'frame 1 after frame 1', [...first, frame(1, 1)]],
    ['5', '2 frames were sent and 1 delivered', [...first, sent(1, 2), settled]],
    ['5', '1 frames were lost before a close', [...first, sent(1, 2), ...again()]],
    ['6', 'opcode 1', [{ what: 'client-frame', at: 0, socket: 1, opcode: 1 }]],
    ['7', 'waits 1001 ms, but the maximum is 1000', again(refused, 1_001)],
    ['7', 'an attempt 40 ms too early', [...again(refused, 100), emits({ type: 'ticket-requested' }, 60)]],
    ['7', 'a second zero delay', [...again(), emits({ type: 'ticket-requested' }), ...again(refused, 0)]],
    ['8', 'an exception of the consumer was reported as', again(own, 100)],
    ['the failure table', 'reconnected after connection-replaced', again(replaced)],
    ['the failure table', 'stopped with credential-service', [{ what: 'errored', at: 0, error: refused }]],
  ])('rule %s reports: %s', (rule, what, log) => {
    const found = violations(log, facts).filter((violation) => violation.includes(what));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(new RegExp(`^(${rule}:|.*${rule})`));
  });
});
