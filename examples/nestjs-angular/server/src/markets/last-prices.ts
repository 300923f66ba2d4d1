import { filter, map, mergeMap, type OperatorFunction } from 'rxjs';
import { conflate, Conflated, Decoded } from 'rx-trade-feed';
import type { LastPrice } from './market-value.js';
import type { TradeBatch, TradeEvent } from './trade-batch.js';

/** The shortest time between two prices of a market, in ms. People can't read faster changes. */
export const priceEveryMs = 100;

/** Creates the operator that emits the last price of each market with new trades, at most ten times a second. */
export const lastPrices = (): OperatorFunction<TradeEvent, LastPrice> => (events) =>
  events.pipe(
    filter((event) => event instanceof Decoded),
    mergeMap(({ value, frame }) => pricesOf(value, frame.receivedAt)),
    conflate(({ symbol }) => symbol, priceEveryMs),
    filter((event) => event instanceof Conflated),
    map(({ value }) => value),
  );

/** Returns the last price of each market in a batch. */
const pricesOf = ({ trades }: TradeBatch, at: number): Iterable<LastPrice> =>
  new Map(trades.map(({ symbol, price }) => [symbol, { kind: 'price', symbol, price, at } as const])).values();
