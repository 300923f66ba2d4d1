import { map, type OperatorFunction } from 'rxjs';
import { type AccumulatedWindow, tumblingWindow } from 'rx-trade-feed';
import type { Candle, CandleWindow } from './market-value.js';
import type { TradeBatch, TradeEvent } from './trade-batch.js';

/** The length of a candle in ms. */
export const candleMs = 1_000;

/** Creates the operator that emits the candles of each second. The time of a trade is when its frame was received. */
export const candles = (): OperatorFunction<TradeEvent, CandleWindow> => (events) =>
  events.pipe(
    tumblingWindow({
      lengthMs: candleMs,
      seed: () => new Map<string, Candle>(),
      add: (candles, { value }) => addTrades(candles, value),
    }),
    map(candleWindow),
  );

/** Adds trades to the candles of their markets. */
const addTrades = (candles: Map<string, Candle>, { trades }: TradeBatch): Map<string, Candle> => {
  for (const { symbol, price, size } of trades) {
    const candle = candles.get(symbol);
    candles.set(symbol, candle === undefined ? [price, price, price, price, size, 1] : longer(candle, price, size));
  }
  return candles;
};

const longer = ([open, high, low, , volume, trades]: Candle, price: number, size: number): Candle => [
  open,
  Math.max(high, price),
  Math.min(low, price),
  price,
  volume + size,
  trades + 1,
];

const candleWindow = ({
  start,
  end,
  complete,
  gaps,
  value,
}: AccumulatedWindow<ReadonlyMap<string, Candle>>): CandleWindow => ({
  kind: 'candles',
  start,
  end,
  complete,
  gaps: gaps.map(({ from, to }) => ({ from, to })),
  candles: Object.fromEntries([...value].map(([symbol, candle]) => [symbol, rounded(candle)])),
});

/** Rounds the error of floating-point sums: 0.1 + 0.2 is 0.30000000000000004. */
const rounded = ([open, high, low, close, volume, trades]: Candle): Candle => [
  open,
  high,
  low,
  close,
  Number(volume.toPrecision(12)),
  trades,
];
