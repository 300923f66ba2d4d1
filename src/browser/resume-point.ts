import { asyncScheduler } from 'rxjs';
import type { Received } from '../protocol/event-line.js';
import type { Gap, LifecycleEvent } from '../protocol/event.js';
import { withTime } from '../protocol/feed-state.js';
import { tryCall } from '../protocol/type-guards.js';
import type { RelayFeedSettings } from './relay-feed-options.js';
import { timeOfData } from './relay-stream.js';

/** An event that comes from the page, not from the relay. */
export type PageEvent = Exclude<LifecycleEvent, Gap>;

/** Tracks where a subscription resumes in the feed. The store keeps the id for the next one. Times are in epoch ms. */
export class ResumePoint {
  /** The last message's id; `undefined` before the first one. */
  id: string | undefined;
  /** The time of the stream, which continues across connections. */
  readonly clock: StreamClock;
  /** When the page emitted its last event before the relay's first one. */
  ownAt = -Infinity;
  /** The latest time emitted. Relays send nothing earlier. */
  reachedAt: number | undefined;
  watcher:
    { event(event: PageEvent): void; message(from: string | undefined, lines: readonly string[]): void } | undefined;
  readonly #key: string;
  readonly #store: RelayFeedSettings['resumeIn'];

  constructor({ url, resumeIn, scheduler }: RelayFeedSettings) {
    this.#key = `rx-trade-feed:${url}`;
    this.#store = resumeIn;
    // If the store throws, the page can't resume after a reload, but the feed works.
    const stored = tryCall(() => resumeIn?.getItem(this.#key));
    // An invalid id would make every request fail.
    this.id = /^[\w.-]{1,120}$/.exec(stored ?? '')?.[0];
    const wall = () => scheduler.now();
    // Only the default scheduler's clock can be corrected.
    this.clock = new StreamClock(wall, scheduler === asyncScheduler ? () => performance.now() : wall);
  }

  /** Records a message whose events were emitted. */
  reached(id: string, lines: readonly string[]): void {
    const from = this.id;
    if (id !== '') {
      this.id = id;
      tryCall(() => this.#store?.setItem(this.#key, id));
    }
    this.watcher?.message(from, lines);
    // The other tabs have read this message as this one has.
    if ((this.reachedAt ?? Infinity) < this.ownAt) this.ownAt = -Infinity;
  }

  /** Records an emitted event. */
  passed(event: Received): void {
    // A relay may begin with the past, and then the stream has its times.
    if (timeOfData(event) < this.ownAt) this.reachedAt = -Infinity;
    const time = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
    this.reachedAt = Math.max(this.reachedAt ?? -Infinity, time);
  }

  /** Gives an event of the page the time of the stream: the next frames may be earlier than the page's clock. */
  stamp(event: PageEvent): PageEvent {
    const stamped = withTime(event, this.reachedAt ?? (this.ownAt = event.at));
    this.watcher?.event(stamped);
    return stamped;
  }
}

/** Clocks that differ by less count as equal, in ms: a slow network doesn't allow a better estimate. */
const toleranceMs = 1_000;
/** How much the clocks of two replicas may differ, in ms. The stream follows them, since their times never go back. */
const replicaMs = 10_000;
/** A clock may gain or lose one ms in this many, the most that NTP corrects (RFC 5905). */
const driftPerMs = 2_000;

/**
 * Keeps the time of a stream. It starts with this machine's clock, which may be wrong and corrected later. The stream
 * keeps its own time, so windows neither stop for as long as the correction nor contain time that never passed.
 *
 * Time passes by the monotonic clock, which is never corrected. It may stop while the machine sleeps, so after a pause
 * the relay's clock decides, unless the other two agree that it's the one that changed.
 */
export class StreamClock {
  /** How far the stream's times are ahead of the relay's clock, in ms. */
  shiftMs = 0;
  readonly #wall: () => number;
  readonly #monotonic: () => number;
  #base: number;
  #latest = -Infinity;
  /** This machine's two clocks when the relay's was last known. */
  #known: readonly [monotonic: number, wall: number] | undefined;

  /**
   * @param wall - returns the time of the clock of this machine, in epoch ms
   * @param monotonic - returns the time of a clock that is never set, in ms
   */
  constructor(wall: () => number, monotonic: () => number) {
    this.#wall = wall;
    this.#monotonic = monotonic;
    this.#base = wall() - monotonic();
  }

  /** How far the stream's times are ahead of this machine's clock: not 0 once that clock was corrected. */
  get aheadMs(): number {
    return Math.round(this.#base + this.#monotonic() - this.#wall());
  }

  /** Returns the time of the stream, in epoch ms. Never goes back. */
  now(): number {
    return (this.#latest = Math.max(this.#latest, this.#exact()));
  }

  /**
   * Compares the relay's clock with the time of the stream at a connection's first message, like NTP (RFC 5905, section
   * 8).
   *
   * @param requestedAt - when the request was sent, by `now`
   * @param relayAt - when the answer was sent, by the clock of the relay
   */
  measure(requestedAt: number, relayAt: number): void {
    const halfTripMs = (this.#exact() - requestedAt) / 2;
    const aheadMs = Math.round(relayAt + this.shiftMs - requestedAt - halfTripMs);
    if (Math.abs(aheadMs) > toleranceMs + Math.abs(halfTripMs)) {
      if (this.#isOtherClock(aheadMs, halfTripMs)) this.shiftMs -= aheadMs;
      else this.#base += aheadMs;
    }
    this.#remember();
  }

  /** Continues the time of another tab of the same machine. */
  follow(shiftMs: number, aheadMs: number): void {
    this.shiftMs = shiftMs;
    const to = this.#wall() + aheadMs - this.#monotonic();
    // This tab may have been opened after the correction.
    if (this.#known === undefined) this.#latest = -Infinity;
    if (this.#known === undefined || Math.abs(to - this.#base) > toleranceMs) this.#base = to;
    this.#remember();
  }

  // Adding two fractions can end up just below a whole number.
  #exact(): number {
    return Math.floor(this.#base + this.#monotonic() + 0.001);
  }

  #remember(): void {
    this.#known = [this.#monotonic(), this.#wall()];
  }

  #isOtherClock(aheadMs: number, halfTripMs: number): boolean {
    if (this.#known === undefined) return true;
    const elapsedMs = this.#monotonic() - this.#known[0];
    if (Math.abs(aheadMs) <= replicaMs + halfTripMs + elapsedMs / driftPerMs) return false;
    // The monotonic clock never runs ahead of real time. If it lags, this machine has slept, and its other clock wasn't
    // set.
    return aheadMs < 0 || Math.abs(this.#wall() - this.#known[1] - elapsedMs) <= toleranceMs;
  }
}
