import type { ClusterLifecycleEvent, Gap } from '../../protocol/event.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, gapUntil, noOutages, type Outages } from '../../protocol/outage.js';

/** Stores the outages that may overlap an open window. */
export interface OutageLog {
  /**
   * Records an event.
   *
   * @param oldest - the start of the oldest open window, in epoch ms. A gap that ended before this time has arrived late. It counts
   *   for the oldest open window, so that at least one window is marked incomplete.
   * @param newestAt - the time of the newest item or event before this one, in epoch ms; `undefined` before the feed opens
   */
  readonly event: (event: ClusterLifecycleEvent, oldest: number, newestAt: number | undefined) => void;
  /** Records an item. Times are in epoch ms. */
  readonly item: (time: number, oldest: number) => void;
  /** Records the error of the feed. */
  readonly stop: (error: unknown) => void;
  /** Returns the gaps of a window. The gap of an outage that is not over ends at `end` or `now`, whichever is earlier. */
  readonly within: (start: number, end: number, now: number) => readonly Gap[];
  /** Removes the gaps that end before `oldest`. */
  readonly forget: (oldest: number) => void;
}

/** Creates an empty log. It has one entry for each gap that may belong to an open window. */
export const outageLog = (): OutageLog => {
  let outages: Outages = noOutages;
  let known: Known[] = [];
  let unconfirmed: Known | undefined;

  const follow = (next: Outages, oldest: number): void => {
    if (next === outages) return;
    outages = next;
    for (const gap of next.gaps) known.push(gap === unconfirmed?.gap ? unconfirmed : knownFrom(gap, oldest));
    unconfirmed = next.unconfirmed && knownFrom(next.unconfirmed, oldest);
  };

  return {
    event: (event, oldest, newestAt) => follow(afterEvent(outages, event, newestAt), oldest),
    item: (time, oldest) => follow(afterItem(outages, time), oldest),
    stop: (error) => {
      if (error instanceof TradeFeedError)
        follow(afterEvent(outages, { type: 'stopped', at: error.endedAt, failure: error }, undefined), -Infinity);
    },
    within: (start, end, now) => {
      const { current } = outages;
      if (known.length === 0 && current === undefined && unconfirmed === undefined) return none;
      const all = unconfirmed === undefined ? known : [...known, unconfirmed];
      const gaps = all.filter((each) => reachesInto(each, start, end)).map(({ gap }) => gap);
      if (current === undefined || current.from >= end) return gaps;
      return [...gaps, gapUntil(current, Math.max(current.from, Math.min(end, now)))];
    },
    forget: (oldest) => {
      if (known.length > 0) known = known.filter((each) => reachesInto(each, oldest, Infinity));
    },
  };
};

/** A gap, and the period in which it counts. */
interface Known {
  readonly gap: Gap;
  readonly from: number;
  readonly to: number;
}

const knownFrom = (gap: Gap, oldest: number): Known => {
  const { from, to } = gap;
  return to < oldest ? { gap, from: oldest, to: oldest } : { gap, from, to };
};

const none: readonly Gap[] = Object.freeze([]);

// A gap of 0 ms counts for the window that contains it.
const reachesInto = ({ from, to }: Known, start: number, end: number): boolean =>
  from < end && (to > start || from >= start);
