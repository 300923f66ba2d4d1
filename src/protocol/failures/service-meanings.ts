import { CloseCode, CloseReason } from '../close-code.js';
import { invalidOptions, retriesExhausted } from './client-meanings.js';
import type { Meaning } from './meaning.js';

const untrustedCertificate = {
  code: 'untrusted-certificate',
  verdict: 'stop',
  meaning: 'This machine does not trust the certificate of the server, or it is for another host.',
  advice: 'Set the option `tls: { ca }` to the CA of a private service, or check which server answers at that address.',
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
 * The meaning of every `ServiceFailureCode` (contract, section 7). The first row that matches is used. A row without a status or close code
 * is for a failure that the client itself detects, and matches by its code.
 */
export const serviceMeanings: readonly Meaning[] = [
  {
    stage: 'ticket',
    status: 401,
    code: 'invalid-api-key',
    verdict: 'stop',
    meaning: 'The service does not accept the API key.',
    advice: 'Set the option `apiKey` or TRADE_FEED_API_KEY to a valid key.',
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
    meaning: 'The service does not know the requested feed, or could not read the request.',
    advice: 'Request `market` or `raw`.',
  },
  {
    stage: 'ticket',
    status: 429,
    code: 'ticket-rate-limited',
    verdict: 'wait',
    meaning: 'Too many tickets were requested in this window.',
    advice:
      'If this happens often, look for a second client of the account; the feed waits as long as the service demands.',
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
    meaning: 'Unexpected answer to the ticket request; a redirect is never followed with a key.',
    advice: 'Check `baseUrl`: it must be the address of the service itself.',
  },
  {
    stage: 'ticket',
    code: 'ticket-endpoint-unreachable',
    verdict: 'backoff',
    meaning: 'The ticket request got no answer.',
    advice:
      'If this continues, check the network, the name in `baseUrl` and the proxy; the request is repeated with backoff.',
  },
  {
    stage: 'ticket',
    code: 'ticket-endpoint-without-tls',
    verdict: 'stop',
    meaning: 'The server answered without TLS, although the address begins with `https:`.',
    advice: 'Check the host and the port in `baseUrl`: this port speaks plain HTTP or another protocol.',
  },
  { stage: 'ticket', ...untrustedCertificate },
  {
    stage: 'ticket',
    code: 'api-key-unavailable',
    verdict: 'backoff',
    meaning: 'The `apiKey` function returned no key.',
    advice: 'See the cause, which your function threw; it is called again with backoff.',
  },
  {
    stage: 'ticket',
    code: 'invalid-ticket',
    verdict: 'stop',
    meaning: 'The service answered 200 with a body that is not a ticket.',
    advice:
      'Check `baseUrl`: it must be the address of the service itself; if it is, report the field that is named here to the service.',
  },
  {
    stage: 'handshake',
    status: 400,
    code: 'handshake-rejected',
    verdict: 'stop',
    meaning: 'The feed or the subprotocol of the handshake is not valid.',
    advice: 'Look for a proxy between this process and the service that changes the address or the headers.',
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
  // Both are temporary: busy servers and proxies send them (RFC 9110, 15.5.9; RFC 6585, 4).
  { status: 408, ...handshakeFailed },
  { status: 429, ...handshakeFailed },
  {
    stage: 'handshake',
    status: 'other',
    code: 'handshake-failed',
    verdict: 'stop',
    meaning: 'Unexpected answer to the handshake; a redirect is never followed.',
    advice: 'Check the proxy between this process and the service: it must forward a WebSocket upgrade.',
  },
  {
    stage: 'handshake',
    code: 'subprotocol-mismatch',
    verdict: 'stop',
    meaning: 'The service did not agree to the subprotocol of the ticket.',
    advice: 'Check the proxy between this process and the service, and whether this version of the library is current.',
  },
  {
    stage: 'handshake',
    code: 'handshake-unreachable',
    verdict: 'backoff',
    meaning: 'The handshake got no answer.',
    advice: 'If this continues, check the network and the proxy; the feed tries again with backoff.',
  },
  { stage: 'handshake', ...untrustedCertificate },
  {
    stage: 'handshake',
    code: 'ticket-expired',
    verdict: 'renew',
    meaning: 'The ticket expired before the handshake was complete.',
    advice: nothingToDo,
  },
  {
    stage: 'stream',
    closeCode: CloseCode.connectionReplaced,
    code: 'connection-replaced',
    verdict: 'stop',
    meaning: 'Another connection of the same account took over: an account has one, across all keys and both feeds.',
    advice:
      'Find the other client, or share one feed in this process; a reconnect would disconnect the other client in turn.',
  },
  {
    stage: 'stream',
    closeCode: CloseCode.serverPushOnly,
    code: 'policy-violation',
    verdict: 'stop',
    meaning: 'The service says that a message was sent to it; this library sends none.',
    advice: 'Look for a proxy between this process and the service that writes to the connection.',
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
    meaning: 'This process did not read the stream as fast as it arrived.',
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
    meaning: 'The connection was silent and did not answer a ping.',
    advice: nothingToDo,
  },
  {
    stage: 'stream',
    code: 'invalid-frame',
    verdict: 'backoff',
    meaning: 'A frame violates the WebSocket protocol or is larger than `maxFrameBytes`.',
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
