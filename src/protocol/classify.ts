import { CloseCode, CloseReason } from './close-code.js';
import type { FailureFacts, TradeFeedError, Verdict } from './failure.js';
import { errorBy, type Meaning, meaningIn } from './meaning.js';
import { invalidOptions, retriesExhausted } from './own-meanings.js';
import { printable } from './printable.js';

const untrustedCertificate = {
  code: 'untrusted-certificate',
  verdict: 'stop',
  meaning: 'The server did not show a certificate that this machine trusts for its host.',
  advice: 'Give the CA of a private service in the option `tls: { ca }`, or check who answers at that address.',
} as const;

const ticketRequestFailed = {
  stage: 'ticket',
  code: 'ticket-request-failed',
  verdict: 'backoff',
  meaning: 'The service could not answer the ticket request.',
  advice: 'Nothing to do: the request is repeated with backoff.',
} as const;

const handshakeFailed = {
  stage: 'handshake',
  code: 'handshake-failed',
  verdict: 'backoff',
  meaning: 'The service could not answer the handshake.',
  advice: 'Nothing to do: the feed tries again with backoff.',
} as const;

const restoreAccess = 'Restore access, or use a key of an account that has it.';
const nothingToDo = 'Nothing to do: the feed reconnects with a fresh ticket.';

/**
 * The meaning of every failure (contract, section 7). The first row that fits counts. A row without a status or close code
 * is for what the client sees by itself, and fits by its code.
 */
export const meanings: readonly Meaning[] = [
  {
    stage: 'ticket',
    status: 401,
    code: 'invalid-api-key',
    verdict: 'stop',
    meaning: 'The service does not accept the API key.',
    advice: 'Give a valid key in the option `apiKey` or in TRADE_FEED_API_KEY.',
  },
  {
    stage: 'ticket',
    status: 403,
    code: 'not-entitled',
    verdict: 'stop',
    meaning: 'The account is inactive or is not entitled to the stream.',
    advice: restoreAccess,
  },
  {
    stage: 'ticket',
    status: 422,
    code: 'invalid-ticket-request',
    verdict: 'stop',
    meaning: 'The service does not know the feed that was asked for, or could not read the request.',
    advice: 'Ask for `market` or `raw`.',
  },
  {
    stage: 'ticket',
    status: 429,
    code: 'ticket-rate-limited',
    verdict: 'wait',
    meaning: 'Too many tickets were requested in this window.',
    advice: 'Look for a second client of the account, if it happens often; the feed waits as long as the service says.',
  },
  {
    stage: 'ticket',
    status: 503,
    code: 'credential-service-unavailable',
    verdict: 'backoff',
    meaning: 'The service cannot issue tickets at the moment.',
    advice: 'Nothing to do: the request is repeated with backoff.',
  },
  { status: 408, ...ticketRequestFailed },
  { status: '5xx', ...ticketRequestFailed },
  {
    stage: 'ticket',
    status: 'other',
    code: 'ticket-request-rejected',
    verdict: 'stop',
    meaning:
      'The answer to the ticket request is none that the service gives; a redirect is never followed with a key.',
    advice: 'Check `baseUrl`: it must be the address of the service itself.',
  },
  {
    stage: 'ticket',
    code: 'ticket-endpoint-unreachable',
    verdict: 'backoff',
    meaning: 'The ticket request got no answer.',
    advice:
      'Check the network, the name in `baseUrl` and the proxy, if this goes on; the request is repeated with backoff.',
  },
  { stage: 'ticket', ...untrustedCertificate },
  {
    stage: 'ticket',
    code: 'api-key-unavailable',
    verdict: 'backoff',
    meaning: 'The `apiKey` function gave no key.',
    advice: 'See the cause: the function is yours; it is asked again with backoff.',
  },
  {
    stage: 'ticket',
    code: 'invalid-ticket',
    verdict: 'stop',
    meaning: 'The service answered 200 with a body that is not a ticket.',
    advice:
      'Check `baseUrl`: it must be the address of the service itself; if it is, tell the service which field is named here.',
  },
  {
    stage: 'handshake',
    status: 400,
    code: 'handshake-rejected',
    verdict: 'stop',
    meaning: 'The feed or the subprotocol of the handshake is not valid.',
    advice: 'Check that nothing between here and the service changes the address or the headers.',
  },
  {
    stage: 'handshake',
    status: 401,
    code: 'ticket-rejected',
    verdict: 'renew',
    meaning: 'The service does not accept the ticket: expired, used or revoked.',
    advice: nothingToDo,
  },
  {
    stage: 'handshake',
    status: 503,
    code: 'capacity-full',
    verdict: 'backoff',
    meaning: 'The service has no room for another user.',
    advice: 'Nothing to do: the feed tries again with backoff.',
  },
  { status: '5xx', ...handshakeFailed },
  // Temporary, and not caused by this client: a busy server or proxy sends it (RFC 9110, 15.5.9; RFC 6585, 4).
  { status: 408, ...handshakeFailed },
  { status: 429, ...handshakeFailed },
  {
    stage: 'handshake',
    status: 'other',
    code: 'handshake-failed',
    verdict: 'stop',
    meaning: 'The answer to the handshake is none that the service gives; a redirect is never followed.',
    advice: 'Check the proxy between here and the service: it must pass a WebSocket upgrade on.',
  },
  {
    stage: 'handshake',
    code: 'subprotocol-mismatch',
    verdict: 'stop',
    meaning: 'The service did not agree to the subprotocol of the ticket.',
    advice: 'Check the proxy between here and the service, and whether this version of the library is current.',
  },
  {
    stage: 'handshake',
    code: 'handshake-unreachable',
    verdict: 'backoff',
    meaning: 'The handshake got no answer.',
    advice: 'Check the network and the proxy, if this goes on; the feed tries again with backoff.',
  },
  { stage: 'handshake', ...untrustedCertificate },
  {
    stage: 'handshake',
    code: 'ticket-expired',
    verdict: 'renew',
    meaning: 'The ticket ran out before the handshake was done.',
    advice: nothingToDo,
  },
  {
    stage: 'stream',
    closeCode: CloseCode.connectionReplaced,
    code: 'connection-replaced',
    verdict: 'stop',
    meaning: 'Another connection of the same account took over: an account has one, across all keys and both feeds.',
    advice: 'Find the other client, or share one feed in this process; to reconnect would evict the other one in turn.',
  },
  {
    stage: 'stream',
    closeCode: CloseCode.serverPushOnly,
    code: 'policy-violation',
    verdict: 'stop',
    meaning: 'The service says that a message was sent to it; this library sends none.',
    advice: 'Look for a proxy between here and the service that writes to the connection.',
  },
  {
    stage: 'stream',
    closeCode: CloseCode.accessLost,
    reason: CloseReason.accessExpired,
    code: 'access-expired',
    verdict: 'renew',
    meaning: 'The access of this connection expired.',
    advice: nothingToDo,
  },
  {
    stage: 'stream',
    closeCode: CloseCode.accessLost,
    reason: CloseReason.accessRevoked,
    code: 'access-revoked',
    verdict: 'renew',
    meaning: 'Access was revoked.',
    advice: 'Restore access, or use a key of an account that has it; the next ticket request shows whether it is back.',
  },
  {
    stage: 'stream',
    closeCode: CloseCode.accessLost,
    code: 'connection-closed',
    verdict: 'renew',
    meaning: 'Access was lost, for a reason that the contract does not name.',
    advice: nothingToDo,
  },
  {
    stage: 'stream',
    closeCode: CloseCode.clientTooSlow,
    code: 'client-too-slow',
    verdict: 'backoff',
    meaning: 'This process did not read the stream as fast as it came.',
    advice: "Do less in each `next`, or set `receiveIn: 'worker'`: a blocked event loop reads nothing.",
  },
  {
    stage: 'stream',
    closeCode: CloseCode.serverShutdown,
    code: 'server-shutdown',
    verdict: 'backoff',
    meaning: 'The service shut down.',
    advice: 'Nothing to do: the feed reconnects with backoff.',
  },
  {
    stage: 'stream',
    closeCode: 1006,
    code: 'connection-lost',
    verdict: 'renew',
    meaning: 'The connection broke off without a close frame.',
    advice: nothingToDo,
  },
  {
    stage: 'stream',
    code: 'connection-stalled',
    verdict: 'renew',
    meaning: 'The connection fell silent and did not answer a ping.',
    advice: nothingToDo,
  },
  {
    stage: 'stream',
    code: 'invalid-frame',
    verdict: 'backoff',
    meaning: 'A frame broke the WebSocket protocol or is larger than `maxFrameBytes`.',
    advice: 'Raise `maxFrameBytes` if large frames are expected; otherwise look for a proxy that changes the bytes.',
  },
  {
    stage: 'stream',
    closeCode: 'other',
    code: 'connection-closed',
    verdict: 'backoff',
    meaning: 'The connection was closed.',
    advice: 'Nothing to do: the feed reconnects with backoff.',
  },
  invalidOptions,
  retriesExhausted,
];

