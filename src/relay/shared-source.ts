import { defer, finalize, merge, type Observable, type SchedulerLike, share, Subject, tap } from 'rxjs';
import { isReplayed, timeOf } from '../operators/items/item.js';
import { nextSnapshot, type Snapshot, snapshotSince } from '../protocol/snapshot.js';
import type { RelayedEvent, Watermark } from '../protocol/event.js';

/** One subscription of a source, shared by all topics. */
export interface SharedSource {
  /** The events. A later subscriber first receives the events that describe the current state of the feed. */
  readonly events$: Observable<RelayedEvent>;
  /** Returns whether the source has ended with this error. */
  hasFailedWith(error: unknown): boolean;
  /** Resets an ended source, so that the next subscriber subscribes to it again. */
  restart(): void;
}

/**
 * Shares a source: subscribes with the first subscriber, and unsubscribes with the last one. Does not subscribe again after the source has ended.
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
        next: (event) => (state = nextState(state, event)),
        error: (error: unknown) => (state = { ...state, failure: (failure = { error }) }),
        unsubscribe: () => (state = initial),
      }),
      // Calls `onStop` after the subscribers have received the error, because `onStop` may call `restart`.
      finalize(() => failure && onStop(failure.error)),
    );
  }).pipe(share({ resetOnError: () => reset$, resetOnComplete: () => reset$ }));
  return {
    events$: defer(() => merge(eventsOf(state, scheduler.now()), shared$)),
    hasFailedWith: (error) => state.failure !== undefined && state.failure.error === error,
    restart: () => {
      restarted.next();
    },
  };
};

interface SourceState {
  readonly snapshot: Snapshot;
  readonly watermark?: Watermark;
  /** The time of the last event of a recording, in epoch ms. */
  readonly recordedAt?: number | undefined;
  readonly failure?: { readonly error: unknown };
}

const initial: SourceState = { snapshot: [] };

const nextState = (state: SourceState, event: RelayedEvent): SourceState => {
  if (event.type === 'watermark') return { ...state, watermark: event };
  const snapshot = nextSnapshot(state.snapshot, event.type === 'stopped' ? { ...event, type: 'disconnected' } : event);
  if (isReplayed(event)) return { ...state, snapshot, recordedAt: timeOf(event) };
  return snapshot === state.snapshot ? state : { ...state, snapshot };
};

const eventsOf = ({ snapshot, watermark, recordedAt }: SourceState, now: number): readonly RelayedEvent[] => {
  const events = snapshotSince(snapshot, watermark?.at ?? recordedAt ?? now);
  return watermark === undefined ? events : [...events, watermark];
};
