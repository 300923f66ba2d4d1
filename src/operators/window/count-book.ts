import type { LifecycleEvent } from '../../protocol/event.js';
import { isLifecycle, type ItemOf, timeOf } from '../items/item.js';
import type { Failure } from '../stream/failure.js';
import { outageLog } from './outage-log.js';
import type { WindowContents } from './window-contents.js';

/** Sorts the items of one subscription into windows of `n`. Time is that of the items, and never goes back. */
export class CountBook<E, A, W> {
  private readonly n: number;
  private readonly contents: WindowContents<ItemOf<E>, A, W>;
  private readonly keep: (item: ItemOf<E>) => ItemOf<E>;
  private readonly clock: () => number;
  private filling: Filling<A> | undefined;
  private full: readonly W[] = [];
  private now = -Infinity;
  private readonly outages = outageLog();
  private isOpen = false;

  /** @param clock - gives the time in ms of an item that does not know its own */
  constructor(n: number, contents: WindowContents<ItemOf<E>, A, W>, clock: () => number) {
    this.n = n;
    this.contents = contents;
    this.keep = contents.keeper();
    this.clock = clock;
  }

  /** Takes an event in. Says whether a window is full. */
  add(event: E): boolean {
    if (isLifecycle(event)) return this.follow(event);
    const item = event as ItemOf<E>;
    const time = timeOf(item) ?? this.clock();
    this.outages.item(time, -Infinity);
    this.isOpen = true;
    this.pass(time);
    this.filling ??= { start: this.now, state: this.contents.seed(), count: 0 };
    const { filling } = this;
    filling.state = this.contents.add(filling.state, this.keep(item));
    filling.count += 1;
    if (filling.count < this.n) return false;
    this.close(filling);
    return true;
  }

  /** No event follows: the window that is being filled is closed as it is. */
  end(failure?: Failure): void {
    this.outages.stop(failure?.error);
    if (this.filling !== undefined) this.close(this.filling);
  }

  /** Gives the windows that are closed, oldest first, and forgets them. */
  *closed(): Generator<W, void, undefined> {
    while (this.full.length > 0) {
      const [first, ...rest] = this.full;
      this.full = rest;
      yield first as W;
    }
  }

  private follow(event: LifecycleEvent): boolean {
    // It says how far the time of the source has come, and a window of so many items ends with an item.
    if (event.type === 'watermark') return false;
    this.outages.event(event, -Infinity, this.isOpen ? this.now : undefined);
    this.isOpen ||= event.type === 'opened' || event.type === 'gap';
    this.pass(timeOf(event) as number);
    return false;
  }

  private pass(time: number): void {
    if (time > this.now) this.now = time;
  }

  private close({ start, state, count }: Filling<A>): void {
    const gaps = this.outages.within(-Infinity, Infinity, this.now);
    this.outages.forget(Infinity);
    const complete = count === this.n && gaps.length === 0;
    const window = this.contents.toWindow({ type: 'window', start, end: this.now, count, gaps, complete }, state, 0);
    this.full = [...this.full, window];
    this.filling = undefined;
  }
}

/** A window that is not full. */
interface Filling<A> {
  readonly start: number;
  state: A;
  count: number;
}
