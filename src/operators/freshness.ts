import { asyncScheduler, defer, filter, type Observable, repeat, type SchedulerLike, timer } from 'rxjs';
import { aScheduler, clampMs, invalidOption, type Rule, timerMs, validated } from '../protocol/validate.js';
import { isLifecycle, isLogged, timeOf } from './items/item.js';
import { BatchCollector, collect$ } from './items/collect.js';

/** The options of {@link freshness}: at least one of `maxAgeMs` and `factor`. With both, the lower limit applies. */
export interface FreshnessOptions {
  /** The limit: how old the newest frame may become, in ms. */
  readonly maxAgeMs?: number | undefined;
  /**
   * The limit as a multiple of the observed time between frames: of the 99th percentile of the last 1,024 intervals. It
   * is at least 1 s, and unknown before 100 intervals. A new limit is used when the time of the previous one is over.
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
  /** When the newest frame was received, in epoch ms; `undefined` if there was no frame since the subscription. */
  readonly newestAt: number | undefined;
  /** The limit that was exceeded, in ms. */
  readonly maxAgeMs: number;
}

/** A frame has arrived after a time without frames. */
export interface Fresh {
  readonly state: 'fresh';
  /** When that frame was received, in epoch ms. */
  readonly since: number;
}

/** Whether the frames of a feed are current. */
export type Freshness = Stale | Fresh;

/**
 * Emits `stale` when the newest frame is older than expected, and `fresh` when a current frame arrives after that.
 *
 * A connection can be open and healthy while the service sends nothing, and no event reports that. This operator waits
 * 10 ms longer than the limit, for frames that a busy process has not read yet. Before the first frame, the age counts
 * from the subscription. In an outage the frames become stale, too; {@link connectionStatus} distinguishes the two. A
 * frame that a relay sends late does not make the feed fresh, unless it is young enough.
 *
 * While a log is read, the times of its records are the clock, so a pause is reported by the next record. Completes and
 * errors with the source. Memory: the last 1,024 intervals with `factor`, otherwise one time.
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
 * // Three frames, then silence. The feed itself is used in the same way: `tradeFeedEvents$('market').pipe(freshness(…))`
 * concat(tradeFeedEvents$('market').pipe(frames(), take(3)), NEVER)
 *   .pipe(freshness({ maxAgeMs: 1_000 }))
 *   .subscribe(({ state, since }) => console.log(`${state} since ${new Date(since).toISOString()}`));
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

/** The lowest limit of `factor`. A shorter pause can be caused by the process or the network. */
const lowestLimitMs = 1_000;
/** A frame from further in the future is of a clock that differs. */
const toleranceMs = 1_000;
/** How long to wait for frames before `stale`: after a blocked event loop, timers run before sockets are read. */
const graceMs = 10;

class FreshnessWatch extends BatchCollector<Freshness> {
  readonly #maxAgeMs: number;
  readonly #factor: number | undefined;
  readonly #clock: () => number;
  /** Epoch ms that nobody sets. Frames of a page have this time, those of a server the clock's. */
  readonly #unset: () => number;
  readonly #intervals = new RecentIntervals();
  readonly #startedAt: number;
  #limitMs: number;
  #newestAt: number | undefined;
  /** The time of the frame before, for the next interval; `undefined` after an outage. */
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
      // The time of an outage is not an interval between frames.
      if (event.type !== 'watermark') this.#previousAt = undefined;
      // A log emits it at its end: from then on, it is live.
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
    // The limit of `factor` can become known later.
    if (this.#limitMs === Infinity) return lowestLimitMs;
    // The next change comes with an item, not with the clock.
    if (this.#isStale || this.#isReplay) return this.#limitMs;
    // A clock that was set back must not extend the wait.
    return Math.min(Math.max(0, this.#limitMs - this.#ageMs()), this.#limitMs);
  }

  /** Checks the age of the newest frame at the end of a wait. Returns whether there is something to emit. */
  check(): boolean {
    // Without a frame since the timer was set, the clock does not matter.
    const isInTime = this.#hasArrived && this.#ageMs() < this.#limitMs;
    const isTooOld = !this.#isStale && !this.#isReplay && this.#limitMs < Infinity && !isInTime;
    if (isTooOld && this.#isSuspected) this.#becomeStale();
    this.#isSuspected = isTooOld && !this.#isStale;
    return this.ready.length > 0;
  }

  /** Moves the time of a log that is read. */
  #passTo(at: number): void {
    this.#isReplay = true;
    const pauseMs = at - (this.#newestAt ?? at);
    // Sorting the intervals takes long, and is only needed after a pause.
    if (this.#isStale || pauseMs < Math.min(lowestLimitMs, this.#maxAgeMs)) return;
    this.#limitMs = this.#computeLimitMs();
    if (pauseMs >= this.#limitMs) this.#becomeStale();
  }

  #addInterval(at: number): void {
    const ms = at - (this.#previousAt ?? at);
    this.#previousAt = at;
    // Frames of one read have the same time.
    if (this.#factor !== undefined && ms > 0) this.#intervals.add(ms);
  }

  #computeLimitMs(): number {
    const usualMs = this.#factor === undefined ? undefined : this.#intervals.p99();
    if (usualMs === undefined) return this.#maxAgeMs;
    return Math.min(this.#maxAgeMs, Math.max(lowestLimitMs, clampMs((this.#factor as number) * usualMs)));
  }

  // By the clock that the newest frame is of: when the clock is set, the two differ, and a frame is of one of them.
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

/** How many intervals are stored: the newest ones. */
const capacity = 1_024;
/** With fewer known intervals, the 99th percentile would be the longest of them. */
const leastKnown = 100;

export class RecentIntervals {
  readonly #intervals = new Float64Array(capacity);
  #count = 0;

  add(ms: number): void {
    this.#intervals[this.#count % capacity] = ms;
    this.#count += 1;
  }

  /** Returns the 99th percentile in ms. Sorts the intervals, so do not call it for each frame. */
  p99(): number | undefined {
    if (this.#count < leastKnown) return undefined;
    const known = this.#intervals.slice(0, this.#count).sort();
    return known[Math.ceil(known.length * 0.99) - 1];
  }
}
