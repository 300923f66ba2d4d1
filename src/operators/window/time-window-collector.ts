import type { ClusterLifecycleEvent } from '../../protocol/event.js';
import { isLifecycle, type ItemOf, timeOf } from '../items/item.js';
import type { SourceError } from '../items/item.js';
import { EventTime } from '../timing/event-time.js';
import { outageLog } from './outage-log.js';
import type { WindowContents } from './window-contents.js';
import { type WindowGrid, windowGrid } from './window-grid.js';

/** When windows begin and end, and how long they wait for late items. */
export interface WindowShape {
  readonly lengthMs: number;
  readonly everyMs: number;
  readonly align: 'epoch' | 'start';
  readonly allowedLatenessMs: number;
}

/** If more empty windows than this end at once, they are emitted as one: a wrong time must not block the process. */
export const mostEmptyWindows = 10_000;

/**
 * Collects the events of one subscription into windows, and closes each window when its time is over.
 *
 * The time never decreases; see {@link EventTime}. A late item belongs to the oldest open window. This is a class because `add` runs for every
 * frame: in a closure, V8 would allocate memory for each change of a number.
 */
export class TimeWindowCollector<E, A, W> {
  private readonly shape: WindowShape;
  private readonly contents: WindowContents<ItemOf<E>, A, W>;
  private readonly beganAt: number;
  private readonly time: EventTime;
  private readonly outages = outageLog();
  /** The open windows that are not empty, by index. */
  private readonly open = new Map<number, Open<A>>();
  /** The windows that contain a time from `from` until `until`. */
  private current: Open<A>[] = [];
  private from = Infinity;
  private until = -Infinity;

  private grid: WindowGrid | undefined;
  /** The index of the oldest open window. */
  private oldest = 0;
  private coveredFrom = Infinity;
  /** The time of the first event or item that shows an open connection. */
  private firstAt = Infinity;
  private isEnded = false;

  /** @param clock - returns the time in epoch ms, such as `scheduler.now()` */
  constructor(shape: WindowShape, contents: WindowContents<ItemOf<E>, A, W>, clock: () => number) {
    this.shape = shape;
    this.contents = contents;
    this.beganAt = clock();
    this.time = new EventTime(clock);
  }

  /** Adds an event. Returns whether the first window has begun or a window is over: then the next end of a window changes. */
  add(event: E): boolean {
    if (isLifecycle(event)) return this.follow(event);
    const item = event as ItemOf<E>;
    const itemTime = timeOf(item);
    const time = itemTime ?? this.time.now();
    if (time >= this.from && time < this.until) {
      this.time.pass(time);
      this.put(item);
      return false;
    }
    if (itemTime !== undefined) this.time.receive(event, itemTime);
    this.outages.item(time, this.oldestStart());
    this.cover(time, this.beganAt);
    const isTurn = this.advance(time);
    this.turnTo(time, this.grid as WindowGrid);
    this.put(item);
    return isTurn;
  }

  /** Reads the clock. Returns whether a window is over. */
  tick(): boolean {
    this.time.now();
    return this.grid !== undefined && this.isOver(this.grid);
  }

  /** Ends the time of all windows that have begun. */
  end(failure?: SourceError): void {
    this.outages.stop(failure?.error);
    if (this.grid !== undefined) this.time.end();
    this.isEnded = true;
  }

  /** Returns the windows that are over, oldest first. Each is closed when the iterator reaches it. */
  *drain(): Generator<W, void, undefined> {
    while (this.grid !== undefined && this.isOver(this.grid)) {
      const first = this.oldest;
      const last = this.lastOfEmptyRun(this.grid);
      this.oldest = last + 1;
      yield this.close(this.grid, first, last);
    }
  }

  /** Returns how long until a window is over by the clock, in ms. At most `everyMs`, because a clock can be set back. */
  waitMs(): number {
    const { everyMs, allowedLatenessMs } = this.shape;
    if (this.grid === undefined) return everyMs;
    const next = Math.max(this.oldest, this.grid.firstAt(this.time.known() - allowedLatenessMs));
    const waitMs = this.time.waitMs(this.grid.end(next) + allowedLatenessMs);
    return waitMs === Infinity ? Infinity : Math.min(everyMs, waitMs);
  }

