import type { ClusterLifecycleEvent, Gap } from '../../protocol/event.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, type FeedState, gapUntil, noFeed } from '../../protocol/feed-state.js';
import { unannouncedStop } from '../items/follow-feed.js';

/**
 * Keeps the outages that may overlap an open window, one entry per gap. Times are in epoch ms. Its fields are
 * `private`, because `#` is slower on Node 20, and `item` runs for every frame.
 */
export class Outages {
  private state: FeedState = noFeed;
  private known: Known[] = [];
  private unconfirmed: Known | undefined;

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

  item(time: number, oldest: number): void {
    this.follow(afterItem(this.state, time), oldest);
  }

  /** Records the error of the feed. An error of the application isn't an outage. */
  stop(error: unknown): void {
    const stopped = error instanceof TradeFeedError ? unannouncedStop(this.state, error) : undefined;
    if (stopped !== undefined) this.event(stopped, -Infinity, undefined);
  }

  /** Returns the gaps of a window. The gap of an ongoing outage ends at `end` or `now`, whichever is earlier. */
  within(start: number, end: number, now: number): readonly Gap[] {
    const { outage } = this.state;
    if (this.known.length === 0 && outage === undefined && this.unconfirmed === undefined) return none;
    const all = this.unconfirmed === undefined ? this.known : [...this.known, this.unconfirmed];
    const gaps = all.filter((each) => reachesInto(each, start, end)).map(({ gap }) => gap);
    if (outage === undefined || outage.from >= end) return gaps;
    return [...gaps, gapUntil(outage, Math.max(outage.from, Math.min(end, now)))];
  }

  /** Removes the gaps that end before `oldest`. */
  forget(oldest: number): void {
    if (this.known.length > 0) this.known = this.known.filter((each) => reachesInto(each, oldest, Infinity));
  }

  private follow(next: FeedState, oldest: number): void {
    if (next === this.state) return;
    this.state = next;
    const unconfirmed = this.unconfirmed;
    for (const gap of next.gaps) this.known.push(gap === unconfirmed?.gap ? unconfirmed : knownFrom(gap, oldest));
    this.unconfirmed = next.unconfirmed && knownFrom(next.unconfirmed, oldest);
  }
}

/** A gap, and the period for which it counts. */
interface Known {
  readonly gap: Gap;
  readonly from: number;
  readonly to: number;
}

const knownFrom = (gap: Gap, oldest: number): Known =>
  gap.to < oldest ? { gap, from: oldest, to: oldest } : { gap, from: gap.from, to: gap.to };

const none: readonly Gap[] = Object.freeze([]);

// A gap of 0 ms counts for the window that contains it.
const reachesInto = ({ from, to }: Known, start: number, end: number): boolean =>
  from < end && (to > start || from >= start);
