import { asyncScheduler, type SchedulerLike } from 'rxjs';
import {
  aCount,
  aFunction,
  aScheduler,
  checkRequired,
  durationMs,
  positiveCount,
  positiveMs,
  type Rule,
  validated,
} from '../protocol/validate.js';

/** The options of `settle`. Durations are in ms of event time. */
export interface SettleOptions<T, K, V = T> {
  /** Returns the key of a trade, as the ledger has it, or `undefined` if the item isn't a trade. */
  readonly key: (item: T) => K | undefined;
  /**
   * Returns what only one trade can take, such as the sender with the nonce: `${from}:${nonce}`. Leave it out, and no
   * trade is ever `replaced`.
   */
  readonly slot?: ((item: T) => unknown) | undefined;
  /**
   * Returns what to keep for the outcome. Keep little, because that's the memory it takes. @defaultValue the item, with
   * a copy of its bytes
   */
  readonly keep?: ((item: T) => V) | undefined;
  /** How long a trade waits for the ledger. */
  readonly withinMs: number;
  /** How many blocks a trade waits for, if that's earlier. @defaultValue `Infinity` */
  readonly withinBlocks?: number | undefined;
  /** How long after its confirmation the feed may still show a trade. @defaultValue 5 000 */
  readonly graceMs?: number | undefined;
  /**
   * How long an outcome can be corrected, and how long before a confirmation the feed may have shown the trade. If the
   * feed shows a trade again after that, it's a new one. @defaultValue `withinMs`
   */
  readonly rememberMs?: number | undefined;
  /** How late an item or a step may be if a stream isn't in order. It delays every outcome. @defaultValue 0 */
  readonly allowedLatenessMs?: number | undefined;
  /** The maximum number of trades that wait or are remembered. @defaultValue 100 000 */
  readonly maxTrades?: number | undefined;
  /** The maximum size of what is kept for them, in bytes. @defaultValue 64 MiB */
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
