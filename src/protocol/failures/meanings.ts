/** Names the stage of an attempt: the ticket request, the handshake, the open stream. */
export type Stage = 'ticket' | 'handshake' | 'stream';

export const stages: readonly Stage[] = ['ticket', 'handshake', 'stream'];

/**
 * How the feed reacts to a failure: `stop` (errors), `renew` (gets a fresh ticket at once if the last connection was
 * stable, else backs off), `wait` (waits as long as the service asks, then gets a fresh ticket), `backoff` (waits by
 * the policy, then gets a fresh ticket).
 */
export type Verdict = 'stop' | 'renew' | 'wait' | 'backoff';

export const verdicts: readonly Verdict[] = ['stop', 'renew', 'wait', 'backoff'];

/**
 * What's wrong with a server's certificate, if another CA can't help: `date` (it has expired, or isn't valid yet) or
 * `host` (it's for another host).
 */
export type CertificateProblem = 'date' | 'host';

/** Names every failure between this library and the service. */
export type ServiceFailureCode =
  | 'invalid-options'
  | 'api-key-unavailable'
  | 'invalid-api-key'
  | 'not-entitled'
  | 'invalid-ticket-request'
  | 'ticket-rate-limited'
  | 'credential-service-unavailable'
  | 'ticket-request-failed'
  | 'ticket-request-rejected'
  | 'ticket-endpoint-unreachable'
  | 'ticket-endpoint-without-tls'
  | 'untrusted-certificate'
  | 'invalid-ticket'
  | 'handshake-rejected'
  | 'ticket-rejected'
  | 'capacity-full'
  | 'subprotocol-mismatch'
  | 'handshake-failed'
  | 'handshake-unreachable'
  | 'ticket-expired'
  | 'connection-replaced'
  | 'policy-violation'
  | 'access-expired'
  | 'access-revoked'
  | 'client-too-slow'
  | 'server-shutdown'
  | 'connection-lost'
  | 'connection-stalled'
  | 'invalid-frame'
  | 'connection-closed'
  | 'retries-exhausted';

/** Names every failure between a relay and its clients. */
export type RelayFailureCode =
  | 'relay-unreachable'
  | 'relay-headers-failed'
  | 'relay-refused'
  | 'relay-full'
  | 'relay-authorize-timeout'
  | 'relay-failed'
  | 'invalid-relay'
  | 'relay-lost'
  | 'relay-closing'
  | 'relay-session-ended'
  | 'relay-replaced'
  | 'relay-stalled'
  | 'invalid-relay-data'
  | 'relay-behind'
  | 'relay-source-failed';

/**
 * Names every failure of what receives a feed: a worker (`receiveIn: 'worker'`), or the packages that open connections.
 */
export type ReceiverFailureCode = 'receiver-too-slow' | 'receiver-failed';

/** Names every failure between the replicas of a cluster: the reasons for a gap, and the failures of its engine. */
export type ClusterFailureCode =
  'cluster-behind' | 'cluster-away' | 'owner-changed' | 'engine-refused' | 'engine-closed';

/** Names every failure of a log: the reasons for a gap, and the codes of a `LogError`. */
export type LogFailureCode =
  | 'log-paused'
  | 'log-write-failed'
  | 'log-behind'
  | 'log-damaged'
  | 'log-writer-gone'
  | 'log-in-use'
  | 'consumer-in-use'
  | 'log-fenced'
  | 'log-missing'
  | 'log-corrupt';

/** Names every failure. Branch on these codes, never on a message. */
export type FailureCode =
  ServiceFailureCode | RelayFailureCode | ReceiverFailureCode | ClusterFailureCode | LogFailureCode;

