import { concatMap, type OperatorFunction, pipe, scan } from 'rxjs';
import type { Disconnected, Gap, LifecycleEvent, Opened } from '../protocol/event.js';

/**
 * Puts a `gap` behind each `opened` that ends an outage.
 *
 * Emits every event in its place; the first connection opens without a gap.
 */
export const withGaps = (): OperatorFunction<LifecycleEvent, LifecycleEvent> =>
  pipe(
    scan(step, { events: [] } as Outage),
    concatMap(({ events }) => events),
  );

interface Outage {
  /** What ended the last open connection, while none has followed it. */
  readonly lost?: Disconnected;
  readonly events: readonly LifecycleEvent[];
}

const step = ({ lost }: Outage, event: LifecycleEvent): Outage => {
  if (event.type === 'opened') return { events: lost ? [event, gapBetween(lost, event)] : [event] };
  if (event.type === 'disconnected' && event.failure.stage === 'stream') return { lost: event, events: [event] };
  return lost ? { lost, events: [event] } : { events: [event] };
};

const gapBetween = ({ failure }: Disconnected, { at }: Opened): Gap => {
  const from = Math.min(failure.endedAt, at);
  return { type: 'gap', from, to: at, durationMs: at - from, failure };
};
