import { describe, expect, it } from '@jest/globals';
import { Agent as HttpsAgent } from 'node:https';
import { tradeFeed$, type TradeFeedOptions } from '../../src/index.js';
import { certificateFor } from '../support/certificate.js';
import { expectedFailure, failureRow, type FailureRow, failureTable, type Observed } from '../support/failure-table.js';
import { optionsFor, outcomeOf, plantedKey } from '../support/feed.js';
import {
  accept,
  close,
  type HandshakeStep,
  issue,
  refuse,
  refuseHandshake,
  startWire,
  switching,
  text,
  type TicketStep,
  type WireScript,
  wsFrame,
} from '../support/wire.js';

/**
 * One way to cause a failure on the wire. Its meaning is in the failure table of test/support, which is written from the contract.
 */
interface Row extends WireScript, Observed {
  readonly what: string;
  readonly retryAfterMs?: number;
  readonly options?: TradeFeedOptions;
}

const silence = (): void => undefined;
const reset: TicketStep = (response) => response.socket?.destroy();
const resetHandshake: HandshakeStep = ({ socket }) => socket.destroy();
const untrusted = await certificateFor();
const otherName = await certificateFor('elsewhere.example');

const ticketRow = (status: number, headers?: Record<string, string>): Row => ({
  stage: 'ticket',
  what: `${status}${headers ? ` with ${Object.keys(headers).join()}` : ''}`,
  status,
  ticket: [refuse(status, headers)],
});

const handshakeRow = (status: number, headers?: Record<string, string>): Row => ({
  stage: 'handshake',
  what: `${status}${headers ? ` with ${Object.keys(headers).join()}` : ''}`,
  status,
  handshake: [refuseHandshake(status, headers)],
});

const closeRow = (closeCode: number | undefined, reason: string): Row => ({
  stage: 'stream',
  what: `${closeCode ?? 'no code'} ${reason}`,
  closeCode: closeCode ?? 1005,
  reason,
  handshake: [accept(text('frame'), close(closeCode, reason))],
});

const badFrameRow = (what: string, frame: Buffer, options?: TradeFeedOptions): Row => ({
  stage: 'stream',
  what,
  code: 'invalid-frame',
  handshake: [accept(text('frame'), frame)],
  ...(options && { options }),
});

const ticketFieldRow = (field: string, value: unknown): Row => ({
  stage: 'ticket',
  what: `200 with a bad ${field}`,
  code: 'invalid-ticket',
  ticket: [issue({ [field]: value })],
});

