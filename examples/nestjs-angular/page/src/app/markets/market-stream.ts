import { relayFeed$ } from 'rx-trade-feed/browser';
import type { MarketValue } from '../../../../server/src/markets/market-value';

export type { CandleWindow, LastPrice, MarketsHistory, MarketValue } from '../../../../server/src/markets/market-value';

/** Opens the stream of candles and last prices. It ends with the first stop of the feed: a person decides when to connect again. */
export const marketStream$ = () => relayFeed$<MarketValue>('/markets', { maxFeedStops: 1 });
