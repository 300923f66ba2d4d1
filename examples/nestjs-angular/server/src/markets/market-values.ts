import { connect, merge, type OperatorFunction, pipe } from 'rxjs';
import { type Codec, decodeWith, type RelayedEvent } from 'rx-trade-feed';
import { candles } from './candles.js';
import { lastPrices } from './last-prices.js';
import type { MarketValue } from './market-value.js';
import type { TradeBatch } from './trade-batch.js';

/** Creates the operator that turns the feed into candles and last prices. It drops frames that the codec refuses. */
export const marketValues = (codec: Codec<TradeBatch>): OperatorFunction<RelayedEvent, MarketValue> =>
  pipe(
    decodeWith(codec),
    connect((trades) => merge(trades.pipe(lastPrices()), trades.pipe(candles()))),
  );
