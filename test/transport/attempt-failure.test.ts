import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inspect } from 'node:util';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { redactor, Secret } from '../../src/protocol/secret.js';
import { networkFailure, safeCause } from '../../src/transport/attempt-failure.js';

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
  it.each(ofTheCertificate)('reports %s as an untrusted certificate at both stages', (code) => {
    for (const stage of ['ticket', 'handshake'] as const) {
      expect(networkFailure(stage, errorOf('why', code), asIs)).toEqual({
        stage,
        code: 'untrusted-certificate',
        detail: 'why',
        cause: errorOf('why', code),
      });
    }
  });

  it.each(ofTheNetwork)('reports %j as an unreachable endpoint', (code) => {
    expect(networkFailure('ticket', errorOf('why', code), asIs).code).toBe('ticket-endpoint-unreachable');
    expect(networkFailure('handshake', errorOf('why', code), asIs).code).toBe('handshake-unreachable');
  });

  it('reports a server without TLS only at the ticket request, as the next ticket may have the right address', () => {
    const error = errorOf('why', 'ERR_SSL_WRONG_VERSION_NUMBER');
    expect(networkFailure('ticket', error, asIs).code).toBe('ticket-endpoint-without-tls');
    expect(networkFailure('handshake', error, asIs).code).toBe('handshake-unreachable');
  });

  it('describes an OpenSSL error by its reason, and keeps the whole error as the cause', () => {
    const line =
      '809CE8416D7F0000:error:0A000102:SSL routines:unsupported protocol:../deps/openssl/statem_lib.c:1986:\n';
    const error = Object.assign(errorOf(line, 'ERR_SSL_UNSUPPORTED_PROTOCOL'), {
      library: 'SSL routines',
      reason: 'unsupported protocol',
    });
    const { detail, cause } = networkFailure('ticket', error, asIs);
    expect(detail).toBe('TLS: unsupported protocol');
    expect(cause).toMatchObject({ message: line, code: 'ERR_SSL_UNSUPPORTED_PROTOCOL' });
  });

  it('describes an OpenSSL line in a write error by its reason, and a server without TLS in a sentence', () => {
    const error = (reason: string) =>
      errorOf(
        `write EPROTO 80F:error:0A00010B:SSL routines:ssl3_get_record:${reason}:../ssl3_record.c:350:\n`,
        'EPROTO',
      );
    expect(networkFailure('handshake', error('length mismatch'), asIs).detail).toBe('TLS: length mismatch');
    expect(networkFailure('ticket', error('wrong version number'), asIs).detail).toBe('TLS: wrong version number');
    expect(networkFailure('handshake', error('wrong version number'), asIs)).toMatchObject({
      code: 'handshake-unreachable',
      detail: 'the server answered without TLS, although the address begins with `wss:`',
    });
  });

  it('uses the first error if connecting to several addresses failed', () => {
    const many = new AggregateError(
      [errorOf('refused at ::1', 'ECONNREFUSED'), errorOf('refused at 127.0.0.1', 'X')],
      '',
    );
    const facts = networkFailure('handshake', many, asIs);
    expect(facts).toMatchObject({ code: 'handshake-unreachable', detail: 'refused at ::1' });
    expect(facts.cause).toMatchObject({ message: 'refused at ::1', code: 'ECONNREFUSED' });
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

  it.each([['text'], [undefined], [null], [{}], [{ message: 5 }]])(
    "creates a failure from whatever a user's dispatcher rejects with: %p",
    (error) => {
      const facts = networkFailure('ticket', error, redactor(new Secret('k')));
      expect(facts.code).toBe('ticket-endpoint-unreachable');
    },
  );
});

describe('safeCause', () => {
  it('copies the stack without secrets', () => {
    const secret = 'tkt-planted-0815';
    const below = Object.assign(new Error(secret), { stack: `Error: ${secret}\n    at ${secret}` });
    expect(safeCause(below, redactor(new Secret(secret))).stack).toBe('Error: [secret]\n    at [secret]');
    expect(safeCause({ message: `no stack: ${secret}` }, redactor(new Secret(secret))).stack).toBe(
      'no stack: [secret]',
    );
  });

  it('contains only text that went through the redactor', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (message, other) => {
        const below = Object.assign(new Error(message, { cause: other }), { other });
        expect(safeCause(below, () => 'clean').message).toBe('clean');
        expect(Object.keys(safeCause(below, () => 'clean'))).toEqual([]);
      }),
    );
  });
});
