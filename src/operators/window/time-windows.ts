import { defer, filter, NEVER, type OperatorFunction, repeat, switchMap, timer } from 'rxjs';
import type { ClusterLifecycleEvent } from '../../protocol/event.js';
import { clampMs, invalidOption, type Rule } from '../../protocol/validate.js';
import { collect$, type Collector } from '../items/collect.js';
import { EventTime } from '../items/event-time.js';
import { isLifecycle, isOfEngine, type SourceError, timeOf } from '../items/item.js';
import { keyRules, OpenWindow, resolveWindow, timeRules, type WindowContents } from './contents.js';
import { freeDelayMs } from '../../protocol/feed-state.js';
import { Outages } from './outages.js';
import type { IncompleteReason, TimeWindowOptions } from './window.js';

const rules = { ...timeRules, ...keyRules };

/** The options of time windows. If `everyMs` is absent, each window begins when the one before ends. */
interface AnyTimeWindow extends TimeWindowOptions {
  readonly lengthMs: number;
  readonly everyMs?: number;
}

/**
 * Emits a window when its time is over: at an event, or by the clock if the source has no watermarks. Node's timers can
 * fire up to 1 ms early; another timer then waits for the rest.
 */
export const timeWindows = (
  options: AnyTimeWindow,
  required: Readonly<Record<string, Rule>>,
): OperatorFunction<unknown, unknown> => {
  const { contents, scheduler, everyMs = options.lengthMs, ...resolved } = resolveWindow(options, required, rules);
  const shape = { ...resolved, everyMs };
  if (everyMs > shape.lengthMs) throw invalidOption('everyMs', `at most lengthMs (${shape.lengthMs})`, everyMs);
  return (source) =>
    defer(() => {
      const windows = new TimeWindows(shape, contents, () => scheduler.now());
      const nextEnd = defer(() => {
        const waitMs = windows.waitMs();
        return waitMs === Infinity ? NEVER : timer(clampMs(Math.ceil(waitMs)), scheduler);
      });
      return collect$(source, windows, (changes) =>
        changes.pipe(
          switchMap(() => nextEnd.pipe(repeat())),
          filter(() => windows.tick()),
        ),
      );
    });
};

interface WindowShape {
  readonly lengthMs: number;
  readonly everyMs: number;
  readonly align: 'epoch' | 'start';
  readonly allowedLatenessMs: number;
}

/** If more empty windows than this end at once, they're merged into one: a wrong time must not block the process. */
const mostEmptyWindows = 10_000;

/**
 * Collects the events of one subscription into windows, and closes each window when its time is over.
 *
 * Window `i` begins `everyMs` after window `i - 1`. Time never goes back; see {@link EventTime}. A late item goes to
 * the oldest open window. It's a class because `add` runs for every frame: in a closure, V8 would allocate memory each
 * time a number changes.
 */
class TimeWindows implements Collector<unknown> {
  private readonly shape: WindowShape;
  private readonly contents: WindowContents;
  private readonly beganAt: number;
  private readonly time: EventTime;
  private readonly outages = new Outages();
  /** The open windows that are not empty, by index. */
  private readonly open = new Map<number, OpenWindow>();
  /** The windows for items with a time from `from` until `until`, so that most frames need no search. */
  private current: OpenWindow[] = [];
  private from = Infinity;
  // Stryker disable next-line UnaryOperator: replaced before it is used, because no time is from Infinity on.
  private until = -Infinity;

  private hasBegun = false;
  private hasSeenOpened = false;
  /** When window 0 begins, and the lowest index a window can have. */
  private origin = 0;
  private lowest = -Infinity;
  /** The index of the oldest open window. */
  private oldest = 0;
  /** Since when nothing but known outages is missing: a window that begins earlier is partial. */
  private coveredFrom = Infinity;
  /** The first `completeFrom`. A connection that was open before the subscription may be complete earlier. */
  private firstFrom = Infinity;
  private isEnded = false;

  constructor(shape: WindowShape, contents: WindowContents, clock: () => number) {
    this.shape = shape;
    this.contents = contents;
    this.beganAt = clock();
    this.time = new EventTime(clock);
  }

  /** Adds an event. Returns whether the timer must change: the first window has begun, or one is over. */
  add(event: unknown): boolean {
    if (isLifecycle(event)) return this.follow(event);
    const itemTime = timeOf(event);
    const time = itemTime ?? this.time.now();
    // A shortcut for an item in the windows of the one before: the code below would do the same.
    if (time >= this.from && time < this.until) {
      this.time.pass(time);
      this.put(event, false);
      return false;
    }
    if (itemTime !== undefined) this.time.receive(event, itemTime);
    this.outages.item(event, time, this.oldestStart());
    this.cover(time);
    const isChanged = this.advance(time);
    // With align 'start', no window has begun while the connection isn't complete.
    if (!this.hasBegun) return isChanged;
    this.findCurrent(time);
    // A late item belongs to a closed window, so the open windows that get it aren't exact.
    this.put(event, time < this.from);
    return isChanged;
  }

  tick(): boolean {
    const now = this.time.now();
    this.cover(now);
    // A quiet connection is complete at some time, and then windows that begin at the start can.
    return this.hasSeenOpened ? this.advance(now) && this.isOver() : this.isOver();
  }

  end(failure: SourceError | undefined): void {
    this.outages.stop(failure?.error);
    this.time.end();
    this.isEnded = true;
  }

  /** Returns the windows that are over. Closes each when the iterator reaches it, so a jump costs no memory. */
  *drain(): Generator<unknown, void, undefined> {
    while (this.isOver()) {
      const first = this.oldest;
      const last = this.lastOfEmptyRun();
      this.oldest = last + 1;
      yield* this.close(first, last);
    }
  }

