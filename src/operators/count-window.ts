import { defer, type OperatorFunction, type SchedulerLike } from 'rxjs';
import { aScheduler, checkRequired, positiveCount } from '../protocol/validate.js';
import { BatchCollector, collect$ } from './items/collect.js';
import { isLifecycle, isOfEngine, type ItemOf, type NotInferred, type SourceError, timeOf } from './items/item.js';
import { OpenWindow, resolveWindow, type WindowContents } from './window/contents.js';
import { Outages } from './window/outages.js';
import type { AccumulatedWindow, Accumulator, FeedWindow, WindowSource } from './window/window.js';

/** The options of {@link countWindow}. */
export interface CountWindowOptions {
  /** The clock for items that have no time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Groups the items of a feed into windows of `n` items, and reports gaps in each window.
 *
 * Emits a {@link FeedWindow} at every `n`-th item. Pass `seed` and `add` to get an {@link AccumulatedWindow}: a value
 * you compute instead of the items. `start` and `end` are the times of the first and the last item. A gap counts for
 * the window being filled, even if it's still empty, and sets its `complete` to `false`. When the source completes or
 * errors, a window in progress comes out first, with `complete: false`.
 *
 * Memory: at most `n` items and their bytes, or the value of the accumulator; and the gaps since the last window.
 * ```ts
 * // o: opened; x: disconnected
 * // source              o-a--b--c--x----o--d--
 * // countWindow(2)      -----U-------------V--
 * // U: a and b, complete; V: c and d, with the gap, which comes before d
 * ```
 *
 * @param n - the number of items in a window, a whole number
 * @param options - see {@link CountWindowOptions} and {@link Accumulator}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { countWindow, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(countWindow(1_000))
 *   .subscribe(({ start, end, complete }) =>
 *     console.log(`1000 frames in ${end - start} ms`, complete),
 *   );
 * ```
 */
export function countWindow<E, S>(
  n: number,
  options: CountWindowOptions & Accumulator<ItemOf<NotInferred<E>>, S>,
): OperatorFunction<WindowSource<E>, AccumulatedWindow<S>>;
export function countWindow<E>(
  n: number,
  options?: CountWindowOptions,
): OperatorFunction<WindowSource<E>, FeedWindow<ItemOf<NotInferred<E>>>>;
export function countWindow(n: number, options: CountWindowOptions = {}): OperatorFunction<unknown, unknown> {
  checkRequired({ n }, { n: positiveCount });
  const { scheduler, contents } = resolveWindow(options, {}, { scheduler: aScheduler });
  return (source) => defer(() => collect$(source, new CountWindows(n, contents, () => scheduler.now())));
}

/** Collects items into windows of `n`. Takes the time from the items; it never goes back. */
class CountWindows extends BatchCollector<unknown> {
  private readonly n: number;
  private readonly contents: WindowContents;
  private readonly clock: () => number;
  private readonly outages = new Outages();
  private now = -Infinity;
  /** The window being filled, and the time of its first item. */
  private open: OpenWindow | undefined;
  private start = 0;
  /** Whether the connection was complete when it began. */
  private isCovered = false;

  constructor(n: number, contents: WindowContents, clock: () => number) {
    super();
    this.n = n;
    this.contents = contents;
    this.clock = clock;
  }

  add(event: unknown): boolean {
    if (isLifecycle(event)) {
      // A watermark moves the time, but only items end a window of `n` items.
      if (event.type === 'watermark' || isOfEngine(event)) return false;
      this.outages.event(event, -Infinity, this.now);
      this.now = Math.max(this.now, timeOf(event) as number);
      return false;
    }
    const time = timeOf(event) ?? this.clock();
    this.outages.item(event, time, -Infinity);
    if (time > this.now) this.now = time;
    if (this.open === undefined) {
      this.start = this.now;
      this.isCovered = this.outages.completeFrom(this.now) !== undefined;
      this.open = new OpenWindow(this.contents);
    }
    this.open.add(this.contents.keep(event), undefined, true, false);
    if (this.open.count === this.n) this.close(this.open);
    return this.ready.length > 0;
  }

  override end(failure: SourceError | undefined): void {
    this.outages.stop(failure?.error);
    if (this.open !== undefined) this.close(this.open);
  }

  private close(window: OpenWindow): void {
    const { start, now: end } = this;
    const gaps = this.outages.within(-Infinity, Infinity, end);
    this.outages.forget(Infinity);
    const isPartial = window.count < this.n || (!this.isCovered && gaps.length === 0);
    this.ready.push(...window.close({ start, end, gaps, lacks: isPartial ? 'partial' : undefined }));
    this.open = undefined;
  }
}
