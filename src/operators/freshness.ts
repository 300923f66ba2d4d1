import { asyncScheduler, defer, filter, type Observable, repeat, type SchedulerLike, timer } from 'rxjs';
import { aScheduler, clampMs, invalidOption, type Rule, timerMs, validated } from '../protocol/rules.js';
import { isLifecycle, isReplayed, timeOf } from './items/item.js';
import { collect$, type Collector } from './timing/collect.js';
import { RecentIntervals } from './timing/recent-intervals.js';

/** The options of {@link freshness}: at least one of `maxAgeMs` and `factor`. With both, the lower limit applies. */
export interface FreshnessOptions {
  /** The limit: how old the newest frame may become, in ms. */
  readonly maxAgeMs?: number | undefined;
  /**
   * The limit as a multiple of the observed time between frames: of the 99th percentile of the last 1,024 intervals. It is at least 1 s, and
   * unknown before 100 intervals. A new limit is used when the time of the previous one is over.
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
 * A connection can be open and healthy while the service sends nothing: no event reports that. This operator does. It emits nothing as long as
 * frames arrive in time. It waits 10 ms longer than the limit, for frames that a busy process has not read yet. Before the first frame, the age counts from the subscription. In an outage the frames become stale, too; combine it with
 * {@link connectionStatus} to distinguish the two. A frame that a relay sends late does not make the feed fresh, unless it is young enough.
 *
 * In a recording the times of its events are the clock, so a pause is reported by the next event. Completes and errors with the source. Memory: the
 * last 1,024 intervals with `factor`, otherwise one time.
 *
 * ```ts
 * // source                       --f--f--f-----------------f--f--
 * // freshness({ maxAgeMs: 8 })   ----------------stale-----fresh-
 * ```
 *
 * @param options - see {@link FreshnessOptions}
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
      const watch = new FreshnessWatch(maxAgeMs, factor, () => scheduler.now());
      const ticks = defer(() => timer(clampMs(watch.waitMs()), scheduler)).pipe(
        repeat(),
        filter(() => watch.check()),
      );
      return collect$(source, watch, () => ticks);
    });
};

/**
 * Validates options, and returns those that are not `undefined`.
 *
 * @param prefix - precedes each name in the error, for a nested object
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const checkFreshness = (options: FreshnessOptions, prefix = ''): FreshnessOptions => {
  const valid = validated<FreshnessOptions>(options, rules, prefix);
  const { maxAgeMs, factor } = valid;
  if (maxAgeMs === undefined && factor === undefined)
    throw invalidOption(`${prefix}maxAgeMs`, `set, or \`${prefix}factor\`, or both`);
  return valid;
};

/** The lowest limit of `factor`, in ms. A shorter pause can be caused by the process or the network. */
const lowestLimitMs = 1_000;
/** How long the watch waits for frames before it reports `stale`, in ms: after a blocked event loop, timers run before sockets are read. */
const graceMs = 10;

class FreshnessWatch implements Collector<unknown, Freshness> {
  readonly #maxAgeMs: number;
  readonly #factor: number | undefined;
  readonly #clock: () => number;
  readonly #intervals = new RecentIntervals();
  readonly #startedAt: number;
  #limitMs: number;
  #newestAt: number | undefined;
  /** The time of the frame before, for the next interval; `undefined` after an outage. */
  #previousAt: number | undefined;
  #isStale = false;
  #isRecording = false;
  /** Whether an item has arrived since the timer was set. */
  #hasArrived = false;
  /** Whether the frames were too old at the last check. */
  #isSuspected = false;
  #ready: Freshness[] = [];

  constructor(maxAgeMs: number, factor: number | undefined, clock: () => number) {
    this.#maxAgeMs = maxAgeMs;
    this.#factor = factor;
    this.#clock = clock;
    this.#startedAt = clock();
    this.#limitMs = maxAgeMs;
  }

  add(event: unknown): boolean {
    if (isLifecycle(event)) return this.#addEvent(event.type, timeOf(event), isReplayed(event));
    const at = timeOf(event) ?? this.#clock();
    this.#isRecording = isReplayed(event);
    if (this.#isRecording) this.#passTo(at);
    this.#addInterval(at);
    this.#newestAt = at;
    this.#hasArrived = true;
    if (this.#isStale && (this.#isRecording || this.#ageMs() < this.#limitMs)) {
      this.#isStale = false;
      this.#ready.push({ state: 'fresh', since: at });
    }
    return this.#ready.length > 0;
  }

  /** Returns how long to wait for the next check, in ms. */
  waitMs(): number {
    if (this.#isSuspected) return graceMs;
    this.#hasArrived = false;
    this.#limitMs = this.#computeLimitMs();
    // The limit of `factor` can become known later.
    if (this.#limitMs === Infinity) return lowestLimitMs;
    // The next change comes with an item, not with the clock.
    if (this.#isStale || this.#isRecording) return this.#limitMs;
    // A clock that was set back must not extend the wait.
    return Math.min(Math.max(0, this.#limitMs - this.#ageMs()), this.#limitMs);
  }

  /** Checks the age of the newest frame at the end of a wait. Returns whether there is something to emit. */
  check(): boolean {
    const isTooOld = !this.#isStale && !this.#isRecording && this.#limitMs < Infinity && !this.#isInTime();
    if (isTooOld && this.#isSuspected) this.#becomeStale();
    this.#isSuspected = isTooOld && !this.#isStale;
    return this.#ready.length > 0;
  }

  end(): void {
    // Nothing is emitted at the end of the source.
  }

  *drain(): Iterable<Freshness> {
    const batch = this.#ready;
    this.#ready = [];
    yield* batch;
  }

  #addEvent(type: string, at: number | undefined, isRecorded: boolean): boolean {
    // The time of an outage is not an interval between frames.
    if (type !== 'watermark') this.#previousAt = undefined;
    if (isRecorded && at !== undefined) this.#passTo(at);
    return this.#ready.length > 0;
  }

  /** Moves the time of a recording. */
  #passTo(at: number): void {
    this.#isRecording = true;
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
    if (this.#factor === undefined) return this.#maxAgeMs;
    const usualMs = this.#intervals.p99();
    if (usualMs === undefined) return this.#maxAgeMs;
    return Math.min(this.#maxAgeMs, Math.max(lowestLimitMs, clampMs(this.#factor * usualMs)));
  }

  #ageMs(): number {
    return this.#clock() - (this.#newestAt ?? this.#startedAt);
  }

  // Without a frame since the timer was set, the clock does not matter.
  #isInTime(): boolean {
    return this.#hasArrived && this.#ageMs() < this.#limitMs;
  }

  #becomeStale(): void {
    this.#isStale = true;
    const since = (this.#newestAt ?? this.#startedAt) + this.#limitMs;
    this.#ready.push({ state: 'stale', since, newestAt: this.#newestAt, maxAgeMs: this.#limitMs });
  }
}

const rules: Readonly<Record<keyof FreshnessOptions, Rule>> = {
  maxAgeMs: timerMs,
  factor: { allowed: 'a number, 1 or more', is: (v) => Number.isFinite(v) && (v as number) >= 1 },
  scheduler: aScheduler,
};
