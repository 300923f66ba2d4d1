// The feed in an Angular app
export { provideTradeFeed, type ProvideTradeFeedOptions } from './provide-trade-feed.js';
export { type AngularTradeFeed, injectTradeFeed } from './inject-trade-feed.js';
export type { FeedStatus, Stopped } from './feed-status.js';
export type { FeedSignalOptions, WindowSignalOptions } from './signal-options.js';

// In tests
export { provideTradeFeedFrom } from './provide-trade-feed-from.js';
