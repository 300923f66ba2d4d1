import { describe, expect, it } from '@jest/globals';
import { tradeFeed$ } from '../../src/index.js';
import { expectedFailure, failureRow, type FailureRow, failureTable } from '../support/failure-table.js';
import { optionsFor, outcomeOf } from '../support/feed.js';
import { issue, refuse, startWire } from '../support/wire.js';
import { refusedCertificates, rows } from './wire-failures.js';

const tried = new Set<FailureRow>();

describe('the failure table on the wire', () => {
  it.each(rows.map((row) => ({ ...row, ...expectedFailure(row) })))('$stage: $what is $code, $verdict', async (row) => {
    await using wire = await startWire(row);

    // Every connection counts as stable, so only renewals follow at once.
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
    // One ticket request and at most one handshake per attempt: it followed no redirect and repeated no request.
    expect(wire.tickets.length).toBeLessThanOrEqual(1);
    expect(wire.handshakes.length).toBeLessThanOrEqual(1);
    expect(wire.opcodes.filter((opcode) => opcode < 8)).toEqual([]);
    tried.add(failureRow(row));
  });

  it.each(refusedCertificates)('handshake: %s is untrusted-certificate, stop', async (_what, tls, options) => {
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

  it.each([
    ['on this thread', {}],
    ['in a worker', { receiveIn: 'worker' } as const],
  ])('handshake: a wss: address of a server without TLS says so, %s', async (_where, options) => {
    await using plain = await startWire({});
    await using wire = await startWire({
      ticket: [issue({ wss_url: plain.baseUrl.replace('http:', 'wss:') })],
    });

    const { failure, goesOn } = await outcomeOf(optionsFor(wire, options));

    expect(failure).toMatchObject({
      stage: 'handshake',
      code: 'handshake-unreachable',
      detail: 'the server answered without TLS, although the address begins with `wss:`',
    });
    expect(failure.message).not.toMatch(/openssl|EPROTO|\n/i);
    expect(goesOn).toBe(true);
    expect(plain.handshakes).toEqual([]);
  });

  it('stops with retries-exhausted after the first attempt and maxAttempts reconnects', async () => {
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

  it('has a test for every row', () => {
    expect(failureTable.filter((row) => !tried.has(row))).toEqual([]);
  });
});
