import { asyncScheduler, defer, filter, type Observable, repeat, type SchedulerLike, timer } from 'rxjs';
import { aScheduler, clampMs, invalidOption, type Rule, timerMs, validated } from '../protocol/validate.js';
import { isLifecycle, isLogged, timeOf } from './items/item.js';
import { BatchCollector, collect$ } from './items/collect.js';

/** The options of {@link freshness}: `maxAgeMs`, `factor` or both. If you set both, the lower limit applies. */
export interface FreshnessOptions {
  /** The limit: how old the newest frame may become, in ms. */
  readonly maxAgeMs?: number | undefined;
  /**
   * The limit as a multiple of the usual time between frames, the 99th percentile of the last 1,024 intervals. It's at
   * least 1 s, and unknown for the first 100 intervals. A new limit applies once the previous one has run out.
   */
  readonly factor?: number | undefined;
  /** The clock; for tests. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The newest frame is older than expected. */
export interface Stale {
  readonly state: 'stale';
  /** When the newest frame became too old, in epoch ms. */
  readonly since: number;
  /** When the newest frame was received, in epoch ms; `undefined` if none has arrived since you subscribed. */
  readonly newestAt: number | undefined;
  /** The limit that was exceeded, in ms. */
  readonly maxAgeMs: number;
}

/** Frames arrive again after a silence. */
export interface Fresh {
  readonly state: 'fresh';
  /** When the first of them was received, in epoch ms. */
  readonly since: number;
}

/** Says whether the frames of a feed are current. */
export type Freshness = Stale | Fresh;

/**
 * Emits `stale` when the newest frame is older than expected, and `fresh` when a current frame arrives after that.
 *
 * A connection can be open and healthy while the service sends nothing, and no event tells you. This operator waits
 * 10 ms longer than the limit, for frames that a busy process hasn't read yet. Until the first frame, the age counts
 * from when you subscribed. Frames go stale in an outage as well; {@link connectionStatus} tells you which it is. If a
 * relay sends a frame late, the feed only becomes fresh if that frame is young enough.
 *
 * While reading a log, the times of its records are the clock, so the next record reports a pause. Completes and errors
 * with the source. Memory: with `factor` the last 1,024 intervals, otherwise one time.
 * ```ts
 * // source                       --f--f--f-----------------f--f--
 * // freshness({ maxAgeMs: 8 })   ----------------stale-----fresh-
 * ```
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { concat, NEVER, take } from 'rxjs';
 * import { frames, freshness, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * // Three frames, then silence. Use the feed itself in the same way:
 * // `tradeFeedEvents$('market').pipe(freshness(…))`
 * concat(tradeFeedEvents$('market').pipe(frames(), take(3)), NEVER)
 *   .pipe(freshness({ maxAgeMs: 1_000 }))
 *   .subscribe(({ state, since }) =>
 *     console.log(`${state} since ${new Date(since).toISOString()}`),
 *   );
 * ```
 */
export const freshness = (options: FreshnessOptions): ((source: Observable<unknown>) => Observable<Freshness>) => {
  const { maxAgeMs = Infinity, factor, scheduler = asyncScheduler } = checkFreshness(options);
  return (source) =>
    defer(() => {
      const wall = () => scheduler.now();
      const monotonic = scheduler === asyncScheduler ? () => performance.now() : wall;
      const watch = new FreshnessWatch(maxAgeMs, factor, wall, monotonic);
      const ticks = defer(() => timer(clampMs(watch.waitMs()), scheduler)).pipe(
        repeat(),
        filter(() => watch.check()),
      );
      return collect$(source, watch, () => ticks);
    });
};

export const checkFreshness = (options: FreshnessOptions, prefix = ''): FreshnessOptions => {
  const valid = validated<FreshnessOptions>(options, rules, prefix);
  const { maxAgeMs, factor } = valid;
  if (maxAgeMs === undefined && factor === undefined)
    throw invalidOption(`${prefix}maxAgeMs`, `set, or \`${prefix}factor\`, or both`);
  return valid;
};

/** The lowest limit of `factor`: the process or the network can cause shorter pauses. */
const lowestLimitMs = 1_000;
/** If a frame is from further in the future than this, another clock timed it. */
const toleranceMs = 1_000;
/** How long to wait before `stale`: when a blocked event loop continues, Node runs timers before it reads sockets. */
const graceMs = 10;

class FreshnessWatch extends BatchCollector<Freshness> {
  readonly #maxAgeMs: number;
  readonly #factor: number | undefined;
  readonly #clock: () => number;
  /** Epoch ms from a monotonic clock. Frames received in a page use it; a server's use the wall clock. */
  readonly #unset: () => number;
  readonly #intervals = new RecentIntervals();
  readonly #startedAt: number;
  #limitMs: number;
  #newestAt: number | undefined;
  /** When the previous frame arrived, to measure the next interval; `undefined` after an outage. */
  #previousAt: number | undefined;
  #isStale = false;
  #isReplay = false;
  /** Whether an item has arrived since the timer was set. */
  #hasArrived = false;
  /** Whether the frames were too old at the last check. */
  #isSuspected = false;

