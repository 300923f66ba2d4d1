/**
 * Connects a NestJS app: a module, a service to inject, health and `@Sse()` routes.
 *
 * @packageDocumentation
 */
// The module
export { getTradeFeedToken, InjectTradeFeed, TradeFeedModule } from './trade-feed-module.js';
export type {
  TradeFeedAsyncOptions,
  TradeFeedModuleExtras,
  TradeFeedModuleOptions,
  TradeFeedOptionsFactory,
} from './module-options.js';

// The providers
export { TradeFeed } from './trade-feed.js';
export type { FeedStatus, Idle } from './observers.js';
export type { SseOptions, SseRequest } from './sse.js';
export {
  type FeedHealth,
  type HealthSource,
  type HealthOptions,
  TradeFeedHealthIndicator,
  type TradeFeedHealthResult,
} from './health-indicator.js';

// For tests of your application
export {
  getTradeFeedTestingToken,
  TradeFeedTesting,
  TradeFeedTestingModule,
  type TradeFeedTestingOptions,
} from './testing-module.js';
