import * as t from 'io-ts';
import { oneOf, validated } from './rules.js';

/**
 * Names a feed of the service: `market` (the default) or `raw` (contract, section 2.2).
 *
 * The value is an io-ts codec. The type is the union of both names.
 *
 * @example
 * ```ts
 * import { Feed } from 'rx-trade-feed';
 *
 * Feed.is('market'); // true
 * ```
 */
export const Feed = t.keyof({ market: null, raw: null }, 'Feed');
export type Feed = t.TypeOf<typeof Feed>;

/** Lists the feeds, the default first. */
export const feeds = Object.keys(Feed.keys) as readonly Feed[];

/** Throws a `TradeFeedError` with code `invalid-options` for a value that is not a feed. */
export const checkFeed = (feed: unknown): void => {
  validated({ feed }, { feed: oneOf(...feeds) });
};
