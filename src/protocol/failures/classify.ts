import { CloseCode, CloseReason } from '../contract.js';
import { printable } from '../printable.js';
import {
  type FailureCode,
  invalidOptions,
  type Meaning,
  retriesExhausted,
  row,
  type Stage,
  type Verdict,
  type When,
} from './meanings.js';
import {
  applyClassify,
  type ClassifyOption,
  createFailure,
  type FailureFacts,
  joinDetails,
  matches,
  type TradeFeedError,
} from './trade-feed-error.js';

/**
 * Looks up a failure's verdict in the table of the contract's section 7: `stop`, `renew`, `wait` or `backoff`.
 *
 * Pure. Accepts a {@link TradeFeedError} or plain facts. A status or close code without its own row matches the row for
 * all others.
 *
 * @param failure - the stage with a status, a close code and its reason, or a code; `hasOpened` if it matters
 * @throws TypeError when no row matches: the facts contain no status, no close code and no known code of that stage
 * @see the contract, section 7
 * @example
 * ```ts
 * import { classify } from 'rx-trade-feed';
 *
 * // 'stop'
 * classify({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
 * classify({ stage: 'ticket', status: 503 }); // 'backoff'
 * ```
 */
export const classify = (failure: FailureFacts): Verdict => verdictOf(meaningOf(failure), failure);

/**
 * Creates the {@link TradeFeedError} for the observed facts. The table supplies its code, verdict, message and advice.
 *
 * Handy in tests of your error handling.
 *
 * @param facts - see {@link FailureFacts}
 * @throws TypeError when no row of the table matches
 * @example
 * ```ts
 * import { createTradeFeedError } from 'rx-trade-feed';
 *
 * createTradeFeedError({
 *   stage: 'stream',
 *   closeCode: 1001,
 *   reason: 'server shutdown',
 * }).code; // 'server-shutdown'
 * ```
 */
export const createTradeFeedError = (facts: FailureFacts): TradeFeedError => {
  const { closeCode, reason, detail } = facts;
  // The message goes to logs, so it must be printable. The field `reason` keeps the reason exactly as sent.
  const shown = reason && onOneLine(reason);
  const observed = joinDetails(
    closeCode !== undefined && `close code ${closeCode}`,
    shown && `"${shown}"`,
    detail && onOneLine(detail),
  );
  return failureFor(meaningOf(facts), { ...facts, detail: observed });
};

/** Creates the failure of a row whose verdict may depend on whether a connection has opened. */
export const failureFor = (row: Meaning, facts: FailureFacts): TradeFeedError =>
  createFailure(
    { ...row, verdict: verdictOf(row, facts) },
    { ...facts, hasOpened: row.afterOpened && facts.hasOpened },
  );

const verdictOf = ({ verdict, afterOpened = verdict }: Meaning, { hasOpened }: FailureFacts): Verdict =>
  hasOpened ? afterOpened : verdict;

export const attemptFailure = (settings: ClassifyOption, facts: FailureFacts): unknown =>
  applyClassify(settings, createTradeFeedError(facts));

const onOneLine = (text: string): string => printable(text.trim());

const meaningOf = ({ stage, code, status, closeCode, reason, certificate }: FailureFacts): Meaning => {
  // If there's no status and no close code, the failure code is enough. Otherwise they must match too.
  const isBare = status === undefined && closeCode === undefined;
  const found = serviceMeanings.find(
    (each) =>
      (each.stage ?? stage) === stage &&
      (code === undefined ? !isBare : each.code === code) &&
      (isBare || (matches(each.status, status) && matches(each.closeCode, closeCode))) &&
      (each.certificate === undefined || each.certificate === certificate) &&
      (each.reason === undefined || each.reason === reason || isBare),
  );
  if (found === undefined) throw new TypeError(`No failure is known for stage ${stage}, code ${code}.`);
  return found;
};

/** Returns a function that creates the rows of a stage. `passes`: what happens next if the failure is temporary. */
const rowsOf =
  (stage: Stage, passes: string) =>
  (when: When, code: FailureCode, verdict: Verdict, [meaning, advice]: readonly [string, string?]): Meaning => {
    const usual = verdict === 'renew' ? 'the feed reconnects with a fresh ticket' : passes;
    return row({ stage, ...when }, code, verdict, [meaning, advice ?? `Nothing to do: ${usual}.`]);
  };

