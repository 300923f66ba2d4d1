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
export {
  type FailureCode,
  type RelayFailureCode,
  type ServiceFailureCode,
  type Stage,
  TradeFeedError,
  type Verdict,
} from '../protocol/failure.js';
export { relayError, type RelayFailureFacts } from '../protocol/relay-failure.js';
export type { BackoffOptions, BackoffPolicy } from '../reconnect/policy.js';
