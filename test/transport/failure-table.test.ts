import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inspect } from 'node:util';
import { tradeFeed$ } from '../../src/index.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { redactor, Secret } from '../../src/protocol/secret.js';
import { networkFailure, safeCause } from '../../src/transport/attempt-failure.js';
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
    if (goesOn) expect(events.at(-1)).toMatchObject({ type: 'reconnecting', attempt: 1, verdict: row.verdict });
    if (row.verdict === 'renew' && row.stage === 'stream') expect(delayMs).toBe(0);
    else if (goesOn) expect(delayMs).toBeGreaterThanOrEqual(row.retryAfterMs ?? 1);
    expect(failure.message).toContain(failure.advice);
    // One ticket request and at most one handshake per attempt: it followed no redirect and repeated no request.
    expect(wire.tickets.length).toBeLessThanOrEqual(1);
    expect(wire.handshakes.length).toBeLessThanOrEqual(1);
    expect(wire.opcodes.filter((opcode) => opcode < 8)).toEqual([]);
    tried.add(failureRow(row));
  });

  it.each(refusedCertificates)('handshake: %s is untrusted-certificate, stop', async (_what, tls, options, problem) => {
    await using secure = await startWire({ tls });
    await using wire = await startWire({ ticket: [issue({ wss_url: secure.wssUrl })] });

    const { failure, goesOn } = await outcomeOf(optionsFor(wire, options));

    const observed = { stage: 'handshake', code: 'untrusted-certificate', certificate: problem } as const;
    expect(failure).toMatchObject({ stage: 'handshake', code: 'untrusted-certificate', verdict: 'stop' });
    expect(failure.certificate).toBe(problem);
    expect(goesOn).toBe(false);
    expect(secure.handshakes).toEqual([]);
    tried.add(failureRow(observed));
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

const asIs = (text: string) => text;
const errorOf = (message: string, code?: unknown): Error =>
  Object.assign(new Error(message), code !== undefined && { code });

// Every verification error that Node names (`openssl verify`, and Node's own host check).
const ofTheCertificate = `
  UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_CRL UNABLE_TO_DECRYPT_CERT_SIGNATURE UNABLE_TO_DECRYPT_CRL_SIGNATURE
  UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY CERT_SIGNATURE_FAILURE CRL_SIGNATURE_FAILURE CERT_NOT_YET_VALID CERT_HAS_EXPIRED
  CRL_NOT_YET_VALID CRL_HAS_EXPIRED ERROR_IN_CERT_NOT_BEFORE_FIELD ERROR_IN_CERT_NOT_AFTER_FIELD
  ERROR_IN_CRL_LAST_UPDATE_FIELD ERROR_IN_CRL_NEXT_UPDATE_FIELD DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE CERT_CHAIN_TOO_LONG CERT_REVOKED INVALID_CA
  INVALID_PURPOSE PATH_LENGTH_EXCEEDED CERT_UNTRUSTED CERT_REJECTED HOSTNAME_MISMATCH UNSPECIFIED
  ERR_TLS_CERT_ALTNAME_INVALID ERR_TLS_CERT_ALTNAME_FORMAT`
  .trim()
  .split(/\s+/);
const ofTheNetwork = `
  ECONNREFUSED ECONNRESET ENOTFOUND EAI_AGAIN ETIMEDOUT EHOSTUNREACH EPIPE EPROTO UND_ERR_SOCKET UND_ERR_CONNECT_TIMEOUT
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED
  OUT_OF_MEM toString`.split(/\s+/);

describe('networkFailure', () => {
  it.each([
    ['ticket', 'ticket-endpoint-unreachable'],
    ['handshake', 'handshake-unreachable'],
  ] as const)(
    'reports all errors of a certificate as untrusted, and others as unreachable: %s',
    (stage, unreachable) => {
      for (const [names, code] of [
        [ofTheCertificate, 'untrusted-certificate'],
        [ofTheNetwork, unreachable],
      ] as const)
        for (const name of names) {
          const cause = errorOf('why', name);
          const detail = /^CERT_(HAS_EXPIRED|NOT_YET)/.test(name) ? expect.stringMatching(/^why, this mac/) : 'why';
          expect([name, networkFailure(stage, cause, asIs)]).toMatchObject([name, { stage, code, detail, cause }]);
        }
    },
  );

  it('describes an OpenSSL error or line by its reason, and keeps the whole error as the cause', () => {
    const line = (reason: string) =>
      `write EPROTO 80F:error:0A00010B:SSL routines:ssl3_get_record:${reason}:../ssl3_record.c:350:\n`;
    const error = Object.assign(errorOf(line('other'), 'ERR_SSL_X'), {
      library: 'SSL routines',
      reason: 'unsupported',
    });
    expect(networkFailure('ticket', error, asIs)).toMatchObject({
      detail: 'TLS: unsupported',
      cause: { message: line('other'), code: 'ERR_SSL_X' },
    });
    // The ticket may have the right address next time.
    for (const [stage, code] of [
      ['ticket', 'ticket-endpoint-without-tls'],
      ['handshake', 'handshake-unreachable'],
    ] as const)
      expect(networkFailure(stage, errorOf('why', 'ERR_SSL_WRONG_VERSION_NUMBER'), asIs).code).toBe(code);
    expect(networkFailure('ticket', errorOf(line('wrong version number')), asIs).detail).toBe(
      'TLS: wrong version number',
    );
    expect(networkFailure('handshake', errorOf(line('length mismatch')), asIs).detail).toBe('TLS: length mismatch');
    expect(networkFailure('handshake', errorOf(line('wrong version number')), asIs)).toMatchObject({
      code: 'handshake-unreachable',
      detail: 'the server answered without TLS, although the address begins with `wss:`',
    });
  });

  it('names all addresses if connecting to several failed, and the first error decides what it means', () => {
    const many = new AggregateError(
      [errorOf('refused at ::1', 'ECONNREFUSED'), errorOf('refused at 127.0.0.1', 'X')],
      '',
    );
    const facts = networkFailure('handshake', many, asIs);
    const message = 'refused at ::1, refused at 127.0.0.1';
    expect(facts).toMatchObject({ code: 'handshake-unreachable', detail: message });
    expect(facts.cause).toMatchObject({ message, code: 'ECONNREFUSED' });
    const untrusted = new AggregateError([errorOf('why', 'CERT_REVOKED')]);
    expect(networkFailure('ticket', untrusted, asIs).code).toBe('untrusted-certificate');
  });

  it('shows no secret, wherever the original error had it', () => {
    const secret = new Secret('tkt-planted-0815');
    const below = Object.assign(errorOf('bad bytes: tkt-planted-0815', 'HPE_INVALID'), {
      rawPacket: Buffer.from('tkt-planted-0815'),
      data: 'tkt-planted-0815',
      cause: new Error('tkt-planted-0815'),
    });
    for (const error of [below, new AggregateError([below], 'tkt-planted-0815')]) {
      const facts = networkFailure('handshake', error, redactor(secret));
      const shown = [
        inspect(facts, { showHidden: true, depth: null }),
        inspect(createTradeFeedError(facts), { depth: null }),
      ];
      expect(shown.join()).not.toContain('planted');
      expect(facts.detail).toBe('bad bytes: [secret]');
    }
  });

  it("creates a failure from whatever a user's dispatcher rejects with", () => {
    for (const error of ['text', undefined, null, {}, { message: 5 }])
      expect(networkFailure('ticket', error, redactor(new Secret('k'))).code).toBe('ticket-endpoint-unreachable');
  });
});

it('safeCause contains only text that went through the redactor', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.option(fc.string()), (message, other, stack) => {
      const below = Object.assign(new Error(message, { cause: other }), { other, stack });
      const { message: shown, stack: shownStack, ...more } = safeCause(below, () => 'clean');
      expect([shown, shownStack, more]).toEqual(['clean', 'clean', {}]);
    }),
  );
});
