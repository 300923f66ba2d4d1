import { concatMap, type OperatorFunction, pipe, scan } from 'rxjs';
import type { LifecycleEvent } from '../protocol/event.js';
import { afterEvent, gapUntil, noOutages, type Outages } from '../protocol/outage.js';

/**
 * Adds a `gap` after each `opened` that ends an outage.
 *
 * Emits all other events unchanged, in order. There is no gap after the first `opened`.
 */
export const withGaps = (): OperatorFunction<LifecycleEvent, LifecycleEvent> =>
  pipe(
    scan(addGap, noEvents),
    concatMap(({ events }) => events),
  );

/** The state of the outages after an event. */
export interface WithGap {
  readonly outages: Outages;
  /** The event, and the `gap` that follows it. */
  readonly events: readonly LifecycleEvent[];
}

/** The state before the first event. */
export const noEvents: WithGap = Object.freeze({ outages: noOutages, events: [] });

/** Folds an event into the state. Pure. */
export const addGap = ({ outages: { current }, outages: before }: WithGap, event: LifecycleEvent): WithGap => {
  const outages = afterEvent(before, event, undefined);
  if (event.type !== 'opened' || current === undefined) return { outages, events: [event] };
  const gap = gapUntil(current, event.at);
  return { outages: afterEvent(outages, gap, undefined), events: [event, gap] };
};