const ticket = rowsOf('ticket', 'the request is repeated with backoff');
const handshake = rowsOf('handshake', 'the feed tries again with backoff');
const stream = rowsOf('stream', 'the feed reconnects with backoff');

const ticketFailed = ["The service couldn't answer the ticket request."] as const;
const handshakeFailed = ["The service couldn't answer the handshake."] as const;

/** The verdict of what has worked before, and so may only be wrong for a moment. */
const isBack = { afterOpened: 'backoff' } as const;

// A wrong CA must not look like silence, but a feed that has worked had the right one: perhaps an ingress restarts with
// its default certificate.
const untrusted = (of: typeof ticket): readonly Meaning[] => [
  of({ certificate: 'date', ...isBack }, 'untrusted-certificate', 'stop', [
    "The server's certificate has expired or isn't valid yet, by this machine's clock.",
    "Set the clock if it's wrong. Otherwise the server needs another certificate; another CA (`tls: { ca }`, `--ca`) can't help.",
  ]),
  of({ certificate: 'host', ...isBack }, 'untrusted-certificate', 'stop', [
    "The server's certificate is for another host.",
    "Check the host in `baseUrl`, and which server answers there; another CA (`tls: { ca }`, `--ca`) can't help.",
  ]),
  of(isBack, 'untrusted-certificate', 'stop', [
    "This machine doesn't trust the server's certificate.",
    'If the service is private, set `tls: { ca }` to its CA. Otherwise check which server answers at that address.',
  ]),
];

/**
 * Contract, section 7. The first match wins. Rows without a status and close code are for what the client itself
 * detects.
 */
