// The feed
export { tradeFeed$, tradeFeedEvents$ } from './trade-feed.js';

// Its building blocks
export { requestTicket } from './transport/request-ticket.js';
export { openConnection } from './transport/open-connection.js';
export { backoff, retryDelay } from './reconnect/reconnect.js';
export { classify, tradeFeedError } from './protocol/classify.js';

// What it is told
export type { TlsOptions, TradeFeedOptions } from './options.js';
export type { BackoffOptions, BackoffPolicy, Reconnect } from './reconnect/backoff.js';

// What it says
export { Feed } from './protocol/feed.js';
export { Ticket, type WireTicket } from './protocol/ticket.js';
export { Frame } from './protocol/frame.js';
export { Secret } from './protocol/secret.js';
export { CloseCode, CloseReason } from './protocol/close-code.js';
export {
  type FailureCode,
  type FailureFacts,
  type FailureFields,
  type Stage,
  TradeFeedError,
  type Verdict,
} from './protocol/failure.js';
export type {
  Disconnected,
  FeedEvent,
  Gap,
  LifecycleEvent,
  Opened,
  Reconnecting,
  TicketIssued,
  TicketRequested,
} from './protocol/event.js';
