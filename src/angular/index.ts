/**
 * Provides a relayed feed to an Angular app, with signals.
 *
 * @packageDocumentation
 */
export { provideTradeFeed, provideTradeFeedFrom, type ProvideTradeFeedOptions } from './provide-trade-feed.js';
export { type AngularTradeFeed, type FeedStatus, injectTradeFeed } from './inject-trade-feed.js';
export type { FeedSignalOptions, WindowSignalOptions } from './shared-feed.js';
