import type { Observable } from 'rxjs';
import { checkOptions, integerIn } from '../options/check-options.js';
import { systemScheduler } from '../options/service-settings.js';
import { paced$ } from './paced.js';
import { below, hashFactory, pick, poolOf, type Random, seededRandom } from './seeded-random.js';
import { type SourceOptions, sourceChecks } from './source-options.js';

/** The options of {@link marketBatches$}. */
export interface MarketBatchesOptions extends SourceOptions {
  /** The number of trades in a batch, 1 to 1 000. @defaultValue 8 */
  readonly batchSize?: number | undefined;
}

/**
 * Emits random batches of trades, one JSON object per frame: a source for the `market` feed. Never completes.
 *
 * The contract does not show the payload (section 6, rule 5), so its format is chosen by this library. It contains no time, so the same seed produces
 * the same payloads. `batch` counts from 1.
 *
 * @param options - see {@link MarketBatchesOptions}
 * @throws TypeError when an option is not allowed
 * @example
 * ```ts
 * import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
 *
 * const service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 10, batchSize: 4 }) } });
 * await service.shutdown();
 * ```
 */
export const marketBatches$ = (options: MarketBatchesOptions = {}): Observable<string> => {
  checkOptions(options, { within: { ...sourceChecks, batchSize: integerIn(1, 1_000) } });
  const { rate = 20, seed = 1, scheduler = systemScheduler, batchSize = 8 } = options;
  return paced$(rate, () => batchFactory(seededRandom(seed), batchSize), scheduler);
};

const markets = [
  { market: 'ETH-USD', price: 3_000 },
  { market: 'BTC-USD', price: 60_000 },
  { market: 'LINK-USD', price: 15 },
  { market: 'UNI-USD', price: 8 },
] as const;

const batchFactory = (random: Random, batchSize: number): (() => string) => {
  const hash = hashFactory(random);
  const quotes = poolOf(4_096, () => {
    const { market, price } = pick(random, markets);
    const quoted = (price * (0.99 + below(random, 20_000) / 1_000_000)).toFixed(2);
    const amount = ((1 + below(random, 100_000)) / 1_000).toFixed(3);
    return `"market":"${market}","side":"${pick(random, ['buy', 'sell'])}","price":"${quoted}","amount":"${amount}"`;
  });
  const trade = (): string => `{"transaction":"${hash()}",${pick(random, quotes)}}`;
  let batch = 0;
  return () => {
    let trades = trade();
    for (let count = 1; count < batchSize; count += 1) trades += `,${trade()}`;
    return `{"batch":${(batch += 1)},"trades":[${trades}]}`;
  };
};
