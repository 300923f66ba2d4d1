import { randomBytes } from 'node:crypto';
import { map, type Observable } from 'rxjs';
import { marketBatches$ } from 'rx-trade-feed/testing';

/** Options of {@link tradeBatches$}. */
export interface TradeBatchesOptions {
  /** Batches a second. */
  readonly rate: number;
  /** Trades in a batch. */
  readonly batchSize?: number;
  /** Returns a number from 0 to 1. */
  readonly random?: () => number;
}

/**
 * Emits made-up batches of trades as JSON, one batch a frame. The prices go up and down at random. Never completes.
 * Subscribe once at a time: the prices are shared.
 *
 * The contract of the service doesn't describe the payload, so this one is invented for the demo. `server/src/markets/trade-batch.ts` reads it.
 */
export const tradeBatches$ = ({
  rate,
  batchSize = 8,
  random = Math.random,
}: TradeBatchesOptions): Observable<string> => {
  // Prices outlive a subscription, so that they don't jump when the local service restarts.
  const quotes = markets.map((market) => quoteOf(market, rate, random));
  const nextHash = hashes();
  let batch = 0;
  const trade = (time: number) => {
    const { symbol, trade } = pick(quotes, random);
    return { transaction: nextHash(), symbol, ...trade(), time };
  };
  // The library's source sets the pace; only the payload is replaced.
  return marketBatches$({ rate, batchSize: 1 }).pipe(
    map(() => {
      for (const quote of quotes) quote.move();
      const time = Date.now();
      return JSON.stringify({ batch: (batch += 1), trades: Array.from({ length: batchSize }, () => trade(time)) });
    }),
  );
};

interface Market {
  readonly symbol: string;
  /** The price around which the market moves. */
  readonly price: number;
  /** The smallest step of the price: 1 / `ticks`. */
  readonly ticks: number;
  /** The share of all trades. */
  readonly share: number;
  /** The mean size of a trade. */
  readonly size: number;
}

const markets: readonly Market[] = [
  { symbol: 'ETH-USD', price: 3_000, ticks: 100, share: 0.3, size: 0.8 },
  { symbol: 'BTC-USD', price: 60_000, ticks: 10, share: 0.27, size: 0.05 },
  { symbol: 'SOL-USD', price: 150, ticks: 100, share: 0.18, size: 12 },
  { symbol: 'LINK-USD', price: 15, ticks: 10_000, share: 0.12, size: 90 },
  { symbol: 'UNI-USD', price: 8, ticks: 10_000, share: 0.08, size: 160 },
  { symbol: 'AAVE-USD', price: 95, ticks: 100, share: 0.05, size: 10 },
];

/** The standard deviation of the price's change in a second, as a share of the price. */
const movePerSecond = 0.0005;
/** The share of its distance from the start price that a price loses in a second. */
const pullPerSecond = 0.004;
/** How fast a market becomes busier or quieter, and how fast it returns to normal, per second. */
const [rushPerSecond, calmPerSecond] = [0.45, 0.25];

interface Quote {
  readonly symbol: string;
  readonly share: number;
  /** Moves the price by one batch. */
  readonly move: () => void;
  readonly trade: () => { readonly side: 'buy' | 'sell'; readonly price: number; readonly size: number };
}

const quoteOf = ({ symbol, price, ticks, share, size }: Market, rate: number, random: () => number): Quote => {
  // log(current price / start price). A batch lasts 1 / rate seconds, so a second moves the price equally far at any rate.
  let place = (normal(random) * movePerSecond) / Math.sqrt(2 * pullPerSecond);
  // log(activity / normal activity).
  let rush = 0;
  return {
    symbol,
    share,
    move: () => {
      rush += (normal(random) * rushPerSecond) / Math.sqrt(rate) - (rush * calmPerSecond) / rate;
      // A busy market moves more.
      const step = (normal(random) * movePerSecond * Math.exp(rush / 2)) / Math.sqrt(rate);
      place += step - (place * pullPerSecond) / rate;
    },
    trade: () => {
      const side = random() < 0.5 ? 'buy' : 'sell';
      const spread = (side === 'buy' ? 1 : -1) * random() * 0.00005;
      // Exponentially distributed: many small trades, few large ones.
      const much = -Math.log(1 - random() * 0.9999) * size * Math.exp(rush);
      return {
        side,
        price: Math.round(price * Math.exp(place + spread) * ticks) / ticks,
        size: Math.max(1, Math.round(much * 1_000)) / 1_000,
      };
    },
  };
};

/** Returns an approximately normal random number: the sum of twelve uniform ones, minus 6. */
const normal = (random: () => number): number => {
  let sum = -6;
  for (let added = 0; added < 12; added += 1) sum += random();
  return sum;
};

/** Picks a quote at random, weighted by its share. */
const pick = (quotes: readonly Quote[], random: () => number): Quote => {
  let left = random();
  return quotes.find(({ share }) => (left -= share) < 0) ?? (quotes[0] as Quote);
};

/** Creates a function that returns a new transaction hash on each call. */
const hashes = (): (() => string) => {
  const begin = `0x${randomBytes(26).toString('hex')}`;
  let count = 0;
  return () => begin + (count += 1).toString(16).padStart(12, '0');
};
