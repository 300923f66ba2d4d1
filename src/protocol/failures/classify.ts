import { CloseCode, CloseReason } from '../contract.js';
import { printable } from '../printable.js';
import { applyClassify, type ClassifyOption } from '../validate.js';
import {
  invalidOptions,
  type Meaning,
  retriesExhausted,
  row,
  type ServiceFailureCode,
  type Stage,
  type Verdict,
} from './meanings.js';
import { createFailure, type FailureFacts, joinDetails, matches, type TradeFeedError } from './trade-feed-error.js';

/**
 * Returns the verdict of a failure, by the table of the contract's section 7: one of `stop`, `renew`, `wait`,
 * `backoff`.
 *
 * Pure. Accepts a {@link TradeFeedError} or plain facts. A status or close code without a row matches the row for all
 * other values.
 *
 * @param failure - the stage with a status, a close code and its reason, or a code
 * @throws TypeError when no row matches: the facts contain no status, no close code and no known code of that stage
 * @see the contract, section 7
 * @example
 * ```ts
 * import { classify } from 'rx-trade-feed';
 *
 * classify({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' }); // 'stop'
 * classify({ stage: 'ticket', status: 503 }); // 'backoff'
 * ```
 */
export const classify = (failure: FailureFacts): Verdict => meaningOf(failure).verdict;

/**
 * Creates the {@link TradeFeedError} for the observed facts. The table defines its code, verdict, message and advice.
 *
 * Also useful in tests of your error handling.
 *
 * @param facts - see {@link FailureFacts}
 * @throws TypeError when no row of the table matches
 * @example
 * ```ts
 * import { createTradeFeedError } from 'rx-trade-feed';
 *
 * createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown' }).code; // 'server-shutdown'
 * ```
 */
export const createTradeFeedError = (facts: FailureFacts): TradeFeedError => {
  const { closeCode, reason, detail } = facts;
  // The message goes to logs, so its texts are made printable. The field `reason` contains the reason exactly as sent.
  const shown = reason && onOneLine(reason);
  const observed = joinDetails(
    closeCode !== undefined && `close code ${closeCode}`,
    shown && `"${shown}"`,
    detail && onOneLine(detail),
  );
  return createFailure(meaningOf(facts), { ...facts, detail: observed });
};

export const attemptFailure = (settings: ClassifyOption, facts: FailureFacts): unknown =>
  applyClassify(settings, createTradeFeedError(facts));

const onOneLine = (text: string): string => printable(text.trim());

const meaningOf = ({ stage, code, status, closeCode, reason }: FailureFacts): Meaning => {
  // Without a status and a close code, the failure code is enough. Otherwise they must match as well.
  const isBare = status === undefined && closeCode === undefined;
  const found = serviceMeanings.find(
    (each) =>
      (each.stage ?? stage) === stage &&
      (code === undefined ? !isBare : each.code === code) &&
      (isBare || (matches(each.status, status) && matches(each.closeCode, closeCode))) &&
      (each.reason === undefined || each.reason === reason || isBare),
  );
  if (found === undefined) throw new TypeError(`No failure is known for stage ${stage}, code ${code}.`);
  return found;
};

type Seen = Pick<Meaning, 'status' | 'closeCode' | 'reason'>;

/** Returns a function that creates the rows of a stage. `backoff`: the advice for a failure that passes. */
const rowsOf =
  (stage: Stage, passes: string) =>
  (seen: Seen, code: ServiceFailureCode, verdict: Verdict, [meaning, advice]: readonly [string, string?]): Meaning => {
    const usual = verdict === 'renew' ? 'the feed reconnects with a fresh ticket' : passes;
    return row(stage, code, verdict, [meaning, advice ?? `Nothing to do: ${usual}.`], seen);
  };

const ticket = rowsOf('ticket', 'the request is repeated with backoff');
const handshake = rowsOf('handshake', 'the feed tries again with backoff');
const stream = rowsOf('stream', 'the feed reconnects with backoff');

const ticketFailed = ['The service could not answer the ticket request.'] as const;
const handshakeFailed = ['The service could not answer the handshake.'] as const;
const untrusted = [
  'This machine does not trust the certificate of the server, or it is for another host.',
  'Set the option `tls: { ca }` to the CA of a private service, or check which server answers at that address.',
] as const;

/**
 * Contract, section 7. The first match is used. A row without status and close code is for what the client itself
 * detects.
 */
