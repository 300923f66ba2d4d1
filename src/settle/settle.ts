import {
  concatAll,
  defer,
  endWith,
  filter,
  map,
  merge,
  NEVER,
  type Observable,
  type OperatorFunction,
  repeat,
  switchMap,
  takeUntil,
  timer,
} from 'rxjs';
import { collect$ } from '../operators/items/collect.js';
import type { ItemOf, NotInferred } from '../operators/items/item.js';
import type { WindowSource } from '../operators/window/window.js';
import type { ClusterLifecycleEvent, Gap, Watermark } from '../protocol/event.js';
import { checkRequired, clampMs, objectWith } from '../protocol/validate.js';
import { FromLedger, Join, over } from './join.js';
import { settingsOf, type SettleOptions } from './settle-options.js';
import type { LedgerStep, Outcome } from './outcome.js';

/**
 * Says what became of each trade of a feed. It joins the feed with a ledger by the time of both.
 *
 * Emits outcomes and lifecycle events, not the trades themselves. An {@link Outcome} comes once it's certain:
 * `confirmed` or `failed`, with its lead; `replaced` by another trade of its slot; `expired`; `unseen`, if only the
 * ledger has executed it; `reorged`, if the ledger takes it back. Where the feed or the ledger wasn't observed, the
 * outcome is `unknown` and says why. A later outcome of the same key has `previous`: add each and subtract its
 * `previous`, and your sums are exact at every moment, as in `tumblingWindow({ ...outcomeStats })`.
 *
 * An outcome needs the time of both streams, so a ledger that stands still decides nothing. Once an outage is known, it
 * counts for all later decisions and corrects the earlier ones. The feed's lifecycle events pass at once. Watermarks go
 * by the outcomes, one every 250 ms of time, and the ledger's gaps follow when the feed is open.
 *
 * When the feed completes, it decides the waiting trades first. When both streams are over or one errors, those are
 * `unknown`. Errors when `key`, `slot` or `keep` throws. Put `retry` before `ledger`. Memory: `maxTrades` and
 * `maxBytes`. Beyond them it forgets decided trades first, and outcomes that this may change are `unknown`.
 * ```ts
 * // - is 1 s; a, b, c: trades; withinMs: 8_000, graceMs: 2_000; the ledger
 * // confirms a, then d
 * // feed      oa-b---c---------------
 * // ledger    --n--a--n--d--n--n--n--
 * // settle    -----C-----X-----U---Y-
 * // C: a confirmed, leadMs 4_000; X: b expired, U: d unseen, Y: c expired
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
 * // From your node: see `ledger`
 * const ledger$ = new Subject<LedgerStep<string>>();
 * tradeFeedEvents$('raw')
 *   .pipe(
 *     settle(ledger$, {
 *       key: (frame) => frame.text().slice(0, 66),
 *       keep: () => undefined,
 *       withinMs: 60_000,
 *     }),
 *   )
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
  const settings = settingsOf(options);
  return ((source: Observable<unknown>) =>
    defer(() => {
      const join = new Join(settings);
      const wake$ = defer(() => {
        const waitMs = join.waitMs();
        return waitMs === Infinity ? NEVER : timer(clampMs(Math.max(1, Math.ceil(waitMs))), settings.scheduler);
      }).pipe(repeat());
      const fromLedger$ = ledger$.pipe(endWith(over)).pipe(map((value) => new FromLedger(value)));
      const both$ = merge(fromLedger$.pipe(takeUntil(join.isDecided$)), source.pipe(endWith(over)));
      const ticks = switchMap(() => wake$.pipe(filter(() => join.tick())));
      return collect$(both$, join, ticks).pipe(concatAll());
    })) as never;
};
