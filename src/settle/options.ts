import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { aCount, aFunction, aScheduler, checkRequired, durationMs } from '../protocol/validate.js';
import { positiveCount, positiveMs, type Rule, validated } from '../protocol/validate.js';

/** The options of `settle`. Durations are in ms of event time. */
export interface SettleOptions<T, K, V = T> {
  /** Returns the key of a trade, as the ledger has it, compared as by a `Map`; `undefined` if the item is no trade. */
  readonly key: (item: T) => K | undefined;
  /**
   * Returns what only one trade can take, such as the sender with the nonce: `${from}:${nonce}`. Without it no trade is
   * `replaced`.
   */
  readonly slot?: ((item: T) => unknown) | undefined;
  /**
   * Returns what an outcome carries. Memory is what you keep, so keep little. @defaultValue the item, with a copy of
   * its bytes
   */
  readonly keep?: ((item: T) => V) | undefined;
  /** How long a trade waits for the ledger. */
  readonly withinMs: number;
  /** How many blocks a trade waits for. The earlier of the two counts. @defaultValue `Infinity` */
  readonly withinBlocks?: number | undefined;
  /** How much later than its confirmation the feed may show a trade. @defaultValue 5 000 */
  readonly graceMs?: number | undefined;
  /**
   * How long an outcome can be corrected, and how long before a confirmation the feed may have shown the trade. A
   * trade that is shown again later than that is a new one. @defaultValue `withinMs`
   */
  readonly rememberMs?: number | undefined;
  /** How late an item or a step may be in a stream that is not in order. It delays each outcome. @defaultValue 0 */
  readonly allowedLatenessMs?: number | undefined;
  /** The maximum number of trades: waiting for their time, for the ledger, or remembered. @defaultValue 100 000 */
  readonly maxTrades?: number | undefined;
  /** The maximum size of what they keep, in bytes. @defaultValue 64 MiB */
  readonly maxBytes?: number | undefined;
  /** The clock. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

export type Settings = ReturnType<typeof settingsOf>;

/** Checks the options, and adds the defaults. */
export const settingsOf = (options: object) => {
  const given = validated(options as SettleOptions<unknown, unknown>, rules);
  checkRequired(given, { key: rules.key, withinMs: rules.withinMs });
  return { ...defaults, rememberMs: given.withinMs, ...given };
};

const defaults = {
  withinBlocks: Infinity,
  graceMs: 5_000,
  allowedLatenessMs: 0,
  maxTrades: 100_000,
  maxBytes: 64 * 1024 * 1024,
  scheduler: asyncScheduler as SchedulerLike,
};

const rules = {
  key: aFunction,
  slot: aFunction,
  keep: aFunction,
  withinMs: positiveMs,
  withinBlocks: aCount(1),
  graceMs: durationMs,
  rememberMs: durationMs,
  allowedLatenessMs: durationMs,
  maxTrades: positiveCount,
  maxBytes: positiveCount,
  scheduler: aScheduler,
} satisfies Readonly<Record<string, Rule>>;
