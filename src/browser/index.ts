/**
 * Reads a relay in a page: one stream per page, or one shared by all tabs.
 *
 * @packageDocumentation
 */
export { relayFeed$ } from './relay-feed.js';
export type { RelayFeedOptions, RequestHeaders, ResumeStore } from './relay-feed-options.js';

// Events and failures
export { type AnyFrame, Frame } from '../protocol/frame.js';
export type { Disconnected, Gap, LifecycleEvent, Opened, Reconnecting, RelayedEvent } from '../protocol/event.js';
export type { RelayedValue, Stopped, TicketIssued, TicketRequested, Watermark } from '../protocol/event.js';
export type {
  CertificateProblem,
  ClusterFailureCode,
  FailureCode,
  LogFailureCode,
  ReceiverFailureCode,
} from '../protocol/failures/meanings.js';
export type { RelayFailureCode, ServiceFailureCode, Stage, Verdict } from '../protocol/failures/meanings.js';
export type { FailureFacts, FailureFields } from '../protocol/failures/trade-feed-error.js';
export { isTradeFeedError, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
export { relayError, type RelayFailureFacts } from './relay-error.js';
export type { BackoffOptions, BackoffPolicy } from '../feed/backoff.js';
