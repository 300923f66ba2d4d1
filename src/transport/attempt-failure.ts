import { createTradeFeedError } from '../protocol/failures/classify.js';
import type { ServiceFailureCode } from '../protocol/failures/failure-code.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import { type ClassifyOption, applyClassify } from '../protocol/failures/apply-classify.js';

/** Creates the error of an attempt. The option `classify`, if set, decides its verdict. */
export const attemptFailure = (settings: ClassifyOption, facts: FailureFacts): unknown =>
  applyClassify(settings, createTradeFeedError(facts));

/** Returns the facts of a network error: the certificate is not trusted, the server has no TLS, or the endpoint is unreachable. */
export const networkFailure = (
  stage: 'ticket' | 'handshake',
  error: unknown,
  redact: (text: string) => string,
): FailureFacts => {
  const cause = safeCause(error, redact) as Error & { code?: string };
  return { stage, code: failureCodeOf(stage, cause.code ?? ''), detail: tlsReason(error) ?? cause.message, cause };
};

const failureCodeOf = (stage: 'ticket' | 'handshake', code: string): ServiceFailureCode => {
  if (certificateErrors.has(code)) return 'untrusted-certificate';
  // At the handshake the address comes from the service and may be right again in the next ticket.
  return stage === 'ticket' && code === notTls ? 'ticket-endpoint-without-tls' : unreachable[stage];
};

/** OpenSSL reports this if the first bytes of the server are no TLS record, for example a response of HTTP. */
const notTls = 'ERR_SSL_WRONG_VERSION_NUMBER';

/** Returns the reason in an error of OpenSSL. Its message is a line with memory addresses and paths of source files. */
const tlsReason = (error: unknown): string | undefined => {
  const { library, reason } = Object(firstOf(error)) as MaybeError;
  return library === 'SSL routines' && typeof reason === 'string' ? `TLS: ${reason}` : undefined;
};

/**
 * Copies an error without secrets. Parsers put the bytes that they could not parse into their errors, and these bytes may contain a
 * ticket. Accepts any value: a user's dispatcher or agent may reject with anything.
 */
export const safeCause = (error: unknown, redact: (text: string) => string): Error => {
  const first = firstOf(error);
  const { message, stack, code } = Object(first) as MaybeError;
  const text = redact(typeof message === 'string' ? message : String(first));
  return Object.assign(new Error(text), {
    stack: typeof stack === 'string' ? redact(stack) : text,
    ...(typeof code === 'string' && { code }),
  });
};

interface MaybeError {
  readonly message?: unknown;
  readonly stack?: unknown;
  readonly code?: unknown;
  readonly errors?: unknown;
  readonly library?: unknown;
  readonly reason?: unknown;
}

// A connection attempt to several addresses fails with one error per address. The outer error has no useful message.
const firstOf = (error: unknown): unknown => {
  const { errors } = Object(error) as MaybeError;
  return (Array.isArray(errors) && (errors[0] as unknown)) || error;
};

const unreachable = { ticket: 'ticket-endpoint-unreachable', handshake: 'handshake-unreachable' } as const;

// Node's names for the verification errors of OpenSSL, and the errors of Node's check of the host name.
const certificateErrors = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_CRL',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'UNABLE_TO_DECRYPT_CRL_SIGNATURE',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'CERT_SIGNATURE_FAILURE',
  'CRL_SIGNATURE_FAILURE',
  'CERT_NOT_YET_VALID',
  'CERT_HAS_EXPIRED',
  'CRL_NOT_YET_VALID',
  'CRL_HAS_EXPIRED',
  'ERROR_IN_CERT_NOT_BEFORE_FIELD',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'ERROR_IN_CRL_LAST_UPDATE_FIELD',
  'ERROR_IN_CRL_NEXT_UPDATE_FIELD',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_CHAIN_TOO_LONG',
  'CERT_REVOKED',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'HOSTNAME_MISMATCH',
  'UNSPECIFIED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_TLS_CERT_ALTNAME_FORMAT',
]);
