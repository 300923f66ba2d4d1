import { isMainThread } from 'node:worker_threads';
import type { Settings } from '../feed/options.js';
import { attemptFailure } from '../protocol/failures/classify.js';
import type { CertificateProblem, ServiceFailureCode } from '../protocol/failures/meanings.js';
import { type ClassifyOption, type FailureFacts, joinDetails } from '../protocol/failures/trade-feed-error.js';
import { isTime } from '../protocol/type-guards.js';
import { messageOf } from './addresses.js';
import { hasProxy } from './proxy-for.js';

type Reaching = ClassifyOption & Pick<Settings, 'dispatcher' | 'agent' | 'receiveIn'>;

/** Creates the error for an address that couldn't be reached. If a proxy was left unused, the error says so. */
export const reachFailure = (settings: Reaching, address: string, facts: FailureFacts): unknown => {
  const { stage, code } = facts;
  // A worker is another thread, with TLS defaults of its own.
  const inWorker = code === 'untrusted-certificate' && settings.receiveIn === 'worker' && !isMainThread;
  const detail = joinDetails(facts.detail, inWorker && 'in the worker');
  const client = stage === 'ticket' ? settings.dispatcher : settings.agent;
  // `toPublic()` removes the detail, so the settings of this machine don't leave the server.
  const isUnused = code === unreachable[stage] && !client && hasProxy(new URL(address), process.env);
  const hint = settings.receiveIn === 'worker' ? `${unusedProxy}, ${notInWorker}` : unusedProxy;
  return attemptFailure(settings, { ...facts, detail: isUnused ? [detail, hint].filter(Boolean).join('; ') : detail });
};

const unusedProxy = "HTTPS_PROXY is set, but the feed doesn't use it: pass `await proxyFromEnvironment()`";
const notInWorker = "and leave out `receiveIn: 'worker'`, which can't use a proxy";

export const networkFailure = (
  stage: 'ticket' | 'handshake',
  error: unknown,
  redact: (text: string) => string,
): FailureFacts => {
  const cause = safeCause(error, redact) as Error & { code?: string };
  const reason = tlsReason(error, cause);
  const detail = stage === 'handshake' && reason === notTlsReason ? withoutTls : reason && `TLS: ${reason}`;
  const code = failureCodeOf(stage, cause.code ?? '');
  const refusal = code === 'invalid-options' && `the dispatcher refuses the request: ${cause.message}`;
  const certificate = code === 'untrusted-certificate' ? problemOf(cause.code, fieldsOf(firstOf(error))) : undefined;
  const dates = certificate === 'date' && datesIn(fieldsOf(firstOf(error)), Date.now());
  const shown = joinDetails(detail ?? (refusal || cause.message), dates);
  return { stage, code, certificate, detail: shown, cause };
};

const problemOf = (code: string | undefined, { host }: Fields): CertificateProblem | undefined => {
  if (/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/.test(code ?? '')) return 'date';
  // Only Node's own check names the host; `checkServerIdentity` can have another reason.
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' && host !== undefined ? 'host' : undefined;
};

/** Names the dates of a certificate, if the connection was this library's, and this machine's clock. */
const datesIn = ({ validFrom, validTo }: Fields, now: number): string => {
  const valid = isTime(validFrom) && isTime(validTo) && `valid from ${iso(validFrom)} to ${iso(validTo)}`;
  return joinDetails(valid, `this machine's clock says ${iso(now)}`) as string;
};

const iso = (ms: number): string => new Date(ms).toISOString();

const failureCodeOf = (stage: 'ticket' | 'handshake', code: string): ServiceFailureCode => {
  if (certificateErrors.some((form) => form.test(code))) return 'untrusted-certificate';
  if (code === refusedRequest) return 'invalid-options';
  // At the handshake the address comes from the service and may be right again in the next ticket.
  return stage === 'ticket' && code === notTls ? 'ticket-endpoint-without-tls' : unreachable[stage];
};

/** What a dispatcher reports if it can't handle this client's requests, as one of another version of undici. */
const refusedRequest = 'UND_ERR_INVALID_ARG';

/** OpenSSL reports this if the server's first bytes aren't a TLS record but, say, an HTTP response. */
const notTls = 'ERR_SSL_WRONG_VERSION_NUMBER';
const notTlsReason = 'wrong version number';
const withoutTls = 'the server answered without TLS, although the address begins with `wss:`';

/** Extracts OpenSSL's reason. Its message is a line of memory addresses and paths, and all that a failed write has. */
export const tlsReason = (error: unknown, { message }: Error): string | undefined => {
  const { library, reason } = fieldsOf(firstOf(error));
  if (library === 'SSL routines' && typeof reason === 'string') return reason;
  return /:error:[0-9A-F]+:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1];
};

/**
 * Returns an error that's safe to show. Parsers quote bytes they can't parse, perhaps a ticket, and a dispatcher or
 * agent may reject with anything.
 */
export const safeCause = (error: unknown, redact: (text: string) => string): Error => {
  const first = firstOf(error);
  const { stack, code } = fieldsOf(first);
  const message = messageOf(error);
  const text = redact(message ?? String(first));
  return Object.assign(new Error(text), {
    stack: typeof stack === 'string' ? redact(stack) : text,
    ...(typeof code === 'string' && { code }),
  });
};

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (error: unknown): Fields => Object(error) as Fields;

// Connecting to several addresses fails with one error per address: the first one decides what it means.
const firstOf = (error: unknown): unknown => {
  const { errors } = fieldsOf(error);
  return (Array.isArray(errors) && (errors[0] as unknown)) || error;
};

const unreachable = {
  ticket: 'ticket-endpoint-unreachable',
  handshake: 'handshake-unreachable',
  stream: undefined,
} as const;

// Node's names for OpenSSL's verification errors (`openssl verify`), and the errors of Node's own host check.
const certificateErrors = [
  /^(UNABLE_TO|CERT|CRL|ERROR_IN_CERT|ERROR_IN_CRL|ERR_TLS_CERT_ALTNAME)_/,
  /^(DEPTH_ZERO_)?SELF_SIGNED_CERT/,
  /^(INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|UNSPECIFIED)$/,
];
