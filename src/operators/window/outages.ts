import type { ClusterLifecycleEvent, Gap } from '../../protocol/event.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { afterEvent, afterTime, type FeedState, gapUntil, noFeed } from '../../protocol/feed-state.js';
import { afterItem, unannouncedStop } from '../items/follow-feed.js';

/**
 * Keeps the outages that may overlap an open window, one entry per gap. Times are in epoch ms. Its fields are
 * `private`, because `#` is slower on Node 20, and `item` runs for every frame.
 */
export class Outages {
  private state: FeedState = noFeed;
  private known: Known[] = [];
  /** Whether a window that has closed had the current outage. */
  private isMarked = false;

  /** From when the connection is complete at a time; `undefined` if it isn't yet. */
  completeFrom(now: number): number | undefined {
    return afterTime(this.state, now).completeFrom;
  }

  /**
   * Records an event.
   *
   * @param oldest - the start of the oldest open window. If a gap ended before that, it's late and counts for this
   *   window, so that at least one window is marked incomplete.
   * @param newestAt - the time of the newest item or event before this one
   */
  event(event: ClusterLifecycleEvent, oldest: number, newestAt: number | undefined): void {
    this.follow(afterEvent(this.state, event, newestAt), oldest);
  }

  item(item: unknown, time: number, oldest: number): void {
    this.follow(afterItem(this.state, item, time), oldest);
  }

  /** Records the error of the feed. An error of the application isn't an outage. */
  stop(error: unknown): void {
    const stopped = error instanceof TradeFeedError ? unannouncedStop(this.state, error) : undefined;
    if (stopped !== undefined) this.event(stopped, -Infinity, undefined);
  }

  /** Returns the gaps of a window. The gap of an ongoing outage ends at `end` or `now`, whichever is earlier. */
  within(start: number, end: number, now: number): readonly Gap[] {
    const { outage } = this.state;
    if (this.known.length === 0 && outage === undefined) return none;
    const known = this.known.filter((each) => reachesInto(each, start, end)).map(({ gap }) => gap);
    if (outage === undefined || outage.from >= end) return known;
    // The connection may be complete by now, although the source hasn't emitted the gap yet.
    const [gap = gapUntil(outage, Math.max(outage.from, Math.min(end, now)))] = afterTime(this.state, now).gaps;
    if (!reachesInto(knownFrom(gap, this.isMarked ? -Infinity : start), start, end)) return known;
    this.isMarked = true;
    return [...known, gap];
  }

  /** Removes the gaps that end before `oldest`. */
  forget(oldest: number): void {
    if (this.known.length > 0) this.known = this.known.filter((each) => reachesInto(each, oldest, Infinity));
  }

  private follow(next: FeedState, oldest: number): void {
    if (next === this.state) return;
    this.state = next;
    for (const gap of next.gaps) this.known.push(knownFrom(gap, this.isMarked ? -Infinity : oldest));
    if (next.outage === undefined) this.isMarked = false;
  }
}

/** A gap, and the period for which it counts. */
interface Known {
  readonly gap: Gap;
  readonly from: number;
  readonly to: number;
}

const knownFrom = (gap: Gap, oldest: number): Known => {
  if (gap.to < oldest) return { gap, from: oldest, to: oldest };
  // `to` is then the time of the last frame that was dropped, and the next one may have the same.
  return { gap, from: gap.from, to: gap.missed === undefined ? gap.to : gap.to + 1 };
};

const none: readonly Gap[] = Object.freeze([]);

// A gap of 0 ms counts for the window that contains it.
const reachesInto = ({ from, to }: Known, start: number, end: number): boolean =>
  from < end && (to > start || from >= start);
