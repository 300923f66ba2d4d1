import { BehaviorSubject, defer, type MonoTypeOperatorFunction, Subject, tap } from 'rxjs';
import { connectionStatus } from '../operators/connection-status.js';
import type { FeedEvent, LifecycleEvent } from '../protocol/event.js';
import { nextPresent, type Present } from '../relay/present.js';
import type { FeedStatus, Idle } from './feed-status.js';

/** What is known of a feed by whoever was there from its beginning. */
export class FeedMemory {
  /** How it stands. */
  readonly status$ = new BehaviorSubject<FeedStatus>(idle());
  /** The events that make up how it stands: what somebody who joins has to be told first. */
  present: Present = [];

  /** Keeps what flows through it. */
  keep(): MonoTypeOperatorFunction<FeedEvent> {
    return (source) =>
      defer(() => {
        const events = new Subject<LifecycleEvent>();
        events.pipe(connectionStatus()).subscribe((status) => this.status$.next(status));
        return source.pipe(
          tap({
            next: (event) => {
              if (event.type === 'frame') return;
              this.present = nextPresent(this.present, event);
              // A subscriber of the status may subscribe to the feed again at once, but the error must end this run first.
              if (event.type !== 'stopped') events.next(event);
            },
            error: (failure: unknown) => this.status$.next({ state: 'stopped', since: Date.now(), failure }),
            finalize: () => {
              this.present = [];
              if (this.status$.value.state !== 'stopped') this.status$.next(idle());
            },
          }),
        );
      });
  }
}

const idle = (): Idle => ({ state: 'idle', since: Date.now() });
