import { defer, from, interval, mergeMap, type Observable, type SchedulerLike, Subscription, tap } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import { aScheduler, integerIn, type Rule, validated } from '../protocol/validate.js';
import { type Payload, systemScheduler } from './service-options.js';
import type { ServiceState } from './state.js';

/** The options of {@link marketBatches$}. */
export interface MarketBatchesOptions extends SourceOptions {
  /** How many trades a batch holds, 1 to 1 000. @defaultValue 8 */
  readonly batchSize?: number | undefined;
}

/**
 * Emits random batches of trades, one JSON object per frame: a source for the `market` feed. Never completes.
 *
 * The contract doesn't show the payload (section 6, rule 5), so this library chose a format. It holds no time, so the
 * same seed produces the same payloads. `batch` counts from 1.
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
 *
 * const service = await startTradeFeedService({
 *   sources: { market: marketBatches$({ rate: 10, batchSize: 4 }) },
 * });
 * await service.shutdown();
 * ```
 */
export const marketBatches$ = (options: MarketBatchesOptions = {}): Observable<string> => {
  const rules = { ...sourceRules, batchSize: integerIn(1, 1_000) };
  const { rate = 20, seed = 1, scheduler = systemScheduler, batchSize = 8 } = validated(options, rules);
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

/** The shortest time between two bursts, in ms: more timers would cost too much CPU time. */
const shortestTickMs = 4;
/** How much a blocked process catches up on, in seconds. Skips older values rather than send one huge burst. */
const longestCatchUpS = 0.1;

/**
 * Emits values at an average rate: one by one at a low rate, in bursts at a high rate. Never completes.
 *
 * @param createFactory - returns the function that creates the values of a subscription, from the first one on
 */
export const paced$ = <T>(rate: number, createFactory: () => () => T, scheduler: SchedulerLike): Observable<T> =>
  defer(() => {
    const create = createFactory();
    const startedAt = scheduler.now();
    const most = Math.max(1, Math.ceil(rate * longestCatchUpS));
    let done = 0;
    return interval(Math.max(shortestTickMs, 1000 / rate), scheduler).pipe(
      mergeMap(() => {
        const due = Math.round(((scheduler.now() - startedAt) * rate) / 1000) - done;
        done += Math.max(0, due);
        return Array.from({ length: Math.min(most, Math.max(0, due)) }, create);
      }),
    );
  });

/**
 * Emits random pending transactions, one JSON object per frame: a source for the `raw` feed. Never completes.
 *
 * The contract doesn't show the payload (section 6, rule 5). This source uses an Ethereum node's format of a pending
 * transaction. A payload holds no time, so the same seed produces the same payloads.
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import {
 *   pendingTransactions$,
 *   startTradeFeedService,
 * } from 'rx-trade-feed/testing';
 *
 * const service = await startTradeFeedService({
 *   sources: { raw: pendingTransactions$({ rate: 100, seed: 7 }) },
 * });
 * await service.shutdown();
 * ```
 */
export const pendingTransactions$ = (options: SourceOptions = {}): Observable<string> => {
  const { rate = 20, seed = 1, scheduler = systemScheduler } = validated(options, sourceRules);
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

/**
 * Subscribes to each source once. Emits an event when a source ends; the others carry on. Unsubscribe to stop them all.
 */
export const runSources = (state: ServiceState, push: (feed: Feed, payload: Payload) => void): Subscription => {
  const running = new Subscription();
  for (const [feed, source] of Object.entries(state.settings.sources) as [Feed, Observable<Payload>][]) {
    const ended = (error: unknown): void => state.emit({ type: 'source-ended', feed, error });
    const pushing$ = from(source).pipe(tap((payload) => push(feed, payload)));
    running.add(pushing$.subscribe({ error: ended, complete: () => ended(undefined) }));
  }
  return running;
};

// A whole number from 0 to 2^32-1.
type Random = () => number;

/** Creates a random number generator (mulberry32). The same seed gives the same sequence. Not for secrets. */
export const seededRandom = (seed: number): Random => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
};

const below = (random: Random, bound: number): number => Math.floor((random() / 2 ** 32) * bound);

/** Returns `0x` and `bytes` random bytes in hex, where `bytes` is a multiple of 4. */
const hexBytes = (random: Random, bytes: number): string => {
  let hex = '0x';
  for (let written = 0; written < bytes; written += 4) hex += random().toString(16).padStart(8, '0');
  return hex;
};

/** Creates values to pick from later: at 50 000 frames per second, creating a new one each time costs too much. */
const poolOf = <T>(size: number, create: () => T): readonly T[] => Array.from({ length: size }, create);

/** Creates a function that returns hashes: 4 random bytes, and 28 from two pools of 1 024 values. */
const hashFactory = (random: Random): (() => string) => {
  const heads = poolOf(1_024, () => hexBytes(random, 12));
  const tails = poolOf(1_024, () => hexBytes(random, 16).slice(2));
  return () => pick(random, heads) + random().toString(16).padStart(8, '0') + pick(random, tails);
};

const pick = <T>(random: Random, values: readonly T[]): T => values[below(random, values.length)] as T;

/** The options of all built-in sources. */
export interface SourceOptions {
  /** Frames per second: above 0, up to 100 000. @defaultValue 20 */
  readonly rate?: number | undefined;
  /** A whole number from 0 to 2^32-1. The same seed produces the same payloads in the same order. @defaultValue 1 */
  readonly seed?: number | undefined;
  /** The clock of the rate. @defaultValue real time */
  readonly scheduler?: SchedulerLike | undefined;
}

export const sourceRules: Readonly<Record<keyof SourceOptions, Rule>> = {
  rate: { allowed: 'a number above 0, up to 100000', is: (v) => typeof v === 'number' && v > 0 && v <= 100_000 },
  seed: integerIn(0, 2 ** 32 - 1),
  scheduler: aScheduler,
};
