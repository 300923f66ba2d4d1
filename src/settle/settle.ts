import {
  asyncScheduler,
  defer,
  endWith,
  filter,
  map,
  merge,
  NEVER,
  type Observable,
  type OperatorFunction,
} from 'rxjs';
import { repeat, type SchedulerLike, switchMap, takeUntil, timer } from 'rxjs';
import type { ItemOf, NotInferred } from '../operators/items/item.js';
import { collect$ } from '../operators/items/collect.js';
import type { WindowSource } from '../operators/window/window.js';
import type { ClusterLifecycleEvent, Gap, Watermark } from '../protocol/event.js';
import { aFunction, aScheduler, checkRequired, clampMs, durationMs, objectWith } from '../protocol/validate.js';
import { positiveCount, positiveMs, type Rule, validated } from '../protocol/validate.js';
import { FromLedger, Join, over } from './join.js';
import type { LedgerStep, Outcome } from './outcome.js';

/** The options of {@link settle}. Durations are in ms of event time. */
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

/**
 * Says what became of each trade of a feed. It joins the feed with a ledger by the time of both.
 *
 * Emits an {@link Outcome} once it's certain: `confirmed`, with its lead; `replaced` by another trade of its
 * slot; `expired`; `unseen`, if only the ledger has it; `reorged`, if the ledger takes it back. Where the feed or the
 * ledger wasn't observed, the outcome is `unknown` and says why. A later outcome of the same key has `previous`: add
 * each and subtract its `previous`, and your sums are exact at every moment, as in
 * `tumblingWindow({ ...outcomeStats })`.
 *
 * An outcome needs the time of both streams, so a ledger that stands still decides nothing. Once an outage is known, it
 * counts for all later decisions and corrects the earlier ones. The feed's lifecycle events pass at once. Watermarks go
 * by the outcomes, one every 250 ms of time, and the ledger's gaps follow when the feed is open.
 *
 * When the feed completes, it decides the waiting trades first. When both streams are over or one errors, those are
 * `unknown`. Errors when `key`, `slot` or `keep` throws. Put `retry` before `ledger`. Memory: `maxTrades` and
 * `maxBytes`. Beyond them it forgets decided trades first, and outcomes that this may change are `unknown`.
 * ```ts
 * // - is 1 s; a, b, c: trades; withinMs: 8_000, graceMs: 2_000; the ledger confirms a, then d
 * // feed      oa-b---c---------------
 * // ledger    --n--a--n--d--n--n--n--
 * // settle    -----C-----X-----U---Y-   C: a confirmed, leadMs 4_000; X: b expired, U: d unseen, Y: c expired
 * ```
 *
 * @param ledger$ - the steps of {@link ledger}, or your own; lifecycle events in it count as its outages
 * @param options - see {@link SettleOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { Subject } from 'rxjs';
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 * import { type LedgerStep, settle } from 'rx-trade-feed/settle';
 *
 * const ledger$ = new Subject<LedgerStep<string>>(); // from your node: see `ledger`
 * tradeFeedEvents$('raw')
 *   .pipe(settle(ledger$, { key: (frame) => frame.text().slice(0, 66), keep: () => undefined, withinMs: 60_000 }))
 *   .subscribe((event) => {
 *     if (event.type === 'outcome') console.log(event.key, event.state);
 *   });
 * ```
 */
export const settle = <E, K, V = ItemOf<E>>(
  ledger$: Observable<LedgerStep<K> | ClusterLifecycleEvent>,
  options: SettleOptions<ItemOf<NotInferred<E>>, NoInfer<K>, V>,
): OperatorFunction<
  WindowSource<E>,
  Exclude<Extract<NotInferred<E>, ClusterLifecycleEvent>, Watermark> | Gap | Watermark | Outcome<V, K>
> => {
  checkRequired({ ledger$ }, { ledger$: objectWith('subscribe', 'an Observable of ledger steps') });
  const checked = { ...defaults, ...validated<object>(options, rules) } as typeof defaults & typeof options;
  checkRequired(checked, { key: rules.key, withinMs: rules.withinMs });
  const { scheduler = asyncScheduler, rememberMs = checked.withinMs } = checked;
  return ((source: Observable<unknown>) =>
    defer(() => {
      const join = new Join<V, K>({ ...checked, rememberMs } as never, () => scheduler.now());
      const wake$ = defer(() => {
        const waitMs = join.waitMs();
        return waitMs === Infinity ? NEVER : timer(clampMs(Math.max(1, Math.ceil(waitMs))), scheduler);
      }).pipe(repeat());
      const fromLedger$ = ledger$.pipe(endWith(over)).pipe(map((value) => new FromLedger(value)));
      const both$ = merge(fromLedger$.pipe(takeUntil(join.isDecided$)), source.pipe(endWith(over)));
      const ticks = switchMap(() => wake$.pipe(filter(() => join.tick())));
      return collect$(both$, join, ticks);
    })) as never;
};

const defaults = Object.freeze({
  withinBlocks: Infinity,
  graceMs: 5_000,
  allowedLatenessMs: 0,
  maxTrades: 100_000,
  maxBytes: 64 * 1024 * 1024,
} as const);

const rules = {
  key: aFunction,
  slot: aFunction,
  keep: aFunction,
  withinMs: positiveMs,
  withinBlocks: { allowed: 'a whole number, 1 or more, or Infinity', is: (v) => v === Infinity || positiveCount.is(v) },
  graceMs: durationMs,
  rememberMs: durationMs,
  allowedLatenessMs: durationMs,
  maxTrades: positiveCount,
  maxBytes: positiveCount,
  scheduler: aScheduler,
} satisfies Readonly<Record<string, Rule>>;