export const serviceMeanings: readonly Meaning[] = [
  ticket({ status: 401 }, 'invalid-api-key', 'stop', [
    'The service does not accept the API key.',
    'Set the option `apiKey` or TRADE_FEED_API_KEY to a valid key.',
  ]),
  ticket({ status: 403 }, 'not-entitled', 'stop', [
    'The account is inactive or is not entitled to the stream.',
    'Restore access, or use a key of an account that has it.',
  ]),
  ticket({ status: 422 }, 'invalid-ticket-request', 'stop', [
    'The service does not know the requested feed, or could not read the request.',
    'Request `market` or `raw`.',
  ]),
  ticket({ status: 429 }, 'ticket-rate-limited', 'wait', [
    'Too many tickets were requested in this window.',
    'If this happens often, look for a second client of the account; the feed waits as long as the service demands.',
  ]),
  ticket({ status: 503 }, 'credential-service-unavailable', 'backoff', [
    'The service cannot issue tickets at the moment.',
  ]),
  ticket({ status: 408 }, 'ticket-request-failed', 'backoff', ticketFailed),
  ticket({ status: '5xx' }, 'ticket-request-failed', 'backoff', ticketFailed),
  ticket({ status: 'other' }, 'ticket-request-rejected', 'stop', [
    'Unexpected answer to the ticket request; a redirect is never followed with a key.',
    'Check `baseUrl`: it must be the address of the service itself.',
  ]),
  ticket({}, 'ticket-endpoint-unreachable', 'backoff', [
    'The ticket request got no answer.',
    'If this continues, check the network, the name in `baseUrl` and the proxy; the request is repeated with backoff.',
  ]),
  ticket({}, 'ticket-endpoint-without-tls', 'stop', [
    'The server answered without TLS, although the address begins with `https:`.',
    'Check the host and the port in `baseUrl`: this port speaks plain HTTP or another protocol.',
  ]),
  ticket({}, 'untrusted-certificate', 'stop', untrusted),
  ticket({}, 'api-key-unavailable', 'backoff', [
    'The `apiKey` function returned no key.',
    'See the cause, which your function threw; it is called again with backoff.',
  ]),
  ticket({}, 'invalid-ticket', 'stop', [
    'The service answered 200 with a body that is not a ticket.',
    'Check `baseUrl`: it must be the address of the service itself; ' +
      'if it is, report the field that is named here to the service.',
  ]),
  handshake({ status: 400 }, 'handshake-rejected', 'stop', [
    'The feed or the subprotocol of the handshake is not valid.',
    'Look for a proxy between this process and the service that changes the address or the headers.',
  ]),
  handshake({ status: 401 }, 'ticket-rejected', 'renew', [
    'The service does not accept the ticket: expired, used or revoked.',
  ]),
  handshake({ status: 503 }, 'capacity-full', 'backoff', ['The service has no room for another user.']),
  handshake({ status: '5xx' }, 'handshake-failed', 'backoff', handshakeFailed),
  // Both are temporary: busy servers and proxies send them (RFC 9110, 15.5.9; RFC 6585, 4).
  handshake({ status: 408 }, 'handshake-failed', 'backoff', handshakeFailed),
  handshake({ status: 429 }, 'handshake-failed', 'backoff', handshakeFailed),
  handshake({ status: 'other' }, 'handshake-failed', 'stop', [
    'Unexpected answer to the handshake; a redirect is never followed.',
    'Check the proxy between this process and the service: it must forward a WebSocket upgrade.',
  ]),
  handshake({}, 'subprotocol-mismatch', 'stop', [
    'The service did not agree to the subprotocol of the ticket.',
    'Check the proxy between this process and the service, and whether this version of the library is current.',
  ]),
  handshake({}, 'handshake-unreachable', 'backoff', [
    'The handshake got no answer.',
    'If this continues, check the network and the proxy; the feed tries again with backoff.',
  ]),
  handshake({}, 'untrusted-certificate', 'stop', untrusted),
  handshake({}, 'ticket-expired', 'renew', ['The ticket expired before the handshake was complete.']),
  stream({ closeCode: CloseCode.connectionReplaced }, 'connection-replaced', 'stop', [
    'Another connection of the same account took over: an account has one, across all keys and both feeds.',
    'Find the other client, or share one feed in this process; a reconnect would disconnect the other client in turn.',
  ]),
  stream({ closeCode: CloseCode.serverPushOnly }, 'policy-violation', 'stop', [
    'The service says that a message was sent to it; this library sends none.',
    'Look for a proxy between this process and the service that writes to the connection.',
  ]),
  stream({ closeCode: CloseCode.accessLost, reason: CloseReason.accessExpired }, 'access-expired', 'renew', [
    'The access of this connection expired.',
  ]),
  stream({ closeCode: CloseCode.accessLost, reason: CloseReason.accessRevoked }, 'access-revoked', 'renew', [
    'Access was revoked.',
    'Restore access, or use a key of an account that has it; the next ticket request shows whether it is back.',
  ]),
  stream({ closeCode: CloseCode.accessLost }, 'connection-closed', 'renew', [
    'Access was lost, for a reason that the contract does not name.',
  ]),
  stream({ closeCode: CloseCode.clientTooSlow }, 'client-too-slow', 'backoff', [
    'This process did not read the stream as fast as it arrived.',
    "Do less in each `next`, or set `receiveIn: 'worker'`: a blocked event loop reads nothing.",
  ]),
  stream({ closeCode: CloseCode.serverShutdown }, 'server-shutdown', 'backoff', ['The service shut down.']),
  stream({ closeCode: 1006 }, 'connection-lost', 'renew', ['The connection broke off without a close frame.']),
  stream({}, 'connection-stalled', 'renew', ['The connection was silent and did not answer a ping.']),
  stream({}, 'invalid-frame', 'backoff', [
    'A frame violates the WebSocket protocol or is larger than `maxFrameBytes`.',
    'Raise `maxFrameBytes` if large frames are expected; otherwise look for a proxy that changes the bytes.',
  ]),
  stream({ closeCode: 'other' }, 'connection-closed', 'backoff', ['The connection was closed.']),
  invalidOptions,
  retriesExhausted,
];

