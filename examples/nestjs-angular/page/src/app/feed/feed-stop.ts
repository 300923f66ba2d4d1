import { computed, signal } from '@angular/core';
import type { AngularTradeFeed, FeedStatus } from 'rx-trade-feed/angular';
import type { RelayedEvent } from 'rx-trade-feed/browser';
import { type Failure, isStop } from './failure';

/** The state that the page shows. */
export type FeedState = FeedStatus['state'];

/** Follows stops of the feed of the relay, and restarts it. While the feed is stopped, the page keeps checking for a restart. */
export class FeedStop {
  private readonly feed: Pick<AngularTradeFeed, 'status' | 'restart'>;
  private readonly stoppedBy = signal<Failure | undefined>(undefined);
  private readonly restarting = signal(false);

  /** The failure that stopped the feed of the relay; `undefined` while it runs. */
  readonly failure = this.stoppedBy.asReadonly();
  /** Whether a person has requested a restart. */
  readonly isRestarting = this.restarting.asReadonly();
  readonly state = computed<FeedState>(() => {
    const { state } = this.feed.status();
    return state === 'reconnecting' && this.stoppedBy() ? 'stopped' : state;
  });

  constructor(feed: Pick<AngularTradeFeed, 'status' | 'restart'>) {
    this.feed = feed;
  }

  /** Handles an event of the feed. */
  follow(event: RelayedEvent): void {
    if (event.type === 'disconnected' && isStop(event.failure)) this.stoppedBy.set(event.failure);
    else if (event.type === 'opened' || event.type === 'ticket-requested') this.stoppedBy.set(undefined);
    else return;
    this.restarting.set(false);
  }

  /** Removes the stop, because frames arrive again. */
  clear(): void {
    this.stoppedBy.set(undefined);
  }

  /** Restarts the feed. Only a person may do this: a restart closes the connection of another client of the account. */
  restart(): void {
    this.restarting.set(true);
    void fetch('/feed/restart', { method: 'POST' })
      // The stream reports the failure.
      .catch(() => undefined)
      .finally(() => this.feed.restart());
  }
}
