import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { expectedFailure } from '../support/failure-table.js';
import { fuzz, seed, timeoutFor } from './fuzz.js';
import { httpAround, type HttpBytes, rightHandshake, rightTicket, written } from './http-bytes.js';
import { acceptFor, type Answer, goodHead, goodTicket, ticketFields } from './answers.js';
import { type Scripted, startScripted } from './scripted.js';

/** Short timeouts for a silent server, long ones for a server that ends the connection. */
const deadlines = ({ end }: HttpBytes) => {
  const ms = end === 'stay' ? 60 : 15_000;
  return { ticketTimeoutMs: ms, handshakeTimeoutMs: ms };
};

const replaced = written({ before: [], ...rightHandshake, changes: [], cuts: [], end: 'end' });
const tickets = httpAround(rightTicket(JSON.stringify(ticketFields('@WSS@'))));
const handshakes = httpAround(rightHandshake);

/** Bytes that a server sends before its answer, or without end. */
const endless = fc.record({
  start: fc.constantFrom('', 'HTTP/1.1 200 OK\r\n', 'HTTP/1.1 101 Switching Protocols\r\n', 'HTTP/1.1 200 OK\r\nX: '),
  again: fc.constantFrom('X: y\r\n', 'x', '\r\n', ' ', '\0', 'HTTP/1.1 100 Continue\r\n\r\n', '1\r\nx\r\n'),
  stage: fc.constantFrom('ticket', 'handshake'),
});

const statuses = fc.record({
  status: fc.oneof(
    fc.constantFrom(200, 204, 302, 307, 400, 401, 403, 404, 408, 422, 426, 429, 500, 502, 503, 504),
    fc.integer({ min: 200, max: 999 }),
  ),
  phrase: fc.constantFrom('', 'OK', 'a b c', '\xe9\x80'),
  stage: fc.constantFrom('ticket' as const, 'handshake' as const),
  end: fc.constantFrom('end' as const, 'stay' as const),
});

describe(`HTTP answers of a hostile server, with FUZZ_SEED=${seed}`, () => {
  let scripted: Scripted;
  beforeAll(async () => void (scripted = await startScripted()));
  afterAll(async () => {
    await scripted[Symbol.asyncDispose]();
  });
  const run = (stage: string, answer: Answer, options = {}) =>
    scripted.run(
      stage === 'ticket' ? { ticket: answer, handshake: replaced } : { ticket: goodTicket, handshake: answer },
      options,
    );

  it(
    'to a ticket request end in a ticket or a clear failure',
    () =>
      fuzz('HTTP heads of the ticket response', tickets, 72, async (http) => {
        const { code, failure, requests } = await run('ticket', written(http), deadlines(http));
        // The deadline of the handshake may pass before the handshake starts.
        if (requests.length === 1 && http.end !== 'stay') expect(failure.stage).toBe('ticket');
        return code;
      }),
    timeoutFor(150),
  );

  it(
    'to a handshake end in a connection or a clear failure',
    () =>
      fuzz('HTTP heads of the handshake', handshakes, 72, async (http) => {
        const { bytes, end } = written(http);
        let isAccepted = false;
        const answer: Answer = {
          end,
          bytes: (request, wssUrl) => {
            const pieces = bytes(request, wssUrl);
            const sent = Buffer.concat(pieces).toString('latin1');
            isAccepted = sent.includes(acceptFor(request)) && sent.includes('mmp.trade-batch.v1');
            return pieces;
          },
        };
        const { code, failure } = await run('handshake', answer, { ...deadlines(http), ticketTimeoutMs: 15_000 });
        expect(failure.stage).not.toBe('ticket');
        // Only the valid answer to this handshake opens a connection.
        if (failure.stage === 'stream') expect(isAccepted).toBe(true);
        return code;
      }),
    timeoutFor(150),
  );

  it(
    'of any status have the meaning of the table',
    () =>
      fuzz('HTTP statuses', statuses, 72, async ({ status, phrase, stage, end }) => {
        const answer = { line: `HTTP/1.1 ${status} ${phrase}`, headers: ['Content-Length: 0'], body: '' };
        const bytes = written({ before: [], ...answer, changes: [], cuts: [], end });
        const { code, failure } = await run(stage, bytes);
        // A 200 without a body is not a ticket.
        const isIssued = stage === 'ticket' && status === 200;
        expect(code).toBe(isIssued ? 'invalid-ticket' : expectedFailure({ stage, status }).code);
        expect(failure.status).toBe(isIssued ? undefined : status);
        return code;
      }),
    timeoutFor(150),
  );

  it.each([
    ['no subprotocol', /Sec-WebSocket-Protocol: .*\r\n/, '', 'subprotocol-mismatch'],
    ['another subprotocol', 'mmp.trade-batch.v1', 'other', 'subprotocol-mismatch'],
    ['the subprotocol in capitals', 'mmp.trade-batch.v1', 'MMP.TRADE-BATCH.V1', 'subprotocol-mismatch'],
    ['two subprotocols', 'mmp.trade-batch.v1', 'mmp.trade-batch.v1, b', 'subprotocol-mismatch'],
    ['no Sec-WebSocket-Accept', /Sec-WebSocket-Accept: .*\r\n/, '', 'handshake-failed'],
    ['a wrong Sec-WebSocket-Accept', /Accept: ./, 'Accept: ', 'handshake-failed'],
    ['another upgrade', 'Upgrade: websocket', 'Upgrade: h2c', 'handshake-failed'],
    ['an extension', 'Upgrade: websocket', 'Sec-WebSocket-Extensions: permessage-deflate\r\n$&', 'handshake-failed'],
  ])('to a handshake with %s open no connection', async (_what, part, instead, expected) => {
    const bytes = (request: string) => [Buffer.from(goodHead(request).replace(part, instead))];
    const { code, failure } = await run('handshake', { bytes, end: 'end' });
    expect([code, failure.verdict]).toEqual([expected, 'stop']);
  });

  it(
    'without an end are aborted at the deadline',
    () =>
      fuzz('endless answers', endless, 48, async ({ start, again, stage }) => {
        const pieces = [Buffer.from(start), ...Array<Buffer>(40).fill(Buffer.from(again.repeat(20)))];
        const options = stage === 'ticket' ? { ticketTimeoutMs: 60 } : { handshakeTimeoutMs: 60 };
        const { code, failure } = await run(stage, { bytes: () => pieces, end: 'stay' }, options);
        expect(failure.stage).toBe(stage);
        return code;
      }),
    timeoutFor(48),
  );
});
