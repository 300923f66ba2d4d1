export { relayFeed$ } from './relay-feed.js';
export type { RelayFeedOptions, RequestHeaders, ResumeStore } from './relay-feed-options.js';

// Events and failures
export { type AnyFrame, Frame } from '../protocol/frame.js';
export type {
  Disconnected,
  Gap,
  LifecycleEvent,
  Opened,
  Reconnecting,
  RelayedEvent,
  Stopped,
  TicketIssued,
  TicketRequested,
  Watermark,
} from '../protocol/event.js';
export type { RelayedValue } from '../protocol/relayed-value.js';
export type {
  ClusterFailureCode,
  FailureCode,
  ReceiverFailureCode,
  RelayFailureCode,
  ServiceFailureCode,
  Stage,
  Verdict,
} from '../protocol/failures/failure-code.js';
export { type FailureFacts, type FailureFields, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
export { relayError, type RelayFailureFacts } from '../protocol/failures/relay-error.js';
export type { BackoffOptions, BackoffPolicy } from '../reconnect/policy.js';
