import { feeds } from './feed.js';
import { oneOf, validated } from './rules.js';

/** Throws a `TradeFeedError` with code `invalid-options` for what is no feed. */
export const checkFeed = (feed: unknown): void => {
  validated({ feed }, { feed: oneOf(...feeds) });
};
