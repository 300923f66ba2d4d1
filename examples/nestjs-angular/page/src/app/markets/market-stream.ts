import { relayFeed$ } from 'rx-trade-feed/browser';
import type { MarketValue } from '../../../../server/src/markets/market-value';

export type { CandleWindow, LastPrice, MarketsHistory, MarketValue } from '../../../../server/src/markets/market-value';

/** Opens the stream of candles and last prices, with the events of the feed. After a stop it checks every 3 s for a restart. */
export const marketStream$ = () =>
  relayFeed$<MarketValue>('/markets', { maxFeedStops: Infinity, backoff: { maxDelayMs: 3_000 } });
