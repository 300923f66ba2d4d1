import type { Feed } from './feed.js';
import { oneOf, validated } from './rules.js';

/** Lists the feeds, the default first. */
export const feeds = ['market', 'raw'] as const satisfies readonly Feed[];

/** Returns whether a value names a feed. */
export const isFeed = (value: unknown): value is Feed => feeds.includes(value as Feed);

/** Throws a `TradeFeedError` with code `invalid-options` for a value that is not a feed. */
export const checkFeed = (feed: unknown): void => {
  validated({ feed }, { feed: oneOf(...feeds) });
};
