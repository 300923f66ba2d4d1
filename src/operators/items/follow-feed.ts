import type { LifecycleEvent, Stopped, Watermark } from '../../protocol/event.js';
import { failureOf } from '../../protocol/failures/trade-feed-error.js';
import {
  afterEvent,
  afterFrame,
  afterTime,
  type FeedState,
  hasStopped,
  noFeed,
  snapshotOfNew,
} from '../../protocol/feed-state.js';
import { frameOf, isFrame, isLifecycle, isLogged, isOfEngine, timeOf } from './item.js';

/**
 * Follows the state of the feed through the events and items an operator receives. Fills in what a source leaves out:
 * an item before any lifecycle event opens the connection, and an error without a `stopped` event stops the feed.
 *
 * Its fields are `private`, because `#` is slower on Node 20, and `next` runs for every frame.
 */
export class FeedFollower {
  state: FeedState = noFeed;
  /** The time of the newest event or item, in epoch ms. */
  private newestAt: number | undefined;
  private isLogged = false;

  next(value: unknown): FeedState {
    const ownTime = timeOf(value);
    // Most values are frames.
    if (isFrame(value) && ownTime !== undefined) this.state = afterFrame(this.state, ownTime, value);
    else if (isLifecycle(value)) {
      if (isOfEngine(value)) return this.state;
      this.state = afterEvent(this.state, value, this.newestAt);
      this.isLogged = isLogged(value);
      if (value.type === 'watermark') return this.state;
    } else {
      // While a connection settles, an item without a time must not have that of `opened`.
      const newestAt = this.state.settling === undefined ? this.newestAt : undefined;
      this.state = afterItem(this.state, value, ownTime ?? newestAt ?? Date.now());
    }
    if (ownTime !== undefined) this.newestAt = ownTime;
    return this.state;
  }

  /** Returns the events that describe the feed's current status, for a late subscriber. `now` is in epoch ms. */
  snapshotAt(now: number): readonly (LifecycleEvent | Watermark)[] {
    const { watermark } = this.state;
    const snapshot = snapshotOfNew(this.state, this.timeAt(now));
    return watermark === undefined ? snapshot : [...snapshot, { type: 'watermark', at: watermark }];
  }

  /** Returns what a late subscriber must know: those events while the connection settles, and the time of the stream. */
  joinedAt(now: number): readonly (LifecycleEvent | Watermark)[] {
    const { settling, watermark } = this.state;
    const settles = settling !== undefined && afterTime(this.state, this.timeAt(now)).settling !== undefined;
    if (settles) return this.snapshotAt(now);
    return watermark === undefined ? [] : [{ type: 'watermark', at: watermark }];
  }

  /** A log and a source with watermarks have their own time. */
  private timeAt(now: number): number {
    const { watermark } = this.state;
    // A frame may be newer than the last watermark.
    const newestAt = Math.max(this.newestAt ?? -Infinity, watermark ?? -Infinity);
    return this.isLogged || watermark !== undefined ? newestAt : Math.max(newestAt, now);
  }

  /** Receives the error of the source. Returns whether it came without a `stopped` event. */
  error(thrown: unknown): boolean {
    const stopped = unannouncedStop(this.state, thrown);
    if (stopped) this.next(stopped);
    return stopped !== undefined;
  }
}

/**
 * Folds an item into the state, at its time in epoch ms. One that an operator created may be late, like a window, so it
 * shows neither that an outage is over nor from when a connection is complete.
 */
export const afterItem = (state: FeedState, item: unknown, at: number): FeedState => {
  const frame = frameOf(item);
  const isFirst = state.open === undefined && state.outage === undefined;
  return frame === undefined && !isFirst ? afterTime(state, at) : afterFrame(state, at, frame);
};

/** Returns the event `stopped` for the error of a source, unless the source has emitted one. */
export const unannouncedStop = (state: FeedState, thrown: unknown): Stopped | undefined =>
  hasStopped(state) ? undefined : { type: 'stopped', at: Date.now(), failure: failureOf(thrown) };
