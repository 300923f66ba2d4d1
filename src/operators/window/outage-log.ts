import type { Gap, LifecycleEvent } from '../../protocol/event.js';
import { nextOutage, type Outage } from '../stream/outage.js';

/** Remembers the outages that may still reach into a window. */
export interface OutageLog {
  /**
   * Takes note of an event.
   *
   * @param oldest - the start of the oldest window that is still to come, in epoch ms. A gap that ended before it came late, and
   *   counts for that window: better one window too many called incomplete than none.
   */
  readonly tell: (event: LifecycleEvent, oldest: number) => void;
  /** Gives the gaps of a window; that of an outage that goes on ends with the window, or now if that is sooner. */
  readonly within: (start: number, end: number, now: number) => readonly Gap[];
  /** Forgets the gaps that reach into no window from here on. */
  readonly forget: (oldest: number) => void;
}

/** Makes a log without entries. It holds one entry for each gap that is not over for the windows. */
export const outageLog = (): OutageLog => {
  let going: Outage | undefined;
  let known: readonly Known[] = [];

  return {
    tell: (event, oldest) => {
      going = nextOutage(going, event);
      if (event.type !== 'gap') return;
      const { from, to } = event;
      known = [...known, to < oldest ? { gap: event, from: oldest, to: oldest } : { gap: event, from, to }];
    },
    within: (start, end, now) => {
      const isGoing = going !== undefined && going.from < end;
      if (known.length === 0 && !isGoing) return none;
      const gaps = known.filter((each) => reachesInto(each, start, end)).map(({ gap }) => gap);
      return going !== undefined && isGoing ? [...gaps, gapSoFar(going, Math.min(end, now))] : gaps;
    },
    forget: (oldest) => {
      if (known.length > 0) known = known.filter((each) => reachesInto(each, oldest, Infinity));
    },
  };
};

/** Gives the gap of an outage that goes on, as far as it is known. */
export const gapSoFar = ({ from, failure }: Outage, now: number): Gap => {
  const to = Math.max(from, now);
  return { type: 'gap', from, to, durationMs: to - from, failure };
};

/** A gap, and the time for which it counts. */
interface Known {
  readonly gap: Gap;
  readonly from: number;
  readonly to: number;
}

const none: readonly Gap[] = Object.freeze([]);

// One without length counts for the window that it lies in.
const reachesInto = ({ from, to }: Known, start: number, end: number): boolean =>
  from < end && (to > start || from >= start);
