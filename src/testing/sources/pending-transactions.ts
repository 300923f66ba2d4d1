import type { Observable } from 'rxjs';
import { checkOptions } from '../options/check-options.js';
import { systemScheduler } from '../options/service-settings.js';
import { paced$ } from './paced.js';
import { below, hashFactory, hexBytes, pick, poolOf, type Random, seededRandom } from './seeded-random.js';
import { type SourceOptions, sourceChecks } from './source-options.js';

/**
 * Emits random pending transactions, one JSON object per frame: a source for the `raw` feed. Never completes.
 *
 * The contract does not show the payload (section 6, rule 5). This source uses the format of a pending transaction of an Ethereum node. A payload
 * contains no time, so the same seed produces the same payloads.
 *
 * @param options - see {@link SourceOptions}
 * @throws TypeError when an option is not allowed
 * @example
 * ```ts
 * import { pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';
 *
 * const service = await startTradeFeedService({ sources: { raw: pendingTransactions$({ rate: 100, seed: 7 }) } });
 * await service.shutdown();
 * ```
 */
export const pendingTransactions$ = (options: SourceOptions = {}): Observable<string> => {
  checkOptions(options, { within: sourceChecks });
  const { rate = 20, seed = 1, scheduler = systemScheduler } = options;
  return paced$(rate, () => transactionFactory(seededRandom(seed)), scheduler);
};

const gwei = 1e9;
const selectors = ['0xa9059cbb', '0x095ea7b3', '0x38ed1739', '0x7ff36ab5'] as const;
const hex = (value: number): string => `0x${value.toString(16)}`;

const transactionFactory = (random: Random): (() => string) => {
  const hash = hashFactory(random);
  const addresses = poolOf(512, () => hexBytes(random, 20));
  const values = poolOf(512, () => hex(below(random, 1_000_000) * gwei * 1_000));
  // A plain transfer has no input and costs 21 000 gas; a call has a selector and an argument.
  const calls = poolOf(256, () =>
    random() % 2 === 0
      ? `"gas":"0x5208","input":"0x"`
      : `"gas":"${hex(60_000 + below(random, 240_000))}","input":"${pick(random, selectors)}${hexBytes(random, 32).slice(2)}"`,
  );
  const fees = poolOf(256, () => {
    const tip = (1 + below(random, 30)) * (gwei / 10);
    return `"maxPriorityFeePerGas":"${hex(tip)}","maxFeePerGas":"${hex(tip + (10 + below(random, 40)) * gwei)}"`;
  });
  return () =>
    `{"hash":"${hash()}","type":"0x2","chainId":"0x1","from":"${pick(random, addresses)}",` +
    `"to":"${pick(random, addresses)}","nonce":"${hex(below(random, 5_000))}","value":"${pick(random, values)}",` +
    `${pick(random, fees)},${pick(random, calls)}}`;
};
