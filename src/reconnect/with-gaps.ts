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
    scan(step, { outages: noOutages, events: [] } as Step),
    concatMap(({ events }) => events),
  );

interface Step {
  readonly outages: Outages;
  readonly events: readonly LifecycleEvent[];
}

const step = ({ outages: { current }, outages: before }: Step, event: LifecycleEvent): Step => {
  const outages = afterEvent(before, event, undefined);
  if (event.type !== 'opened' || current === undefined) return { outages, events: [event] };
  const gap = gapUntil(current, event.at);
  return { outages: afterEvent(outages, gap, undefined), events: [event, gap] };
};