export interface Meaning {
  /** The stage it matches; absent: any. */
  readonly stage?: Stage | undefined;
  /** The HTTP status it matches: a number, `5xx` for 500 to 599, or `other` for any status. */
  readonly status?: number | '5xx' | 'other' | undefined;
  /** The close code it matches; `other`: any code. */
  readonly closeCode?: number | 'other';
  /** The close reason it matches; absent: any. */
  readonly reason?: string;
  /** What's wrong with the certificate that it matches; absent: any. */
  readonly certificate?: CertificateProblem;
  readonly code: FailureCode;
  readonly verdict: Verdict;
  /** The verdict once a connection of the subscription has opened. @defaultValue `verdict` */
  readonly afterOpened?: Verdict;
  /** What happened, in one sentence with a period. */
  readonly meaning: string;
  /** What to do, in one sentence. */
  readonly advice: string;
}

/** What a row matches, and its second verdict. */
export type When = Omit<Meaning, 'code' | 'verdict' | 'meaning' | 'advice'>;

/** Creates a row. What not every page needs is marked as pure, so that a bundler can leave it out. */
export const row = (
  when: When,
  code: FailureCode,
  verdict: Verdict,
  [meaning, advice]: readonly [meaning: string, advice: string],
): Meaning => ({ ...when, code, verdict, meaning, advice });

export const invalidOptions = /* @__PURE__ */ row({}, 'invalid-options', 'stop', [
  'An option is missing or invalid.',
  'Correct it and start again.',
]);

export const retriesExhausted = /* @__PURE__ */ row({}, 'retries-exhausted', 'stop', [
  'The feed gave up after `maxAttempts` reconnects without a stable connection.',
  'See the cause. To allow more reconnects, raise `backoff.maxAttempts`.',
]);

/** The gap between two subscriptions: `repeat`, `concat` or `switchMap` resubscribed to the feed. */
export const subscribedAgain = /* @__PURE__ */ row({}, 'connection-closed', 'backoff', [
  'The feed ended and was subscribed to again.',
  'Nothing to do: the frames of that time are missing.',
]);

const again = 'Nothing to do: the client connects again.';
const stream = { stage: 'stream' } as const;

/** The failures that a relay itself reports: why there's a gap, why the feed is missing, and why a stream ended. */
export const relayReports = {
  behind: row(stream, 'relay-behind', 'renew', [
    'This client missed frames: it was away, or slower than the feed.',
    "If this happens often, do less for each frame, or raise the relay's `capacity`.",
  ]),
  sourceFailed: row(stream, 'relay-source-failed', 'stop', [
    'An error in the app stopped the feed.',
    "See the cause, or the server's log.",
  ]),
  closing: row(stream, 'relay-closing', 'backoff', ['The relay is shutting down.', again]),
  sessionEnded: row(stream, 'relay-session-ended', 'renew', [
    'The relay requires this client to authorize again.',
    again,
  ]),
  // Not `renew`: the relay would refuse a page at once if its duplicate replaced it.
  replaced: row(stream, 'relay-replaced', 'backoff', [
    'Another stream of this user continues from this one.',
    'Nothing to do: the client connects again when the relay has room. If you duplicated a tab, close one.',
  ]),
};

/** `npm run addresses -- --write` also writes it into package.json; `npm publish` fails while it is empty. */
export const repository = '' as string;

/**
 * The pages of `docs/failures`: a code has its section on the first page whose pattern it matches, else on `ticket`.
 * Patterns, because browsers load them, and a list of all codes is three times as large.
 */
const pages: Readonly<Record<string, RegExp>> = {
  relay: /relay/,
  receiver: /receiver/,
  cluster: /cluster|engine|owner/,
  log: /log|consumer/,
  stream: /connection|access|client|server|policy|frame/,
  handshake: /handshake|capacity|subprotocol|ticket-(rejected|expired)/,
};

/** Returns the address of the section about a code: in the repository, or in the package until there's one. */
export const failurePage = (code: string): string => {
  const page = Object.keys(pages).find((name) => pages[name]?.test(code)) ?? 'ticket';
  const root = repository === '' ? 'node_modules/rx-trade-feed' : `${repository}/blob/main`;
  return `${root}/docs/failures/${page}.md#${code}`;
};
