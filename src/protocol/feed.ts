import * as t from 'io-ts';

/**
 * Names a feed of the service: `market` (the default) or `raw` (contract, section 2.2).
 *
 * As a value, it's an io-ts codec; as a type, the union of both names.
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