/** The failures between the replicas of a cluster. */
export const clusterMeanings = {
  behind: row('stream', 'cluster-behind', 'renew', [
    'Messages of the owner did not arrive at this replica.',
    'If this happens often, look at the network, and at the limits of the engine for slow consumers.',
  ]),
  away: row('stream', 'cluster-away', 'renew', [
    'This replica lost its connection to the engine, so it received no messages of the owner.',
    'Nothing to do: the replica continues when the engine is back. If it stays away, check the engine.',
  ]),
  ownerChanged: row('stream', 'owner-changed', 'renew', [
    'Another replica owns the connection now.',
    'Nothing to do: frames between both connections may be missing.',
  ]),
  engineRefused: row('stream', 'engine-refused', 'stop', [
    'The engine of the cluster refuses what this replica needs, or cannot be reached.',
    'The event `engine-refused` in the log of this replica says what the engine refuses, and what to do.',
  ]),
  engineClosed: row('stream', 'engine-closed', 'stop', [
    'The connection to the engine of the cluster was closed, and its client does not connect again.',
    'Restart the process, or create a new connection, engine and cluster. Let the client reconnect without a limit.',
  ]),
};

/** The failures of the gaps and events that a log adds to those of the feed. */
export const logMeanings = {
  paused: row('stream', 'log-paused', 'backoff', [
    'No process wrote the log.',
    'Nothing to do: the frames of that time are not in the log. To lose fewer, start the next writer sooner.',
  ]),
  writeFailed: row('stream', 'log-write-failed', 'backoff', [
    'The disk of the log was full or failed, so frames were not written.',
    'Free space, or lower `maxBytes` of the log.',
  ]),
  behind: row('stream', 'log-behind', 'backoff', [
    'The log no longer has these records.',
    'If a reader is too slow, keep more with `maxAgeMs` and `maxBytes`, or make it faster.',
  ]),
  damaged: row('stream', 'log-damaged', 'backoff', [
    'Lines of the log are damaged.',
    'Check the disk; `rx-trade-feed log verify` names the lines.',
  ]),
  writerGone: row('stream', 'log-writer-gone', 'backoff', [
    'The process that writes the log has ended, or does not respond.',
    'Start it again, or look at its log. Readers continue when it writes again.',
  ]),
};

/** The errors of a log: the codes of a `LogError`. */
export const logErrors = {
  'log-in-use': row(undefined, 'log-in-use', 'stop', [
    'Another writer has the log, in this process or another one.',
    'Stop it, or use another folder: a log has one writer.',
  ]),
  'consumer-in-use': row(undefined, 'consumer-in-use', 'stop', [
    'This consumer of the log runs already, in this process or another one.',
    'Stop it, or use another name.',
  ]),
  'log-fenced': row(undefined, 'log-fenced', 'stop', [
    'Another writer has taken the log over.',
    'Use one writer for each log, and `lock: false` only if nothing else writes to its folder.',
  ]),
  'log-corrupt': row(undefined, 'log-corrupt', 'stop', [
    'A file of the log cannot be read, or is damaged.',
    "Check the path and the disk; `rx-trade-feed log verify` names damaged lines. To read on after them, use `onDamage: 'gap'`.",
  ]),
  'log-write-failed': row(undefined, 'log-write-failed', 'stop', [
    'The log cannot be written.',
    'Correct this and subscribe again. To go on without the lost frames, set `onError` to a function.',
  ]),
  'log-behind': row(undefined, 'log-behind', 'stop', [
    'The log no longer has the next records of this consumer.',
    "Repair what is missing, then go on after it with `onLoss: 'gap'`. Keep more with `maxAgeMs` and `maxBytes`.",
  ]),
};

const bundled = 'If your app is a bundle, mark `rx-trade-feed` as external (esbuild: `--packages=external`)';

/** The failures of the code that receives a feed: a worker, and the packages that open connections. */
export const workerMeanings = {
  tooSlow: row('stream', 'receiver-too-slow', 'renew', [
    'The main thread was slower than the feed, or was blocked until the store of the worker was full.',
    'If this happens often, do less for each frame, or raise `receiveBufferBytes`.',
  ]),
  lost: row(undefined, 'receiver-failed', 'renew', [
    'The worker thread that received the feed has ended.',
    'See the cause; another worker takes over, with a fresh ticket.',
  ]),
  notStarted: row(undefined, 'receiver-failed', 'stop', [
    'The worker thread that receives the feed could not be started.',
    `${bundled}, or leave out \`receiveIn\`; otherwise see the cause.`,
  ]),
  notLoaded: row(undefined, 'receiver-failed', 'stop', [
    'The packages that open connections (`undici` and `ws`) could not be loaded.',
    `${bundled}; otherwise install the packages again.`,
  ]),
};
