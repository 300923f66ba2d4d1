import type { FailureFacts } from '../protocol/failure.js';

// The verification errors of OpenSSL as Node names them, and its own check of the host name.
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
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

const unreachable = { ticket: 'ticket-endpoint-unreachable', handshake: 'handshake-unreachable' } as const;

interface NetworkError {
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
}

// A connection that was tried at several addresses fails with one error for each, and says little itself.
const firstOf = (error: unknown): NetworkError => {
  const { errors } = error as { errors?: readonly unknown[] };
  return (errors?.[0] ?? error) as NetworkError;
};

/**
 * Copies the harmless part of an error from below: parsers there put the bytes they choked on into it, and these bytes may
 * hold a ticket.
 */
export const plainCause = (error: unknown, redact: (text: string) => string): Error => {
  const { message, code, stack = message } = firstOf(error);
  return Object.assign(new Error(redact(message)), { stack: redact(stack), ...(code !== undefined && { code }) });
};

/** Says what a network error means: an untrusted certificate, or nobody there. */
export const networkFailure = (
  stage: 'ticket' | 'handshake',
  error: unknown,
  redact: (text: string) => string,
): FailureFacts => {
  const cause = plainCause(error, redact) as Error & { code?: string };
  const code =
    cause.code !== undefined && certificateErrors.has(cause.code) ? 'untrusted-certificate' : unreachable[stage];
  return { stage, code, detail: cause.message, cause };
};
