import { defer, finalize, merge, type Observable, type SchedulerLike, share, Subject, tap } from 'rxjs';
import { isReplayed, timeOf } from '../operators/stream/item.js';
import type { RelayedEvent, Watermark } from '../protocol/event.js';
import { nextSnapshot, type Snapshot, snapshotSince } from '../protocol/snapshot.js';

/** One subscription of a source, for all topics. */
export interface SharedSource {
  /** The events. A subscriber that comes later first gets those that say how the feed is. */
  readonly events$: Observable<RelayedEvent>;
  /** Returns whether the source has ended with this error. */
  hasFailedWith(error: unknown): boolean;
  /** Forgets a source that has ended: the next subscriber subscribes to it again. */
  restart(): void;
}

/**
 * Shares a source: subscribes with the first subscriber, and unsubscribes with the last one. One that has ended is not subscribed to again.
 *
 * @param onStop - called with the error of the source, after all subscribers have received it
 */
export const shareSource = (
  source: Observable<RelayedEvent>,
  scheduler: SchedulerLike,
  onStop: (error: unknown) => void,
): SharedSource => {
  const restarted = new Subject<void>();
  let state = initial;

  const reset$ = restarted.pipe(tap(() => (state = initial)));
  const shared$ = defer(() => {
    let failure: SourceState['failure'];
    return source.pipe(
      tap({
        subscribe: () => (state = initial),
        next: (event) => (state = after(state, event)),
        error: (error: unknown) => (state = { ...state, failure: (failure = { error }) }),
        unsubscribe: () => (state = initial),
      }),
      // Not before the subscribers have the error: `restart` may be called from there.
      finalize(() => failure && onStop(failure.error)),
    );
  }).pipe(share({ resetOnError: () => reset$, resetOnComplete: () => reset$ }));
  return {
    events$: defer(() => merge(presentIn(state, scheduler.now()), shared$)),
    hasFailedWith: (error) => state.failure !== undefined && state.failure.error === error,
    restart: () => {
      restarted.next();
    },
  };
};

interface SourceState {
  readonly present: Snapshot;
  readonly watermark?: Watermark;
  /** The time of the last event of a recording, in epoch ms. */
  readonly recordedAt?: number | undefined;
  readonly failure?: { readonly error: unknown };
}

const initial: SourceState = { present: [] };

const after = (state: SourceState, event: RelayedEvent): SourceState => {
  if (event.type === 'watermark') return { ...state, watermark: event };
  const present = nextSnapshot(state.present, event.type === 'stopped' ? { ...event, type: 'disconnected' } : event);
  if (isReplayed(event)) return { ...state, present, recordedAt: timeOf(event) };
  return present === state.present ? state : { ...state, present };
};

const presentIn = ({ present, watermark, recordedAt }: SourceState, now: number): readonly RelayedEvent[] => {
  const told = snapshotSince(present, watermark?.at ?? recordedAt ?? now);
  return watermark === undefined ? told : [...told, watermark];
};
