import type { Gap, LifecycleEvent } from '../../protocol/event.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, gapUntil, noOutages, type Outages } from '../../protocol/outage.js';

/** Remembers the outages that may still reach into a window. */
export interface OutageLog {
  /**
   * Takes note of an event.
   *
   * @param oldest - the start of the oldest window that is not closed, in epoch ms. A gap that ended before it came late, and
   *   counts for that window: better one window too many called incomplete than none.
   * @param heardAt - the time of the newest item or event before it, in epoch ms; `undefined` while the feed has not been open
   */
  readonly event: (event: LifecycleEvent, oldest: number, heardAt: number | undefined) => void;
  /** Takes note of an item, with its time in epoch ms. */
  readonly item: (time: number, oldest: number) => void;
  /** Takes note of the error that a feed ended with. */
  readonly stop: (error: unknown) => void;
  /** Gives the gaps of a window; that of an outage that is not over ends with the window, or now if that is sooner. */
  readonly within: (start: number, end: number, now: number) => readonly Gap[];
  /** Forgets the gaps that reach into no window from here on. */
  readonly forget: (oldest: number) => void;
}

/** Creates a log without entries. It holds one entry for each gap that may belong to an open window. */
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
    event: (event, oldest, heardAt) => follow(afterEvent(outages, event, heardAt), oldest),
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

/** A gap, and the time for which it counts. */
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

// A gap without length counts for the window that it lies in.
const reachesInto = ({ from, to }: Known, start: number, end: number): boolean =>
  from < end && (to > start || from >= start);
