import type { Accumulator } from '../operators/window/window.js';
import type { Outcome, OutcomeState, PreviousOutcome } from './outcome.js';

/**
 * Counts the trades by outcome. In one window a count can be negative, because it also subtracts what it corrects in
 * earlier windows. For the final state, add up all windows.
 */
export type OutcomeStats = Record<OutcomeState, number> & {
  /** How many confirmed trades have a lead, by its class: see {@link leadAt}. */
  readonly leads: Record<number, number>;
};

/**
 * Counts outcomes in a window: spread it into the options of `tumblingWindow`, `slidingWindow` or `countWindow`.
 *
 * @example
 * ```ts
 * import { type FeedEvent, tumblingWindow } from 'rx-trade-feed';
 * import {
 *   coverage,
 *   leadAt,
 *   type Outcome,
 *   outcomeStats,
 * } from 'rx-trade-feed/settle';
 * import type { Observable } from 'rxjs';
 *
 * declare const outcomes$: Observable<FeedEvent | Outcome<string, string>>;
 * outcomes$
 *   .pipe(tumblingWindow({ lengthMs: 60_000, ...outcomeStats }))
 *   .subscribe(({ value }) =>
 *     console.log(
 *       value.confirmed,
 *       value.failed,
 *       coverage(value),
 *       leadAt(value, 0.5),
 *     ),
 *   );
 * ```
 */
export const outcomeStats: Accumulator<unknown, OutcomeStats> = Object.freeze({
  seed: (): OutcomeStats => ({
    ...{ confirmed: 0, failed: 0, replaced: 0, expired: 0, reorged: 0, unseen: 0, unknown: 0 },
    leads: {},
  }),
  add: (stats: OutcomeStats, item: unknown): OutcomeStats => {
    const outcome = item as (Outcome<unknown, unknown> & Partial<PreviousOutcome>) | null | undefined;
    if (outcome?.type !== 'outcome') return stats;
    count(stats, outcome, 1);
    if (outcome.previous !== undefined) count(stats, outcome.previous, -1);
    return stats;
  },
});

const count = (stats: OutcomeStats, { state, leadMs }: Omit<PreviousOutcome, 'at'>, by: 1 | -1): void => {
  stats[state] += by;
  if (state !== 'confirmed' || leadMs === undefined) return;
  const of = classOf(leadMs);
  stats.leads[of] = (stats.leads[of] ?? 0) + by;
};

/** Each class is √2 as wide as the one before; class 0 is below 1 ms. */
const classOf = (leadMs: number): number =>
  Math.abs(leadMs) < 1 ? 0 : Math.sign(leadMs) * (1 + Math.floor(2 * Math.log2(Math.abs(leadMs))));

const leadOf = (of: number): number => (of === 0 ? 0 : Math.sign(of) * 2 ** ((Math.abs(of) - 0.5) / 2));

/**
 * Returns the hit rate: the share of executed trades that the feed has shown, from 0 to 1. It's `confirmed` divided by
 * `confirmed + unseen`; `undefined` if none was executed.
 *
 * Trades that failed or whose outcome is unknown count on neither side. For an hour, add the windows first.
 */
export const coverage = ({ confirmed, unseen }: Pick<OutcomeStats, 'confirmed' | 'unseen'>): number | undefined =>
  confirmed + unseen > 0 ? confirmed / (confirmed + unseen) : undefined;

/**
 * Returns the lead that a share of the confirmed trades doesn't exceed, in ms and to 19 %; `undefined` if none was
 * confirmed.
 *
 * @param share - from 0 to 1: 0.5 is the median
 */
export const leadAt = ({ leads }: Pick<OutcomeStats, 'leads'>, share: number): number | undefined => {
  const counted = Object.entries(leads)
    .map(([of, count]) => ({ of: Number(of), count }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.of - b.of);
  let rest = share * counted.reduce((sum, { count }) => sum + count, 0);
  const found = counted.find(({ count }) => (rest -= count) <= 0) ?? counted.at(-1);
  return found && leadOf(found.of);
};
