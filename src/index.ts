// The feed
export { tradeFeed$, tradeFeedEvents$ } from './feed/trade-feed.js';

// The parts of the feed: two operators, the reconnect policy and the failure table
export { requestTicket } from './transport/request-ticket.js';
export { openConnection } from './transport/open-connection.js';
export { proxyFromEnvironment, type ProxyFromEnvironmentOptions } from './transport/proxy-from-environment.js';
export { backoff, retryDelay } from './feed/backoff.js';
export { classify, createTradeFeedError } from './protocol/failures/classify.js';

// Operators: decode and filter
export { decodeWith, type DecodeOptions } from './operators/decode-with.js';
export { decodeEither } from './operators/decode-either.js';
export type { Codec } from './operators/decode/codec.js';
export { DecodeError, type DecodeFailure, type DecodeIssue } from './operators/decode/decode-failure.js';
export { type AcceptedValues, whereField, type WhereFieldOptions } from './operators/where-field.js';
export type { FieldValue } from './operators/filter/json-field.js';
export { whereBytes } from './operators/where-bytes.js';
export { filterValues, mapValues } from './operators/values.js';
export { Decoded, type FrameIn, type ItemOf, type NotInferred } from './operators/items/item.js';
export { distinctRecent, type DistinctRecentOptions } from './operators/distinct-recent.js';

// Operators: windows and conflation
export { tumblingWindow, type TumblingWindowOptions } from './operators/tumbling-window.js';
export { slidingWindow, type SlidingWindowOptions } from './operators/sliding-window.js';
export { countWindow, type CountWindowOptions } from './operators/count-window.js';
export type {
  AccumulatedWindow,
  Accumulator,
  FeedWindow,
  FramesOptions,
  IncompleteReason,
  KeyOptions,
  TimeWindowOptions,
  WindowFacts,
  WindowKey,
  WindowSource,
} from './operators/window/window.js';
export { conflate, type ConflateOptions } from './operators/conflate.js';
export { Conflated } from './operators/items/item.js';

// Operators: bounded consumption
export { mergeMapBounded, type MergeMapBoundedOptions } from './operators/merge-map-bounded.js';
export { toAsyncIterable } from './operators/to-async-iterable.js';
export { type ReadableOptions, toReadable } from './operators/node/to-readable.js';
export { type BoundOptions, type DropReport, type Overflow, OverflowError } from './operators/bounded/bounded-queue.js';

// Operators: share, status and statistics
export { shareFeed, type ShareFeedOptions } from './operators/share-feed.js';
export {
  type ConnectingStatus,
  connectionStatus,
  type ConnectionStatus,
  type LiveStatus,
  type ReconnectingStatus,
  type StoppedStatus,
} from './operators/connection-status.js';
export { type Fresh, freshness, type Freshness, type FreshnessOptions, type Stale } from './operators/freshness.js';
export { type FeedStats, feedStats, type FeedStatsOptions } from './operators/feed-stats.js';
export { type EventLogger, logEvents, type LogEventsOptions, type LogMethod } from './operators/log-events.js';
export { frames } from './operators/frames.js';
export { gaps } from './operators/gaps.js';

// Logs and node:diagnostics_channel
export type { EventLevel, EventRecord } from './protocol/event-record.js';
export type { AttemptMessage, FeedEventMessage, FeedOrigin, PublishedEvent } from './feed/diagnostics.js';

// Options
export type { TlsOptions, TradeFeedOptions } from './feed/options.js';
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