const rows: readonly Row[] = [
  ticketRow(401),
  ticketRow(403),
  ticketRow(422),
  { ...ticketRow(429, { 'retry-after': '7' }), retryAfterMs: 7_000 },
  ticketRow(429),
  ticketRow(503),
  { ...ticketRow(503, { 'retry-after': '3' }), retryAfterMs: 3_000 },
  ticketRow(408),
  ticketRow(500),
  ticketRow(502),
  ticketRow(301, { location: '/v1/wss/tickets' }),
  ticketRow(307, { location: '/v1/wss/tickets' }),
  ticketRow(204),
  ticketRow(404),
  { stage: 'ticket', what: 'reset', code: 'ticket-endpoint-unreachable', ticket: [reset] },
  {
    stage: 'ticket',
    what: 'an answer that is not HTTP',
    code: 'ticket-endpoint-unreachable',
    ticket: [(response) => response.socket?.end(`garbage ${plantedKey}\r\n\r\n`)],
  },
  {
    stage: 'ticket',
    what: 'an unreachable port',
    code: 'ticket-endpoint-unreachable',
    options: { baseUrl: 'http://127.0.0.1:1' },
  },
  {
    stage: 'ticket',
    what: 'no answer',
    code: 'ticket-endpoint-unreachable',
    ticket: [silence],
    options: { ticketTimeoutMs: 30 },
  },
  {
    stage: 'ticket',
    what: 'an incomplete body',
    code: 'ticket-endpoint-unreachable',
    ticket: [
      (response) => {
        response.writeHead(200, { 'content-length': '900' }).write('{"ticket":', () => response.socket?.destroy());
      },
    ],
  },
  { stage: 'ticket', what: 'an unknown CA', code: 'untrusted-certificate', tls: untrusted },
  {
    stage: 'ticket',
    what: 'a certificate for another host',
    code: 'untrusted-certificate',
    tls: otherName,
    options: { tls: { ca: otherName.cert } },
  },
  {
    stage: 'ticket',
    what: 'a certificate that checkServerIdentity refuses',
    code: 'untrusted-certificate',
    tls: untrusted,
    options: { tls: { ca: untrusted.cert, checkServerIdentity: () => new Error('not pinned') } },
  },
  {
    stage: 'ticket',
    what: 'a checkServerIdentity that throws',
    code: 'untrusted-certificate',
    tls: untrusted,
    options: {
      tls: {
        ca: untrusted.cert,
        checkServerIdentity: () => {
          throw new Error('not pinned');
        },
      },
    },
  },
  {
    stage: 'ticket',
    what: 'a key function that rejects',
    code: 'api-key-unavailable',
    options: { apiKey: () => Promise.reject(new Error('the vault is sealed')) },
  },
  {
    stage: 'ticket',
    what: 'a key function that throws',
    code: 'api-key-unavailable',
    options: {
      apiKey: () => {
        throw new Error('the vault is sealed');
      },
    },
  },
  {
    stage: 'ticket',
    what: 'a key function that never answers',
    code: 'api-key-unavailable',
    options: { apiKey: () => new Promise<string>(silence), ticketTimeoutMs: 30 },
  },
  {
    stage: 'ticket',
    what: 'a key function that returns no key',
    code: 'invalid-options',
    options: { apiKey: () => '' },
  },
  {
    stage: 'ticket',
    what: '200 without JSON',
    code: 'invalid-ticket',
    ticket: [refuse(200, {}, 'planted-ticket-1')],
  },
  {
    stage: 'ticket',
    what: '200 with an endless body',
    code: 'invalid-ticket',
    ticket: [refuse(200, {}, ' '.repeat(70_000))],
  },
  ticketFieldRow('ticket', ''),
  ticketFieldRow('ticket', 'two words'),
  ticketFieldRow('token_type', 'Basic'),
  ticketFieldRow('expires_at', 'tomorrow'),
  ticketFieldRow('wss_url', 'ws://feed.example/ws'),
  ticketFieldRow('feed', 'other'),
  ticketFieldRow('subprotocol', 'a b'),
  handshakeRow(400),
  handshakeRow(401),
  handshakeRow(503),
  { ...handshakeRow(503, { 'retry-after': '4' }), retryAfterMs: 4_000 },
  handshakeRow(500),
  handshakeRow(408),
  handshakeRow(429),
  { ...handshakeRow(429, { 'retry-after': '6' }), retryAfterMs: 6_000 },
  { ...handshakeRow(408, { 'retry-after': '2' }), retryAfterMs: 2_000 },
  handshakeRow(302, { location: '/elsewhere' }),
  handshakeRow(200),
  handshakeRow(404),
  {
    stage: 'handshake',
    what: 'a 101 with a wrong Sec-WebSocket-Accept',
    status: 101,
    handshake: [(peer) => peer.socket.write(switching(peer).replace(/Accept: .*/, 'Accept: bm8='))],
  },
  {
    stage: 'handshake',
    what: 'no subprotocol in the answer',
    code: 'subprotocol-mismatch',
    handshake: [(peer) => peer.socket.write(switching(peer, ''))],
  },
  {
    stage: 'handshake',
    what: 'another subprotocol in the answer',
    code: 'subprotocol-mismatch',
    handshake: [(peer) => peer.socket.write(switching(peer, 'mmp.other.v1'))],
  },
  { stage: 'handshake', what: 'reset', code: 'handshake-unreachable', handshake: [resetHandshake] },
  {
    stage: 'handshake',
    what: 'no answer',
    code: 'handshake-unreachable',
    handshake: [silence],
    options: { handshakeTimeoutMs: 30 },
  },
  {
    stage: 'handshake',
    what: 'an unreachable port',
    code: 'handshake-unreachable',
    ticket: [issue({ wss_url: 'ws://127.0.0.1:1/ws' })],
  },
  {
    stage: 'handshake',
    what: 'an agent for another scheme',
    code: 'invalid-options',
    options: { agent: new HttpsAgent() },
  },
  {
    stage: 'handshake',
    what: 'a ticket that expires in the handshake',
    code: 'ticket-expired',
    ticket: [issue({ expires_at: '2031-01-01T00:00:00.05Z' }, { date: 'Wed, 01 Jan 2031 00:00:00 GMT' })],
    handshake: [silence],
  },
  closeRow(4001, 'connection replaced'),
  closeRow(1008, 'server push only'),
  closeRow(4003, 'access expired'),
  closeRow(4003, 'access revoked'),
  closeRow(4003, 'something else'),
  // The reasons of the contract are not secrets, although a part of them may equal a secret.
  {
    ...closeRow(4003, 'access expired'),
    what: 'e, the ticket',
    ticket: [issue({ ticket: 'e' })],
  },
  closeRow(1013, 'client too slow'),
  closeRow(1001, 'server shutdown'),
  closeRow(1000, 'bye'),
  closeRow(undefined, ''),
  closeRow(1011, 'server error'),
  closeRow(4999, 'unknown'),
  {
    stage: 'stream',
    what: 'reset',
    closeCode: 1006,
    handshake: [
      (peer, wire, n) => {
        accept(text('frame'))(peer, wire, n);
        for (const socket of wire.open) if (socket === peer.socket) socket.resetAndDestroy();
      },
    ],
  },
  {
    stage: 'stream',
    what: 'an end without a close frame',
    closeCode: 1006,
    handshake: [
      (peer) => {
        peer.socket.end(switching(peer));
      },
    ],
  },
  {
    stage: 'stream',
    what: 'silence, and no answer to a ping',
    code: 'connection-stalled',
    handshake: [accept(text('frame'))],
    options: { idleTimeoutMs: 20 },
  },
  badFrameRow('a frame over maxFrameBytes', text('x'.repeat(101)), { maxFrameBytes: 100 }),
  badFrameRow('text that is not UTF-8', wsFrame(1, Buffer.from([0xc3, 0x28]))),
  badFrameRow('a reserved opcode', wsFrame(3, 'x')),
  badFrameRow('a reserved bit', Buffer.from([0xc1, 0x01, 0x78])),
  badFrameRow('a masked frame', Buffer.from([0x81, 0x81, 1, 2, 3, 4, 0x79])),
  badFrameRow('a continuation without a first fragment', wsFrame(0, 'x')),
];

