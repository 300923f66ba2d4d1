import type { Gap, LifecycleEvent } from '../../protocol/event.js';
import { TradeFeedError } from '../../protocol/failure.js';
import { nextOutage, type Outage } from '../stream/outage.js';

/** Remembers the outages that may still reach into a window. */
export interface OutageLog {
  /**
   * Takes note of an event.
   *
   * @param oldest - the start of the oldest window that is still to come, in epoch ms. A gap that ended before it came late, and
   *   counts for that window: better one window too many called incomplete than none.
   * @param heardAt - when the feed was last heard while it was open, in epoch ms; `undefined` while it has not been open
   */
  readonly tell: (event: LifecycleEvent, oldest: number, heardAt: number | undefined) => void;
  /** Takes note of the error that a feed ended with. */
  readonly stop: (error: unknown) => void;
  /** Gives the gaps of a window; that of an outage that goes on ends with the window, or now if that is sooner. */
  readonly within: (start: number, end: number, now: number) => readonly Gap[];
  /** Forgets the gaps that reach into no window from here on. */
  readonly forget: (oldest: number) => void;
}

/** Makes a log without entries. It holds one entry for each gap that is not over for the windows. */
export const outageLog = (): OutageLog => {
  let going: Outage | undefined;
  let known: Known[] = [];
  // An opening ends an outage; its gap comes right behind it, and takes the place of this one.
  let untold: Known | undefined;

  const note = (gap: Gap, oldest: number): Known => {
    const { from, to } = gap;
    const entry = to < oldest ? { gap, from: oldest, to: oldest } : { gap, from, to };
    known.push(entry);
    return entry;
  };

  return {
    tell: (event, oldest, heardAt) => {
      const before = going ?? unannounced(event, heardAt);
      going = nextOutage(before, event);
      if (event.type === 'gap') {
        if (untold !== undefined) known.splice(known.indexOf(untold), 1);
        note(event, oldest);
      }
      // Over a relay that has kept everything, the feed is open from before the connection to it ended: nothing is missing.
      const isLate = event.type === 'opened' && before !== undefined && event.at >= before.from;
      untold = isLate ? note(gapSoFar(before, event.at), oldest) : undefined;
    },
    stop: (error) => {
      if (error instanceof TradeFeedError && error.stage === 'stream')
        going ??= { from: error.endedAt, failure: error };
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

// A feed that stopped, and that somebody has subscribed to again: `retry`, `repeat`, `concat`. Nothing has told of its end.
const unannounced = (event: LifecycleEvent, heardAt: number | undefined): Outage | undefined => {
  if (heardAt === undefined || (event.type !== 'ticket-requested' && event.type !== 'opened')) return undefined;
  const advice = 'Nothing to do: the frames of that time are missing.';
  const failure = new TradeFeedError({
    stage: 'stream',
    code: 'connection-closed',
    verdict: 'backoff',
    message: `The feed ended, and was begun again. ${advice}`,
    advice,
    endedAt: heardAt,
  });
  return { from: heardAt, failure };
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