  private follow(event: ClusterLifecycleEvent): boolean {
    const time = timeOf(event) as number;
    // Read before `receive` moves the time: an outage without an event began at the newest time before this event.
    const newestAt = this.coveredFrom < Infinity ? this.time.newestAt : undefined;
    this.time.receive(event, time);
    this.outages.event(event, this.oldestStart(), newestAt);
    if (event.type === 'opened') this.cover(time, time);
    else if (event.type === 'gap') this.cover(time, this.beganAt);
    // A source with watermarks is late or has another clock, so the clock of this machine does not show when receiving began.
    if (event.type === 'watermark') this.coveredFrom = this.firstAt;
    // The next item may end an outage.
    else this.until = -Infinity;
    return this.advance(time);
  }

  private oldestStart(): number {
    return this.grid?.start(this.oldest) ?? -Infinity;
  }

  // Called when an event or item shows an open connection. If this is the first one and not `opened`, the connection was open before the
  // subscription, so nothing is missing since the subscription.
  private cover(time: number, earliest: number): void {
    if (this.coveredFrom < Infinity) return;
    this.firstAt = time;
    this.coveredFrom = this.grid === undefined ? Math.min(time, earliest) : time;
  }

  /** Returns whether the first window has begun or a window is over. */
  private advance(time: number): boolean {
    if (this.grid !== undefined) return this.isOver(this.grid);
    const { lengthMs, everyMs, align } = this.shape;
    if (align === 'start' && this.coveredFrom === Infinity) return false;
    const first = Math.max(time, this.time.known());
    this.grid = align === 'epoch' ? windowGrid(lengthMs, everyMs, 0) : windowGrid(lengthMs, everyMs, first, 0);
    this.oldest = this.grid.firstAt(first);
    return true;
  }

  private isOver(grid: WindowGrid): boolean {
    const now = this.time.known();
    if (grid.end(this.oldest) + this.shape.allowedLatenessMs <= now) return true;
    // An empty window that begins when the feed ends does not count as begun.
    return this.isEnded && (grid.start(this.oldest) < now || this.open.has(this.oldest));
  }

  /** Returns the index of the last empty window that is emitted together with the oldest one, or the oldest index if there are few. */
  private lastOfEmptyRun(grid: WindowGrid): number {
    let last = grid.firstAt(this.time.known() - this.shape.allowedLatenessMs) - 1;
    if (last - this.oldest < mostEmptyWindows || this.open.has(this.oldest)) return this.oldest;
    for (const index of this.open.keys()) last = Math.min(last, index - 1);
    return last - this.oldest < mostEmptyWindows ? this.oldest : last;
  }

  private turnTo(time: number, grid: WindowGrid): void {
    this.from = Math.max(time, grid.start(this.oldest));
    const first = Math.max(this.oldest, grid.firstAt(this.from));
    const last = grid.lastAt(this.from);
    this.until = Math.min(grid.end(first), grid.start(last + 1));
    this.current = [];
    for (let index = first; index <= last; index += 1) this.current.push(this.opened(index));
    // The item belongs to a window that is closed, so the open windows that contain it are not exact.
    if (time < this.from) for (const window of this.current) window.isExact = false;
  }

  private opened(index: number): Open<A> {
    const window = this.open.get(index) ?? { state: this.contents.seed(), count: 0, dropped: 0, isExact: true };
    this.open.set(index, window);
    return window;
  }

  private put(item: ItemOf<E>): void {
    const { add, limit, keep } = this.contents;
    // `keep` may copy the item, so it is called only if a window adds the item.
    let kept: ItemOf<E> | undefined;
    for (const window of this.current) {
      if (window.count < limit) window.state = add(window.state, (kept ??= keep(item)));
      else window.dropped += 1;
      window.count += 1;
    }
  }

  private close(grid: WindowGrid, first: number, last: number): W {
    const { state, count, dropped, isExact } = this.opened(first);
    this.open.delete(first);
    this.until = -Infinity;
    this.current = [];
    const start = grid.start(first);
    const end = grid.end(last);
    const now = this.time.known();
    const gaps = this.outages.within(start, end, now);
    this.outages.forget(grid.start(last + 1));
    const isCovered = start >= this.coveredFrom && end <= now && first === last;
    const complete = isExact && isCovered && gaps.length === 0 && dropped === 0;
    return this.contents.toWindow({ type: 'window', start, end, count, gaps, complete }, state, dropped);
  }
}

/** An open window. */
interface Open<A> {
  state: A;
  count: number;
  dropped: number;
  /** Whether all items of the window belong to it. `false` if it contains a late item of an earlier window. */
  isExact: boolean;
}
