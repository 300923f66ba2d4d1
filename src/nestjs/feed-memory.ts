import { BehaviorSubject, defer, type MonoTypeOperatorFunction, tap } from 'rxjs';
import { type ConnectionStatus, isSameStatus, statusOf, stoppedBy } from '../operators/connection-status.js';
import { FeedWatch } from '../operators/items/feed-watch.js';
import type { FeedEvent } from '../protocol/event.js';
import { snapshotSince } from '../protocol/feed-state.js';

/** The feed has no subscriber, so there is no connection. */
export interface Idle {
  readonly state: 'idle';
  /** When this status began, in epoch ms. */
  readonly since: number;
}

/** The status of the feed of a module. */
export type FeedStatus = ConnectionStatus | Idle;

/** Remembers the status of a feed, and the events that a new subscriber needs first. */
export class FeedMemory {
  readonly status$ = new BehaviorSubject<FeedStatus>({ state: 'idle', since: Date.now() });
  #watch: FeedWatch | undefined;
  /** The time of the last frame, in epoch ms. */
  #newestAt = -Infinity;

  /** What the subscription of the feed waits for, and for how long; `undefined` without a subscription. */
  get watch(): FeedWatch | undefined {
    return this.#watch;
  }

  /** The events that describe the feed now. A new subscriber must receive them first. */
  get snapshot(): readonly FeedEvent[] {
    if (this.#watch === undefined) return [];
    const { events, watermark } = this.#watch.state;
    if (watermark === undefined) return snapshotSince(events, Date.now());
    // Only a feed in a worker has watermarks: the last frame may be later.
    const since = Math.max(watermark, this.#newestAt);
    return [...snapshotSince(events, since), { type: 'watermark', at: watermark }];
  }

  /** Follows one subscription of the feed. Forwards the events unchanged. */
  track(): MonoTypeOperatorFunction<FeedEvent> {
    return (source) =>
      defer(() => {
        const watch = new FeedWatch();
        this.#watch = watch;
        this.#newestAt = -Infinity;
        // A replica of a cluster has no event before it follows an owner.
        if (this.status$.value.state === 'idle') this.status$.next({ state: 'connecting', since: Date.now() });
        return source.pipe(
          tap({
            next: (event) => {
              if (event.type === 'frame') this.#newestAt = event.receivedAt;
              if (event.type === 'frame') return watch.item(event);
              watch.event(event);
              // The status changes with the error that follows, when this run is over: a subscriber may then restart.
              if (event.type !== 'stopped') this.#setStatus(statusOf(watch.state));
            },
            error: (error: unknown) => this.status$.next(stoppedBy(error)),
            finalize: () => {
              watch.end();
              this.#watch = undefined;
              if (this.status$.value.state !== 'stopped') this.status$.next({ state: 'idle', since: Date.now() });
            },
          }),
        );
      });
  }

  #setStatus(status: ConnectionStatus | undefined): void {
    const { value: before } = this.status$;
    if (status === undefined || (status.state === 'connecting' && before.state === 'connecting')) return;
    if (before.state === 'idle' || !isSameStatus(status, before)) this.status$.next(status);
  }
}
