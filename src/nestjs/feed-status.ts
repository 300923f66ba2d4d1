import { BehaviorSubject, defer, type MonoTypeOperatorFunction, Subject, tap } from 'rxjs';
import { connectionStatus, type ConnectionStatus } from '../operators/connection-status.js';
import type { FeedEvent, LifecycleEvent } from '../protocol/event.js';
import { nextPresent, type Present } from '../relay/present.js';

/** Nobody is subscribed, so there is no connection. */
export interface Idle {
  readonly state: 'idle';
  /** When that began, in epoch ms. */
  readonly since: number;
}

/** The feed stopped: it does not reconnect, because that makes no sense. */
export interface Stopped {
  readonly state: 'stopped';
  /** When that was, in epoch ms. */
  readonly since: number;
  /** What stopped it: a `TradeFeedError`, unless a function of yours in the options threw. */
  readonly failure: unknown;
}

/** How it stands with the feed of a module. */
export type FeedStatus = ConnectionStatus | Idle | Stopped;

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
              events.next(event);
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
