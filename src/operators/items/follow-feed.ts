import type { Stopped } from '../../protocol/event.js';
import { failureOf } from '../../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, type FeedState, hasStopped, noFeed } from '../../protocol/feed-state.js';
import { frameOf, isFrame, isLifecycle, timeOf } from './item.js';

/**
 * Follows what an operator receives: the state of the feed after each event and item. The source is completed here: an
 * item without lifecycle events opens the connection, and an error that no event announced stops it.
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

  /** Receives the error of the source. Returns whether no event has announced it. */
  error(thrown: unknown): boolean {
    const stopped = unannouncedStop(this.#state, thrown);
    if (stopped) this.next(stopped);
    return stopped !== undefined;
  }
}

/** Returns the event `stopped` for the error of a source, except if the source has emitted it. */
export const unannouncedStop = (state: FeedState, thrown: unknown): Stopped | undefined =>
  hasStopped(state) ? undefined : { type: 'stopped', at: Date.now(), failure: failureOf(thrown) };