/**
 * Says what a failure asks for, by the table of the contract's section 7: one of `stop`, `renew`, `wait`, `backoff`.
 *
 * Pure. Takes a {@link TradeFeedError} or bare facts; a status or close code that no row names falls to the row of all others.
 *
 * @param failure - the stage with a status, a close code and its reason, or a code
 * @throws TypeError when the facts name no failure: no status, close code or known code at that stage
 * @see the contract, section 7
 * @example
 * ```ts
 * import { classify } from 'rx-trade-feed';
 *
 * classify({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' }); // 'stop'
 * classify({ stage: 'ticket', status: 503 }); // 'backoff'
 * ```
 */
export const classify = (failure: FailureFacts): Verdict => meaningIn(meanings, failure).verdict;

/**
 * Makes the {@link TradeFeedError} for what was observed: code, verdict, message and advice come from the table.
 *
 * Also of use in tests of your own error handling.
 *
 * @param facts - see {@link FailureFacts}
 * @throws TypeError when the facts name no failure
 * @example
 * ```ts
 * import { tradeFeedError } from 'rx-trade-feed';
 *
 * tradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown' }).code; // 'server-shutdown'
 * ```
 */
export const tradeFeedError = (facts: FailureFacts): TradeFeedError => {
  const { reason, detail } = facts;
  const shown = { ...facts, reason: reason && onOneLine(reason), detail: detail && onOneLine(detail) };
  const error = errorBy(meaningIn(meanings, facts), shown);
  return reason === undefined ? error : Object.assign(error, { reason });
};

// A close reason is the service's to write, and messages go to logs; the field has it as it was sent.
const onOneLine = (text: string): string => printable(text.trim());
