/** Names the stage of an attempt: the ticket request, the handshake, the open stream. */
export type Stage = 'ticket' | 'handshake' | 'stream';

/** Lists the stages, in order. */
export const stages: readonly Stage[] = ['ticket', 'handshake', 'stream'];

/**
 * The reaction to a failure: `stop` (the feed errors), `renew` (a fresh ticket at once if the last connection was
 * stable, else backoff), `wait` (wait as long as the service demands, then a fresh ticket), `backoff` (wait by the policy, then a
 * fresh ticket).
 */
export type Verdict = 'stop' | 'renew' | 'wait' | 'backoff';

/** Lists the verdicts. */
export const verdicts: readonly Verdict[] = ['stop', 'renew', 'wait', 'backoff'];

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
  | 'relay-failed'
  | 'invalid-relay'
  | 'relay-lost'
  | 'relay-closing'
  | 'relay-session-ended'
  | 'relay-stalled'
  | 'invalid-relay-data'
  | 'relay-behind'
  | 'relay-source-failed';

/** Names every failure between the main thread and the worker that receives for it (`receiveIn: 'worker'`). */
export type ReceiverFailureCode = 'receiver-too-slow' | 'receiver-failed';

/** Names every failure between the replicas of a cluster: the reasons for a gap. */
export type ClusterFailureCode = 'cluster-behind' | 'cluster-away' | 'owner-changed';

/** Names every failure. Branch on these codes, never on a message. */
export type FailureCode = ServiceFailureCode | RelayFailureCode | ReceiverFailureCode | ClusterFailureCode;