/** Rows with two services: one for the ticket, one for the handshake. */
const handshakeTlsRows = [
  { what: 'an unknown CA', tls: untrusted, options: {} },
  { what: 'a certificate for another host', tls: otherName, options: { tls: { ca: otherName.cert } } },
  {
    what: 'a certificate that checkServerIdentity refuses',
    tls: untrusted,
    options: { tls: { ca: untrusted.cert, checkServerIdentity: () => new Error('not pinned') } },
  },
] as const;

const tried = new Set<FailureRow>();

describe('the failure table on the wire', () => {
  it.each(rows.map((row) => ({ ...row, ...expectedFailure(row) })))('$stage: $what is $code, $verdict', async (row) => {
    await using wire = await startWire(row);

    // Every connection counts as stable: only a renewal follows at once.
    const backoff = { stableAfterMs: 0, ...row.options?.backoff };
    const { failure, goesOn, delayMs, events } = await outcomeOf(optionsFor(wire, { ...row.options, backoff }));

    expect(failure).toMatchObject({
      name: 'TradeFeedError',
      stage: row.stage,
      code: row.code,
      verdict: row.verdict,
      framesReceived: events.filter(({ type }) => type === 'frame').length,
      ...(row.retryAfterMs !== undefined && { retryAfterMs: row.retryAfterMs }),
      ...(row.reason && { reason: row.reason }),
    });
    expect({ status: failure.status, closeCode: failure.closeCode }).toEqual({
      status: row.status,
      closeCode: row.closeCode,
    });
    expect(goesOn).toBe(row.verdict !== 'stop');
    if (row.verdict === 'renew' && row.stage === 'stream') expect(delayMs).toBe(0);
    else if (goesOn) expect(delayMs).toBeGreaterThanOrEqual(row.retryAfterMs ?? 1);
    expect(failure.message).toContain(failure.advice);
    // An attempt is one ticket request and at most one handshake: no redirect was followed, and no request was repeated.
    expect(wire.tickets.length).toBeLessThanOrEqual(1);
    expect(wire.handshakes.length).toBeLessThanOrEqual(1);
    expect(wire.opcodes.filter((opcode) => opcode < 8)).toEqual([]);
    tried.add(failureRow(row));
  });

  it.each(handshakeTlsRows)('handshake: $what is untrusted-certificate, stop', async ({ tls, options }) => {
    await using secure = await startWire({ tls });
    await using wire = await startWire({ ticket: [issue({ wss_url: secure.wssUrl })] });

    const { failure, goesOn } = await outcomeOf(optionsFor(wire, options));

    expect(failure).toMatchObject({ stage: 'handshake', code: 'untrusted-certificate', verdict: 'stop' });
    expect(goesOn).toBe(false);
    expect(secure.handshakes).toEqual([]);
    tried.add(failureRow({ stage: 'handshake', code: 'untrusted-certificate' }));
  });

  it('ticket: an https: address of a server without TLS is ticket-endpoint-without-tls, stop', async () => {
    await using wire = await startWire({});

    const baseUrl = wire.baseUrl.replace('http:', 'https:');
    const { failure, goesOn } = await outcomeOf(optionsFor(wire, { baseUrl }));

    const observed = { stage: 'ticket', code: 'ticket-endpoint-without-tls' } as const;
    expect(failure).toMatchObject({ ...observed, verdict: 'stop', detail: 'TLS: wrong version number' });
    expect(failure.message).not.toMatch(/openssl|\n/);
    expect(goesOn).toBe(false);
    expect(wire.tickets).toEqual([]);
    tried.add(failureRow(observed));
  });

  it('stops with retries-exhausted after one first attempt and maxAttempts reconnects', async () => {
    await using wire = await startWire({ ticket: [refuse(500)] });

    const error = await new Promise((resolve) => {
      tradeFeed$('market', optionsFor(wire, { backoff: { maxAttempts: 3 } })).subscribe({ error: resolve });
    });

    expect(error).toMatchObject({
      code: 'retries-exhausted',
      stage: 'ticket',
      cause: { code: 'ticket-request-failed', status: 500 },
      previous: { code: 'ticket-request-failed', status: 500 },
    });
    expect(wire.tickets).toHaveLength(4);
    tried.add(failureRow({ stage: 'ticket', code: 'retries-exhausted' }));
  });

  it('is tested in every row', () => {
    expect(failureTable.filter((row) => !tried.has(row))).toEqual([]);
  });
});
