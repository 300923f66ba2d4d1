import type { LifecycleEvent } from '../protocol/event.js';
import { clusterMeanings } from '../protocol/failures/classify.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { afterEvent, type FeedState, noFeed, stoppedAt } from '../protocol/feed-state.js';

/**
 * The outage that an owner's next connection ends: that of the hand-over, until a connection is complete; later its own
 * one. It outlives the subscription, because an owner that was replaced opens again.
 */
export class OwnerOutage {
  #state: FeedState = noFeed;

  /** Returns the state before a subscription. @param hasOpened - whether any owner's connection has opened */
  begin(now: number, hasOpened: boolean): FeedState {
    const { outage } = this.#state;
    const failure = outage?.failure ?? createFailure(clusterMeanings.ownerChanged, { stage: 'stream', endedAt: now });
    return (this.#state = stoppedAt(outage?.from ?? now, failure, hasOpened));
  }

  /** Follows what the feed emits, `stopped` included. */
  receive(event: LifecycleEvent): void {
    this.#state = afterEvent(this.#state, event, undefined);
  }

  end(): void {
    this.#state = noFeed;
  }
}
