/**
 * Connects to the service: the feed, its events and failures, and all operators, for Node.
 *
 * @packageDocumentation
 */
// The feed
export { tradeFeed$, tradeFeedEvents$ } from './feed/trade-feed.js';

// The parts of the feed: two operators, the reconnect policy and the failure table
export { requestTicket } from './transport/request-ticket.js';
export { openConnection } from './transport/open-connection.js';
export { proxyFromEnvironment, type ProxyFromEnvironmentOptions } from './transport/proxy-from-environment.js';
export { backoff, retryDelay } from './feed/backoff.js';
export { classify, createTradeFeedError } from './protocol/failures/classify.js';

// Operators: all names of `rx-trade-feed/operators`, and those that need Node
// eslint-disable-next-line no-restricted-syntax -- that file names each export
export * from './operators/index.js';
export { type ReadableOptions, toReadable } from './operators/node/to-readable.js';

// Logs and node:diagnostics_channel
export type { EventLevel, EventRecord } from './protocol/event-record.js';
export type { AttemptMessage, FeedEventMessage, FeedOrigin, PublishedEvent } from './feed/diagnostics.js';

// Options
export type { TicketDispatcher, TlsOptions, TradeFeedOptions } from './feed/options.js';
export type { BackoffOptions, BackoffPolicy, Reconnect } from './feed/backoff.js';

// Values, errors and events
export { Feed } from './protocol/feed.js';
export { Ticket } from './protocol/ticket.js';
export type { WireTicket } from './protocol/contract.js';
export { Frame } from './protocol/frame.js';
export { Secret } from './protocol/secret.js';
export { CloseCode, CloseReason } from './protocol/contract.js';
export {
  type ClusterFailureCode,
  type FailureCode,
  type LogFailureCode,
  type ReceiverFailureCode,
  type RelayFailureCode,
  type ServiceFailureCode,
  type Stage,
  type Verdict,
} from './protocol/failures/meanings.js';
export {
  type FailureFacts,
  type FailureFields,
  isTradeFeedError,
  TradeFeedError,
} from './protocol/failures/trade-feed-error.js';
export type {
  ClusterEvent,
  ClusterLifecycleEvent,
  Disconnected,
  EngineOperation,
  EngineRecovered,
  EngineRefused,
  FeedEvent,
  Gap,
  LifecycleEvent,
  Opened,
  OwnerChanged,
  Reconnecting,
  RelayedEvent,
  Stopped,
  TicketIssued,
  TicketRequested,
  Watermark,
} from './protocol/event.js';
