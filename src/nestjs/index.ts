// The module
export { TradeFeedModule } from './trade-feed-module.js';
export type {
  TradeFeedAsyncOptions,
  TradeFeedModuleExtras,
  TradeFeedModuleOptions,
  TradeFeedOptionsFactory,
} from './module-options.js';

// The providers
export { TradeFeed } from './trade-feed.js';
export { getTradeFeedToken, InjectTradeFeed } from './feed-token.js';
export type { FeedStatus, Idle } from './feed-status.js';
export type { SseOptions } from './sse-options.js';
export type { SseRequest } from './sse-request.js';
export {
  type FeedHealth,
  type HealthSource,
  type HealthOptions,
  TradeFeedHealthIndicator,
  type TradeFeedHealthResult,
} from './health-indicator.js';

// For the tests of an application
export { TradeFeedTestingModule, type TradeFeedTestingOptions } from './testing-module.js';
export { getTradeFeedTestingToken, TradeFeedTesting } from './trade-feed-testing.js';
