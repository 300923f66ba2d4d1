import { asyncScheduler } from 'rxjs';
import type { Received } from '../protocol/event-line.js';
import type { Gap, LifecycleEvent } from '../protocol/event.js';
import { withTime } from '../protocol/feed-state.js';
import { tryCall } from '../protocol/type-guards.js';
import type { RelayFeedSettings } from './relay-feed-options.js';

/** The point in the feed at which a client resumes. Times are in epoch ms. */
export interface ResumePoint {
  /** The id of the last message; `undefined` before the first one. */
  readonly id?: string | undefined;
  /** The time of the stream, which continues over all connections. */
  readonly clock: StreamClock;
  /** The latest time of the emitted events; `undefined` before the first one. A relay sends no earlier event. */
  readonly reachedAt?: number | undefined;
  /** When the page emitted the last event of its own before the first event of the relay. */
  readonly ownAt: number;
  /** Records a message whose events were emitted. */
  reached(id: string, lines: readonly string[]): void;
  passed(event: Received): void;
  /** Returns an event of the page itself with the time of the stream: the next frames may be earlier than its clock. */
  own(event: OwnEvent): OwnEvent;
  watcher?:
    { own(event: OwnEvent): void; message(from: string | undefined, lines: readonly string[]): void } | undefined;
}

/** An event that a page creates itself. */
export type OwnEvent = Exclude<LifecycleEvent, Gap>;

export const resumePoint = ({ url, resumeIn, scheduler }: RelayFeedSettings): ResumePoint => {
  const key = `rx-trade-feed:${url}`;
  const wall = () => scheduler.now();
  // If the store throws, the page cannot resume after a reload, but the feed works.
  const stored = tryCall(() => resumeIn?.getItem(key));
  const point: { -readonly [Name in keyof ResumePoint]: ResumePoint[Name] } = {
    // An invalid id would make every request fail.
    id: /^[\w.-]{1,120}$/.exec(stored ?? '')?.[0],
    // Only the default scheduler has a clock that is corrected.
    clock: createStreamClock(wall, scheduler === asyncScheduler ? () => performance.now() : wall),
    ownAt: -Infinity,
    reached: (id, lines) => {
      const from = point.id;
      if (id !== '') {
        point.id = id;
        tryCall(() => resumeIn?.setItem(key, id));
      }
      point.watcher?.message(from, lines);
    },
    passed: (event) => {
      const time = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
      point.reachedAt = Math.max(point.reachedAt ?? -Infinity, time);
    },
    own: (event) => {
      const own = withTime(event, point.reachedAt ?? (point.ownAt = event.at));
      point.watcher?.own(own);
      return own;
    },
  };
  return point;
};

/** Clocks that differ by less count as equal, because a slow network does not allow a better estimate, in ms. */
const toleranceMs = 1_000;
/**
 * The most by which the clocks of two replicas may differ, in ms. The stream follows them, because their times never go
 * back.
 */
const replicaMs = 10_000;
/** A clock may gain or lose one ms in this many: the greatest correction of NTP (RFC 5905). */
const driftPerMs = 2_000;

/**
 * The time of a stream: at first that of the clock of this machine, which may be wrong and corrected later. The stream
 * then keeps its time, so that windows neither stop for the length of the correction, nor contain time that never was.
 */
export interface StreamClock {
  /** How far the times of the stream are ahead of the clock of the relay, in ms. */
  readonly shiftMs: number;
  /**
   * How far the times of the stream are ahead of the clock of this machine, in ms: not 0 once that clock was corrected.
   */
  readonly aheadMs: number;
  /** Returns the time of the stream, in epoch ms. It never goes back. */
  now(): number;
  /**
   * Compares the clock of the relay with the time of the stream, at the first message of a connection, like NTP (RFC
   * 5905, section 8).
   *
   * @param requestedAt - when the request was sent, by `now`
   * @param relayAt - when the answer was sent, by the clock of the relay
   */
  measure(requestedAt: number, relayAt: number): void;
  /** Continues the time of another tab of the same machine, which has these values. */
  follow(shiftMs: number, aheadMs: number): void;
}

/**
 * Creates the clock of one subscription.
 *
 * The time passes by the monotonic clock, which nobody corrects. That clock may stop while the machine sleeps, so after
 * a pause the clock of the relay decides, unless the other two agree that it has changed.
 *
 * @param wall - returns the time of the clock of this machine, in epoch ms
 * @param monotonic - returns the time of a clock that is never set, in ms
 */
export const createStreamClock = (wall: () => number, monotonic: () => number): StreamClock => {
  let base = wall() - monotonic();
  let latest = -Infinity;
  /** The two clocks of this machine when the relay's was last known. */
  let known: readonly [monotonic: number, wall: number] | undefined;

  // The sum of two fractions can be a little less than a whole number.
  const exact = () => Math.floor(base + monotonic() + 0.001);
  const remember = () => (known = [monotonic(), wall()]);

  const isOtherClock = (aheadMs: number, halfTripMs: number): boolean => {
    if (known === undefined) return true;
    const elapsedMs = monotonic() - known[0];
    if (Math.abs(aheadMs) <= replicaMs + halfTripMs + elapsedMs / driftPerMs) return false;
    // The monotonic clock is never ahead of real time. If it is behind, this machine has slept, and its other clock was
    // not.
    return aheadMs < 0 || Math.abs(wall() - known[1] - elapsedMs) <= toleranceMs;
  };

  const clock = {
    shiftMs: 0,
    get aheadMs() {
      return Math.round(base + monotonic() - wall());
    },
    now: () => (latest = Math.max(latest, exact())),
    measure: (requestedAt: number, relayAt: number) => {
      const halfTripMs = (exact() - requestedAt) / 2;
      const aheadMs = Math.round(relayAt + clock.shiftMs - requestedAt - halfTripMs);
      if (Math.abs(aheadMs) > toleranceMs + Math.abs(halfTripMs)) {
        if (isOtherClock(aheadMs, halfTripMs)) clock.shiftMs -= aheadMs;
        else base += aheadMs;
      }
      remember();
    },
    follow: (shiftMs: number, aheadMs: number) => {
      clock.shiftMs = shiftMs;
      const to = wall() + aheadMs - monotonic();
      // This tab may have been opened after the correction.
      if (known === undefined) latest = -Infinity;
      if (known === undefined || Math.abs(to - base) > toleranceMs) base = to;
      remember();
    },
  };
  return clock;
};
