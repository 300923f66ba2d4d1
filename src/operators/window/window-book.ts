import type { LifecycleEvent } from '../../protocol/event.js';
import { isLifecycle, type ItemOf, timeOf } from '../items/item.js';
import type { Failure } from '../stream/failure.js';
import { EventTime } from '../timing/event-time.js';
import { outageLog } from './outage-log.js';
import type { WindowContents } from './window-contents.js';
import { type WindowGrid, windowGrid } from './window-grid.js';

/** Where windows lie, and how long they wait for late items. */
export interface WindowShape {
  readonly lengthMs: number;
  readonly everyMs: number;
  readonly align: 'epoch' | 'start';
  readonly allowedLatenessMs: number;
}

/** More empty windows in a row are emitted as one, when they end in the same moment: a wrong time must not block the process. */
export const mostEmptyWindows = 10_000;

/**
 * Sorts the events of one subscription into windows, and closes the windows whose time is over.
 *
 * Time is that of the events, and never goes back: an item that comes late falls in the oldest window that is open. {@link EventTime} says
 * how far it has come. A class, since `add` runs for every frame: the numbers of a closure would each be allocated when they change.
 */
export class WindowBook<E, A, W> {
  private readonly shape: WindowShape;
  private readonly contents: WindowContents<ItemOf<E>, A, W>;
  private readonly keep: (item: ItemOf<E>) => ItemOf<E>;
  private readonly beganAt: number;
  private readonly time: EventTime;
  private readonly outages = outageLog();
  /** The windows with something in them that are not closed, by index. */
  private readonly open = new Map<number, Open<A>>();
  /** The windows that a time from `from` until `until` falls in. */
  private current: Open<A>[] = [];
  private from = Infinity;
  private until = -Infinity;

  private grid: WindowGrid | undefined;
  /** The oldest window that is not closed. */
  private oldest = 0;
  private coveredFrom = Infinity;
  /** The time of the first sign of an open connection. */
  private firstAt = Infinity;
  private isEnded = false;

  /** @param clock - gives the time in ms, as `scheduler.now()` does */
  constructor(shape: WindowShape, contents: WindowContents<ItemOf<E>, A, W>, clock: () => number) {
    this.shape = shape;
    this.contents = contents;
    this.keep = contents.keeper();
    this.beganAt = clock();
    this.time = new EventTime(clock);
  }

  /** Takes an event in. Says whether the first window has begun or one is over: then the next end is another one. */
  add(event: E): boolean {
    if (isLifecycle(event)) return this.follow(event);
    const item = event as ItemOf<E>;
    const ownTime = timeOf(item);
    const time = ownTime ?? this.time.now();
    if (time >= this.from && time < this.until) {
      this.time.pass(time);
      this.put(item);
      return false;
    }
    if (ownTime !== undefined) this.time.receive(event, ownTime);
    this.outages.item(time, this.oldestStart());
    this.cover(time, this.beganAt);
    const isTurn = this.advance(time);
    this.turnTo(time, this.grid as WindowGrid);
    this.put(item);
    return isTurn;
  }

  /** Reads the clock. Says whether a window is over. */
  tick(): boolean {
    this.time.now();
    return this.grid !== undefined && this.isOver(this.grid);
  }

  /** Closes all windows that have begun: no event follows. */
  end(failure?: Failure): void {
    this.outages.stop(failure?.error);
    if (this.grid !== undefined) this.time.end();
    this.isEnded = true;
  }

  /** Closes the windows that are over, oldest first, each when it is asked for. */
  *closed(): Generator<W, void, undefined> {
    while (this.grid !== undefined && this.isOver(this.grid)) {
      const first = this.oldest;
      const last = this.lastOfEmptyRun(this.grid);
      this.oldest = last + 1;
      yield this.close(this.grid, first, last);
    }
  }

  /** How long until a window is over by the clock, in ms; never longer than from one end to the next, as clocks can be set back. */
  waitMs(): number {
    const { everyMs, allowedLatenessMs } = this.shape;
    if (this.grid === undefined) return everyMs;
    const next = Math.max(this.oldest, this.grid.firstAt(this.time.known() - allowedLatenessMs));
    const waitMs = this.time.waitMs(this.grid.end(next) + allowedLatenessMs);
    return waitMs === Infinity ? Infinity : Math.min(everyMs, waitMs);
  }

  private follow(event: LifecycleEvent): boolean {
    const time = timeOf(event) as number;
    // Before time passes over it: the windows that it closes must know.
    const heardAt = this.coveredFrom < Infinity ? this.time.heardAt : undefined;
    this.time.receive(event, time);
    this.outages.event(event, this.oldestStart(), heardAt);
    if (event.type === 'opened') this.cover(time, time);
    else if (event.type === 'gap') this.cover(time, this.beganAt);
    // The clock of this machine does not say from which time on a source that is late, or has another clock, was received.
    if (event.type === 'watermark') this.coveredFrom = this.firstAt;
    // The next item may end an outage.
    else this.until = -Infinity;
    return this.advance(time);
  }

  private oldestStart(): number {
    return this.grid?.start(this.oldest) ?? -Infinity;
  }

  // With the first sign of an open connection: one that was open before the first event has missed nothing since.
  private cover(time: number, earliest: number): void {
    if (this.coveredFrom < Infinity) return;
    this.firstAt = time;
    this.coveredFrom = this.grid === undefined ? Math.min(time, earliest) : time;
  }

  /** Says whether the first window has begun or one is over. */
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
    // One that begins as the feed ends, and is empty, has not begun.
    return this.isEnded && (grid.start(this.oldest) < now || this.open.has(this.oldest));
  }

  /** Returns the last of the empty windows that are emitted as one, or the oldest window if they are few. */
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
    // It belongs to a window that is closed: the sum of this one is not exact either.
    if (time < this.from) for (const window of this.current) window.isExact = false;
  }

  private opened(index: number): Open<A> {
    const window = this.open.get(index) ?? { state: this.contents.seed(), count: 0, dropped: 0, isExact: true };
    this.open.set(index, window);
    return window;
  }

  private put(item: ItemOf<E>): void {
    const { add, limit } = this.contents;
    // An item that no window takes in is not held.
    let kept: ItemOf<E> | undefined;
    for (const window of this.current) {
      if (window.count < limit) window.state = add(window.state, (kept ??= this.keep(item)));
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
    const isWhole = start >= this.coveredFrom && end <= now && first === last;
    const complete = isExact && isWhole && gaps.length === 0 && dropped === 0;
    return this.contents.toWindow({ type: 'window', start, end, count, gaps, complete }, state, dropped);
  }
}

/** A window that is not closed. */
interface Open<A> {
  state: A;
  count: number;
  dropped: number;
  /** Every item in it belongs to it, not to an older window. */
  isExact: boolean;
}