  constructor(maxAgeMs: number, factor: number | undefined, clock: () => number, monotonic: () => number) {
    super();
    this.#maxAgeMs = maxAgeMs;
    this.#factor = factor;
    this.#clock = clock;
    this.#startedAt = clock();
    const base = this.#startedAt - monotonic();
    this.#unset = () => base + monotonic();
    this.#limitMs = maxAgeMs;
  }

  add(event: unknown): boolean {
    const isRecord = isLogged(event);
    if (isLifecycle(event)) {
      // An outage isn't an interval between frames.
      if (event.type !== 'watermark') this.#previousAt = undefined;
      // A log emits a watermark at its end: from then on, it's live.
      else this.#isReplay = false;
      if (isRecord) this.#passTo(timeOf(event) as number);
      return this.ready.length > 0;
    }
    const at = timeOf(event) ?? this.#clock();
    this.#isReplay = isRecord;
    if (isRecord) this.#passTo(at);
    this.#addInterval(at);
    this.#newestAt = at;
    this.#hasArrived = true;
    if (this.#isStale && (isRecord || this.#ageMs() < this.#limitMs)) {
      this.#isStale = false;
      this.ready.push({ state: 'fresh', since: at });
    }
    return this.ready.length > 0;
  }

  /** Returns how long to wait for the next check, in ms. */
  waitMs(): number {
    if (this.#isSuspected) return graceMs;
    this.#hasArrived = false;
    this.#limitMs = this.#computeLimitMs();
    // The limit of `factor` may become known later.
    if (this.#limitMs === Infinity) return lowestLimitMs;
    // Only an item can change the state now, not the clock.
    if (this.#isStale || this.#isReplay) return this.#limitMs;
    // Setting the clock back must not make this wait longer.
    return Math.min(Math.max(0, this.#limitMs - this.#ageMs()), this.#limitMs);
  }

  /** Checks the age of the newest frame when the timer fires. Returns whether there's something to emit. */
  check(): boolean {
    // If no frame has arrived since the timer was set, the limit is over whatever the clock says.
    const isInTime = this.#hasArrived && this.#ageMs() < this.#limitMs;
    const isTooOld = !this.#isStale && !this.#isReplay && this.#limitMs < Infinity && !isInTime;
    if (isTooOld && this.#isSuspected) this.#becomeStale();
    this.#isSuspected = isTooOld && !this.#isStale;
    return this.ready.length > 0;
  }

  /** Moves the time while reading a log. */
  #passTo(at: number): void {
    this.#isReplay = true;
    const pauseMs = at - (this.#newestAt ?? at);
    // Sorting the intervals is slow, and only needed after a pause.
    if (this.#isStale || pauseMs < Math.min(lowestLimitMs, this.#maxAgeMs)) return;
    this.#limitMs = this.#computeLimitMs();
    if (pauseMs >= this.#limitMs) this.#becomeStale();
  }

  #addInterval(at: number): void {
    const ms = at - (this.#previousAt ?? at);
    this.#previousAt = at;
    // Frames that were read together have the same time.
    if (this.#factor !== undefined && ms > 0) this.#intervals.add(ms);
  }

  #computeLimitMs(): number {
    const usualMs = this.#factor === undefined ? undefined : this.#intervals.p99();
    if (usualMs === undefined) return this.#maxAgeMs;
    return Math.min(this.#maxAgeMs, Math.max(lowestLimitMs, clampMs((this.#factor as number) * usualMs)));
  }

  // Setting the wall clock makes the two clocks differ. Only one timed the frame: the one by which it's younger.
  #ageMs(): number {
    const at = this.#newestAt ?? this.#startedAt;
    const ages = [this.#clock() - at, this.#unset() - at].filter((ms) => ms > -toleranceMs);
    return ages.length === 0 ? 0 : Math.min(...ages);
  }

  #becomeStale(): void {
    this.#isStale = true;
    const since = (this.#newestAt ?? this.#startedAt) + this.#limitMs;
    this.ready.push({ state: 'stale', since, newestAt: this.#newestAt, maxAgeMs: this.#limitMs });
  }
}

const rules: Readonly<Record<keyof FreshnessOptions, Rule>> = {
  maxAgeMs: timerMs,
  factor: { allowed: 'a number, 1 or more', is: (v) => Number.isFinite(v) && (v as number) >= 1 },
  scheduler: aScheduler,
};

/** How many intervals to store: the newest ones. */
const capacity = 1_024;
/** The 99th percentile of fewer intervals would simply be the longest. */
const leastKnown = 100;

export class RecentIntervals {
  readonly #intervals = new Float64Array(capacity);
  #count = 0;

  add(ms: number): void {
    this.#intervals[this.#count % capacity] = ms;
    this.#count += 1;
  }

  /** Returns the 99th percentile in ms. Sorts the intervals, so don't call it for each frame. */
  p99(): number | undefined {
    if (this.#count < leastKnown) return undefined;
    const known = this.#intervals.slice(0, this.#count).sort();
    return known[Math.ceil(known.length * 0.99) - 1];
  }
}
