import { BehaviorSubject, defer, type MonoTypeOperatorFunction, Subject, tap } from 'rxjs';
import { connectionStatus } from '../operators/connection-status.js';
import type { FeedEvent, LifecycleEvent, Watermark } from '../protocol/event.js';
import { nextSnapshot, type Snapshot, snapshotSince } from '../protocol/snapshot.js';
import { type FeedStatus, idleNow, stoppedBy } from './feed-status.js';

/** Stores the status of a feed, and the events that a new subscriber needs first. */
export class FeedMemory {
  /** The status of the feed. */
  readonly status$ = new BehaviorSubject<FeedStatus>(idleNow());
  #snapshot: Snapshot = [];
  /** The last watermark. Only a feed that a worker receives has one. */
  #watermark: Watermark | undefined;

  /** Returns the events that describe the feed now. A new subscriber must receive them first. */
  get snapshot(): readonly FeedEvent[] {
    const watermark = this.#watermark;
    if (watermark === undefined) return snapshotSince(this.#snapshot, Date.now());
    return [...snapshotSince(this.#snapshot, watermark.at), watermark];
  }

  /** Updates the status and the snapshot from the events of the source. Forwards the events unchanged. */
  track(): MonoTypeOperatorFunction<FeedEvent> {
    return (source) =>
      defer(() => {
        const events = new Subject<LifecycleEvent>();
        events.pipe(connectionStatus()).subscribe((status) => this.status$.next(status));
        return source.pipe(
          tap({
            next: (event) => {
              // The status changes with the error after `stopped`, when this run is over: a subscriber may then start the next one.
              if (event.type === 'frame' || event.type === 'stopped') return;
              if (event.type === 'watermark') this.#watermark = event;
              this.#snapshot = nextSnapshot(this.#snapshot, event);
              events.next(event);
            },
            error: (error: unknown) => this.status$.next(stoppedBy(error)),
            finalize: () => {
              this.#snapshot = [];
              this.#watermark = undefined;
              if (this.status$.value.state !== 'stopped') this.status$.next(idleNow());
            },
          }),
        );
      });
  }
}
