import type { Stopped } from '../../protocol/event.js';
import { failureOf } from '../../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, type FeedState, hasStopped, noFeed } from '../../protocol/feed-state.js';
import { frameOf, isFrame, isLifecycle, timeOf } from './item.js';

/**
 * Follows the state of the feed through the events and items an operator receives. Fills in what a source leaves out:
 * an item before any lifecycle event opens the connection, and an error without a `stopped` event stops the feed.
 */
export class FeedFollower {
  #state: FeedState = noFeed;
  /** The time of the newest event or item, in epoch ms. */
  #newestAt: number | undefined;

  get state(): FeedState {
    return this.#state;
  }

  next(value: unknown): FeedState {
    const at = timeOf(value) ?? this.#newestAt;
    if (!isFrame(value) && isLifecycle(value)) {
      this.#state = afterEvent(this.#state, value, this.#newestAt);
      if (value.type === 'watermark') return this.#state;
    } else this.#state = afterItem(this.#state, at ?? Date.now(), frameOf(value));
    this.#newestAt = at;
    return this.#state;
  }

  /** Receives the error of the source. Returns whether it came without a `stopped` event. */
  error(thrown: unknown): boolean {
    const stopped = unannouncedStop(this.#state, thrown);
    if (stopped) this.next(stopped);
    return stopped !== undefined;
  }
}

/** Returns the event `stopped` for the error of a source, unless the source has emitted one. */
export const unannouncedStop = (state: FeedState, thrown: unknown): Stopped | undefined =>
  hasStopped(state) ? undefined : { type: 'stopped', at: Date.now(), failure: failureOf(thrown) };