  /** Returns how long until a window is over by the clock, in ms. At most `everyMs`, in case the clock is set back. */
  waitMs(): number {
    const { everyMs, allowedLatenessMs } = this.shape;
    const next = Math.max(this.oldest, this.firstEndingAfter(this.time.known() - allowedLatenessMs));
    const waitMs = this.time.waitMs(this.endOf(next) + allowedLatenessMs);
    return waitMs === Infinity ? Infinity : Math.min(everyMs, waitMs);
  }

  private follow(event: ClusterLifecycleEvent): boolean {
    if (isOfEngine(event)) return false;
    const time = timeOf(event) as number;
    // Before `receive` moves the time: an outage that no event reported began at the newest time before this event.
    this.outages.event(event, this.oldestStart(), this.time.newestAt);
    this.time.receive(event, time);
    if (event.type === 'opened') this.hasSeenOpened = true;
    this.cover(time);
    // A source with watermarks is late or has another clock, so the clock here can't tell when receiving began.
    if (event.type === 'watermark') this.coveredFrom = this.firstFrom;
    // The next item may end an outage.
    else this.until = -Infinity;
    return this.advance(time);
  }

  // If the first event isn't `opened`, the connection was open before the subscription, so it was complete a moment
  // after that.
  private cover(now: number): void {
    const from = this.coveredFrom < Infinity ? undefined : this.outages.completeFrom(now);
    if (from === undefined) return;
    this.firstFrom = from;
    const isOlder = !this.hasSeenOpened && !this.hasBegun;
    this.coveredFrom = isOlder ? Math.min(from, this.beganAt + freeDelayMs) : from;
  }

  private advance(time: number): boolean {
    if (this.hasBegun) return this.isOver();
    const isAtStart = this.shape.align === 'start';
    // Until then, a timer looks whether the connection is complete.
    if (isAtStart && this.coveredFrom === Infinity) return this.hasSeenOpened;
    const first = isAtStart && this.hasSeenOpened ? this.coveredFrom : Math.max(time, this.time.known());
    if (isAtStart) [this.origin, this.lowest] = [first, 0];
    this.oldest = this.firstEndingAfter(first);
    this.hasBegun = true;
    return true;
  }

  private isOver(): boolean {
    if (!this.hasBegun) return false;
    const now = this.time.known();
    if (this.endOf(this.oldest) + this.shape.allowedLatenessMs <= now) return true;
    // An empty window that would begin just as the feed ends doesn't count as begun.
    return this.isEnded && (this.startOf(this.oldest) < now || this.open.has(this.oldest));
  }

  /** Returns the last empty window to merge with the oldest one; the oldest itself if there are only a few. */
  private lastOfEmptyRun(): number {
    const { everyMs, allowedLatenessMs } = this.shape;
    const now = this.time.known();
    // When the source ends, every window that has begun is over.
    let last = this.isEnded
      ? Math.ceil((now - this.origin) / everyMs) - 1
      : this.firstEndingAfter(now - allowedLatenessMs) - 1;
    if (last - this.oldest < mostEmptyWindows || this.open.has(this.oldest)) return this.oldest;
    for (const index of this.open.keys()) last = Math.min(last, index - 1);
    return last - this.oldest < mostEmptyWindows ? this.oldest : last;
  }

  private findCurrent(time: number): void {
    this.from = Math.max(time, this.startOf(this.oldest));
    const first = Math.max(this.oldest, this.firstEndingAfter(this.from));
    const last = Math.max(this.lowest, Math.floor((this.from - this.origin) / this.shape.everyMs));
    this.until = Math.min(this.endOf(first), this.startOf(last + 1));
    // Once an item closes the oldest window, a late item after it must not find that window open.
    const closesAt = this.endOf(this.oldest) + this.shape.allowedLatenessMs;
    if (closesAt > this.from) this.until = Math.min(this.until, closesAt);
    this.current = [];
    for (let index = first; index <= last; index += 1) this.current.push(this.opened(index));
  }

  private opened(index: number): OpenWindow {
    const window = this.open.get(index) ?? new OpenWindow(this.contents);
    this.open.set(index, window);
    return window;
  }

  private put(item: unknown, isLate: boolean): void {
    const { by, keep, limit } = this.contents;
    const key = by?.(item);
    // `keep` may copy the item, so call it only if a window stores the item.
    let kept: unknown;
    for (const window of this.current) {
      const isStored = window.count < limit;
      if (isStored) kept ??= keep(item);
      window.add(kept, key, isStored, isLate);
    }
  }

  private close(first: number, last: number): readonly unknown[] {
    const window = this.opened(first);
    this.open.delete(first);
    this.until = -Infinity;
    this.current = [];
    const [start, end, now] = [this.startOf(first), this.endOf(last), this.time.known()];
    this.cover(now);
    const gaps = this.outages.within(start, end, now);
    this.outages.forget(this.startOf(last + 1));
    const isCovered = start >= this.coveredFrom && end <= now;
    const lacks: IncompleteReason | undefined = first < last ? 'jump' : isCovered ? undefined : 'partial';
    return window.close({ start, end, gaps, lacks });
  }

  private startOf(index: number): number {
    return this.origin + index * this.shape.everyMs;
  }

  private endOf(index: number): number {
    return this.startOf(index) + this.shape.lengthMs;
  }

  private oldestStart(): number {
    return this.hasBegun ? this.startOf(this.oldest) : -Infinity;
  }

  private firstEndingAfter(time: number): number {
    const { lengthMs, everyMs } = this.shape;
    return Math.max(this.lowest, Math.floor((time - lengthMs - this.origin) / everyMs) + 1);
  }
}