export const serviceMeanings: readonly Meaning[] = [
  ticket({ status: 401 }, 'invalid-api-key', 'stop', [
    "The service doesn't accept the API key.",
    'Set the option `apiKey` or TRADE_FEED_API_KEY to a valid key.',
  ]),
  ticket({ status: 403 }, 'not-entitled', 'stop', [
    "The account is inactive or isn't entitled to the stream.",
    'Restore access, or use a key of an account that has it.',
  ]),
  ticket({ status: 422 }, 'invalid-ticket-request', 'stop', [
    "The service doesn't know this feed, or couldn't read the request.",
    'Request `market` or `raw`.',
  ]),
  ticket({ status: 429 }, 'ticket-rate-limited', 'wait', [
    'Too many tickets were requested in this window.',
    'Nothing to do: the feed waits as long as the service asks. If this happens often, look for a second client of the account.',
  ]),
  ticket({ status: 503 }, 'credential-service-unavailable', 'backoff', ["The service can't issue tickets right now."]),
  ticket({ status: 408 }, 'ticket-request-failed', 'backoff', ticketFailed),
  ticket({ status: '5xx' }, 'ticket-request-failed', 'backoff', ticketFailed),
  ticket({ status: 'other' }, 'ticket-request-rejected', 'stop', [
    "The ticket request got an unexpected answer; redirects aren't followed, to protect the key.",
    'Check `baseUrl`: it must be the address of the service itself.',
  ]),
  ticket({}, 'ticket-endpoint-unreachable', 'backoff', [
    'The ticket request got no answer.',
    'If this continues, check the network, the host in `baseUrl` and the proxy. The feed tries again with backoff.',
  ]),
  ticket({}, 'ticket-endpoint-without-tls', 'stop', [
    'The server answered without TLS, although the address begins with `https:`.',
    'Check the host and the port in `baseUrl`: this port speaks plain HTTP or another protocol.',
  ]),
  ...untrusted(ticket),
  ticket({}, 'api-key-unavailable', 'backoff', [
    'The `apiKey` function returned no key.',
    'See the cause for what your function threw. The feed calls it again with backoff.',
  ]),
  ticket({}, 'invalid-ticket', 'stop', [
    "The service answered 200, but the body isn't a ticket.",
    'Check `baseUrl`: it must be the address of the service itself; ' +
      'if it is, report the field that is named here to the service.',
  ]),
  handshake({ status: 400 }, 'handshake-rejected', 'stop', [
    'The service rejected the feed or the subprotocol of the handshake.',
    'Look for a proxy between this process and the service that changes the address or the headers.',
  ]),
  handshake({ status: 401 }, 'ticket-rejected', 'renew', [
    "The service doesn't accept the ticket: it's expired, used or revoked.",
  ]),
  handshake({ status: 503 }, 'capacity-full', 'backoff', ['The service has no room for another user.']),
  handshake({ status: '5xx' }, 'handshake-failed', 'backoff', handshakeFailed),
  // Busy servers and proxies send these, so both are temporary (RFC 9110, 15.5.9; RFC 6585, 4).
  handshake({ status: 408 }, 'handshake-failed', 'backoff', handshakeFailed),
  handshake({ status: 429 }, 'handshake-failed', 'backoff', handshakeFailed),
  handshake({ status: 'other' }, 'handshake-failed', 'stop', [
    "The handshake got an unexpected answer; redirects aren't followed.",
    'Check the proxy between this process and the service: it must forward a WebSocket upgrade.',
  ]),
  handshake({}, 'subprotocol-mismatch', 'stop', [
    "The service didn't agree to the ticket's subprotocol.",
    'Check the proxy between this process and the service, and update this library.',
  ]),
  handshake({}, 'handshake-unreachable', 'backoff', [
    'The handshake got no answer.',
    'If this continues, check the network and the proxy. The feed tries again with backoff.',
  ]),
  ...untrusted(handshake),
  handshake({}, 'ticket-expired', 'renew', ['The ticket expired before the handshake finished.']),
  stream({ closeCode: CloseCode.connectionReplaced }, 'connection-replaced', 'stop', [
    'Another client connected with this account, which gets one connection for all its keys and both feeds.',
    'Find the other client, or share one feed in this process. Reconnecting would only kick the other client out.',
  ]),
  stream({ closeCode: CloseCode.serverPushOnly }, 'policy-violation', 'stop', [
    'The service says it was sent a message, but this library never sends one.',
    'Look for a proxy between this process and the service that writes to the connection.',
  ]),
  stream({ closeCode: CloseCode.accessLost, reason: CloseReason.accessExpired }, 'access-expired', 'renew', [
    "This connection's access expired.",
  ]),
  stream({ closeCode: CloseCode.accessLost, reason: CloseReason.accessRevoked }, 'access-revoked', 'renew', [
    'Access was revoked.',
    "Restore access, or use a key of an account that has it. The next ticket request shows whether it's back.",
  ]),
  stream({ closeCode: CloseCode.accessLost }, 'connection-closed', 'renew', [
    "Access was lost, for a reason the contract doesn't name.",
  ]),
  stream({ closeCode: CloseCode.clientTooSlow }, 'client-too-slow', 'backoff', [
    "This process didn't read the stream as fast as it arrived.",
    "Do less in each `next`, or set `receiveIn: 'worker'`: a blocked event loop reads nothing.",
  ]),
  stream({ closeCode: CloseCode.serverShutdown }, 'server-shutdown', 'backoff', ['The service shut down.']),
  stream({ closeCode: 1006 }, 'connection-lost', 'renew', ['The connection dropped without a close frame.']),
  stream({}, 'connection-stalled', 'renew', ["The connection went silent and didn't answer a ping."]),
  stream({}, 'invalid-frame', 'backoff', [
    'A frame violates the WebSocket protocol or is larger than `maxFrameBytes`.',
    'If you expect large frames, raise `maxFrameBytes`. Otherwise look for a proxy that changes the bytes.',
  ]),
  stream({ closeCode: 'other' }, 'connection-closed', 'backoff', ['The connection was closed.']),
  invalidOptions,
  retriesExhausted,
];

/** The failures between a cluster's replicas. */
export const clusterMeanings = {
  behind: stream({}, 'cluster-behind', 'renew', [
    "Messages from the owner didn't reach this replica.",
    "If this happens often, check the network, and the engine's limits for slow consumers.",
  ]),
  away: stream({}, 'cluster-away', 'renew', [
    'This replica lost its connection to the engine, so it got no messages from the owner.',
    'Nothing to do: the replica continues when the engine is back. If it stays away, check the engine.',
  ]),
  ownerChanged: stream({}, 'owner-changed', 'renew', [
    'Another replica owns the connection now.',
    'Nothing to do, but frames between the two connections may be missing.',
  ]),
  engineRefused: stream({}, 'engine-refused', 'stop', [
    "The cluster's engine refuses what this replica needs, or can't be reached.",
    "Look for `engine-refused` in this replica's log: it says what the engine refuses, and what to do.",
  ]),
  engineClosed: stream({}, 'engine-closed', 'stop', [
    "The connection to the cluster's engine was closed, and its client won't connect again.",
    'Restart the process, or create a new connection, engine and cluster. Let the client reconnect without a limit.',
  ]),
};
