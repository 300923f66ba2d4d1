import { BehaviorSubject, defer, type MonoTypeOperatorFunction, Subject, tap } from 'rxjs';
import { connectionStatus } from '../operators/connection-status.js';
import type { FeedEvent, LifecycleEvent, Watermark } from '../protocol/event.js';
import { nextSnapshot, type Snapshot, snapshotSince } from '../protocol/snapshot.js';
import type { FeedStatus, Idle } from './feed-status.js';

/** What is known of a feed by whoever was there from its beginning. */
export class FeedMemory {
  /** How it stands. */
  readonly status$ = new BehaviorSubject<FeedStatus>(idle());
  #present: Snapshot = [];
  /** The last watermark, of a feed that a worker receives. */
  #watermark: Watermark | undefined;

  /** Returns the events that say how the feed is now: what a subscriber that joins has to receive first. */
  get present(): readonly FeedEvent[] {
    const watermark = this.#watermark;
    if (watermark === undefined) return snapshotSince(this.#present, Date.now());
    return [...snapshotSince(this.#present, watermark.at), watermark];
  }

  /** Keeps what flows through it. */
  keep(): MonoTypeOperatorFunction<FeedEvent> {
    return (source) =>
      defer(() => {
        const events = new Subject<LifecycleEvent>();
        events.pipe(connectionStatus()).subscribe((status) => this.status$.next(status));
        return source.pipe(
          tap({
            next: (event) => {
              // The error that follows `stopped` ends this run: a subscriber of the status may subscribe to the feed again at once.
              if (event.type === 'frame' || event.type === 'stopped') return;
              if (event.type === 'watermark') this.#watermark = event;
              this.#present = nextSnapshot(this.#present, event);
              events.next(event);
            },
            error: (failure: unknown) => this.status$.next({ state: 'stopped', since: Date.now(), failure }),
            finalize: () => {
              this.#present = [];
              this.#watermark = undefined;
              if (this.status$.value.state !== 'stopped') this.status$.next(idle());
            },
          }),
        );
      });
  }
}

const idle = (): Idle => ({ state: 'idle', since: Date.now() });
