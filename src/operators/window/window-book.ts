import type { LifecycleEvent } from '../../protocol/event.js';
import { isLifecycle, isReplayed, type ItemOf, timeOf } from '../stream/item.js';
import type { Failure } from '../stream/failure.js';
import { outageLog } from './outage-log.js';
import type { WindowContents } from './window-contents.js';
import { type WindowGrid, windowGrid } from './window-grid.js';

/** Where windows lie. */
export interface WindowShape {
  readonly lengthMs: number;
  readonly everyMs: number;
  readonly align: 'epoch' | 'start';
}

/**
 * Sorts the events of one subscription into windows, and closes the windows whose time is over.
 *
 * Time is that of the events, and never goes back: what comes late falls in the oldest window that is open. Where no event says
 * how late it is, the clock does, set by the events: by the greatest lead that one was seen to have. A recording knows its time by itself.
 * A class, since `add` runs for every frame: the numbers of a closure would each be allocated when they change.
 */
export class WindowBook<E, A, W> {
  private readonly shape: WindowShape;
  private readonly contents: WindowContents<ItemOf<E>, A, W>;
  private readonly keep: (item: ItemOf<E>) => ItemOf<E>;
  private readonly clock: () => number;
  private readonly beganAt: number;
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
  /** How late it is, as far as it matters: not by every item, but by the first of its windows. */
  private now = -Infinity;
  private lead: number | undefined;
  private isReplay = false;
  private coveredFrom = Infinity;
  private isEnded = false;

  /** @param clock - gives the time in ms, as `scheduler.now()` does */
  constructor(shape: WindowShape, contents: WindowContents<ItemOf<E>, A, W>, clock: () => number) {
    this.shape = shape;
    this.contents = contents;
    this.keep = contents.keeper();
    this.clock = clock;
    this.beganAt = clock();
  }

  /** Takes an event in. Says whether the first window has begun or one is over: then the next end is another one. */
  add(event: E): boolean {
    if (isLifecycle(event)) return this.tell(event);
    const item = event as ItemOf<E>;
    const itsTime = timeOf(item);
    const time = itsTime ?? this.timeByClock();
    if (time >= this.from && time < this.until) {
      if (time > this.now) this.now = time;
      this.put(item);
      return false;
    }
    if (itsTime !== undefined) this.setClock(event, itsTime);
    this.cover(time, this.beganAt);
    const isTurn = this.advance(time);
    this.turnTo(time, this.grid as WindowGrid);
    this.put(item);
    return isTurn;
  }

  /** Lets the clock say how late it is. Says whether a window is over. */
  tick(): boolean {
    return this.advance(this.timeByClock());
  }

  /** No event follows: the windows that have begun are closed as they are. */
  end(failure?: Failure): void {
    this.outages.stop(failure?.error);
    if (this.grid !== undefined) this.advance(this.timeByClock());
    this.isEnded = true;
  }

  /** Closes the windows that are over, oldest first, each when it is asked for. */
  *closed(): Generator<W, void, undefined> {
    while (this.grid !== undefined && this.isOver(this.grid)) {
      const index = this.oldest;
      this.oldest += 1;
      yield this.close(this.grid, index);
    }
  }

  /** How long until a window is over by the clock, in ms; never longer than from one end to the next, as clocks can be set back. */
  waitMs(): number {
    const { everyMs } = this.shape;
    if (this.grid === undefined) return everyMs;
    if (this.isReplay) return Infinity;
    const now = this.timeByClock();
    return Math.min(everyMs, this.grid.end(this.grid.firstAt(now)) - this.clock() - (this.lead ?? 0));
  }

  private tell(event: LifecycleEvent): boolean {
    const time = timeOf(event) as number;
    this.setClock(event, time);
    // Before time passes over it: the windows that it closes must know.
    const heardAt = this.coveredFrom < Infinity ? this.now : undefined;
    this.outages.tell(event, this.grid?.start(this.oldest) ?? -Infinity, heardAt);
    if (event.type === 'opened') this.cover(time, time);
    else if (event.type === 'gap') this.cover(time, this.beganAt);
    return this.advance(time);
  }

  // With the first sign of an open connection: one that was open before the first event has missed nothing since.
  private cover(time: number, earliest: number): void {
    if (this.coveredFrom < Infinity) return;
    this.coveredFrom = this.grid === undefined ? Math.min(time, earliest) : time;
  }

  private setClock(event: unknown, time: number): void {
    this.isReplay = isReplayed(event);
    if (!this.isReplay) this.lead = Math.max(this.lead ?? -Infinity, time - this.clock());
  }

  private timeByClock(): number {
    return this.isReplay ? this.now : Math.max(this.now, this.clock() + (this.lead ?? 0));
  }

  private advance(time: number): boolean {
    if (time > this.now) this.now = time;
    if (this.grid !== undefined) return this.isOver(this.grid);
    const { lengthMs, everyMs, align } = this.shape;
    if (align === 'start' && this.coveredFrom === Infinity) return false;
    this.grid = align === 'epoch' ? windowGrid(lengthMs, everyMs, 0) : windowGrid(lengthMs, everyMs, this.now, 0);
    this.oldest = this.grid.firstAt(this.now);
    return true;
  }

  private isOver(grid: WindowGrid): boolean {
    if (grid.end(this.oldest) <= this.now) return true;
    // One that begins as the feed ends, and is empty, has not begun.
    return this.isEnded && (grid.start(this.oldest) < this.now || this.open.has(this.oldest));
  }

  private turnTo(time: number, grid: WindowGrid): void {
    this.from = Math.max(time, grid.start(this.oldest));
    const first = Math.max(this.oldest, grid.firstAt(this.from));
    const last = grid.lastAt(this.from);
    this.until = Math.min(grid.end(first), grid.start(last + 1));
    this.current = [];
    for (let index = first; index <= last; index += 1) this.current.push(this.opened(index));
    // It belongs to a window that is closed: the sum of this one is not the truth either.
    if (time < this.from) for (const window of this.current) window.isTrue = false;
  }

  private opened(index: number): Open<A> {
    const window = this.open.get(index) ?? { state: this.contents.seed(), count: 0, dropped: 0, isTrue: true };
    this.open.set(index, window);
    return window;
  }

  private put(item: ItemOf<E>): void {
    const { add, limit } = this.contents;
    // What no window takes in is not held.
    let kept: ItemOf<E> | undefined;
    for (const window of this.current) {
      if (window.count < limit) window.state = add(window.state, (kept ??= this.keep(item)));
      else window.dropped += 1;
      window.count += 1;
    }
  }

  private close(grid: WindowGrid, index: number): W {
    const { state, count, dropped, isTrue } = this.opened(index);
    this.open.delete(index);
    this.until = -Infinity;
    this.current = [];
    const start = grid.start(index);
    const end = grid.end(index);
    const gaps = this.outages.within(start, end, this.now);
    this.outages.forget(grid.start(index + 1));
    const isWhole = start >= this.coveredFrom && end <= this.now;
    const complete = isTrue && isWhole && gaps.length === 0 && dropped === 0;
    return this.contents.toWindow({ type: 'window', start, end, count, gaps, complete }, state, dropped);
  }
}

/** A window that is not closed. */
interface Open<A> {
  state: A;
  count: number;
  dropped: number;
  /** Nothing fell in it that belongs to an older one. */
  isTrue: boolean;
}
