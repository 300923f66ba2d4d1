// The module
export { TradeFeedModule } from './trade-feed-module.js';
export type {
  TradeFeedAsyncOptions,
  TradeFeedModuleExtras,
  TradeFeedModuleOptions,
  TradeFeedOptionsFactory,
} from './module-options.js';

// What it provides
export { TradeFeed } from './trade-feed.js';
export { getTradeFeedToken, InjectTradeFeed } from './feed-token.js';
export type { FeedStatus, Idle, Stopped } from './feed-status.js';
export type { SseOptions } from './sse-options.js';
export type { SseRequest } from './sse-request.js';
export {
  type FeedHealth,
  type HealthOptions,
  TradeFeedHealthIndicator,
  type TradeFeedHealthResult,
} from './health-indicator.js';

// For tests of an app
export { TradeFeedTestingModule, type TradeFeedTestingOptions } from './testing-module.js';
export { getTradeFeedTestingToken, TradeFeedTesting } from './trade-feed-testing.js';
