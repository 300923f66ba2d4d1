// The feed of an Angular app
export { provideTradeFeed, type ProvideTradeFeedOptions } from './provide-trade-feed.js';
export { type AngularTradeFeed, type FeedStatus, injectTradeFeed } from './inject-trade-feed.js';
export type { FeedSignalOptions, WindowSignalOptions } from './signal-options.js';

// For tests
export { provideTradeFeedFrom } from './provide-trade-feed-from.js';
