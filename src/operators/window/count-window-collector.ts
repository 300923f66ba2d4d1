import type { ClusterLifecycleEvent } from '../../protocol/event.js';
import { isLifecycle, type ItemOf, timeOf } from '../items/item.js';
import type { SourceError } from '../items/item.js';
import { outageLog } from './outage-log.js';
import type { WindowContents } from './window-contents.js';

/** Collects the items of one subscription into windows of `n` items. The time comes from the items and never decreases. */
export class CountWindowCollector<E, A, W> {
  private readonly n: number;
  private readonly contents: WindowContents<ItemOf<E>, A, W>;
  private readonly clock: () => number;
  private filling: Filling<A> | undefined;
  private full: readonly W[] = [];
  private now = -Infinity;
  private readonly outages = outageLog();
  private isOpen = false;

  /** @param clock - returns the time in epoch ms, for an item without a time */
  constructor(n: number, contents: WindowContents<ItemOf<E>, A, W>, clock: () => number) {
    this.n = n;
    this.contents = contents;
    this.clock = clock;
  }

  /** Adds an event. Returns whether a window is full. */
  add(event: E): boolean {
    if (isLifecycle(event)) return this.follow(event);
    const item = event as ItemOf<E>;
    const time = timeOf(item) ?? this.clock();
    this.outages.item(time, -Infinity);
    this.isOpen = true;
    this.pass(time);
    this.filling ??= { start: this.now, state: this.contents.seed(), count: 0 };
    const { filling } = this;
    filling.state = this.contents.add(filling.state, this.contents.keep(item));
    filling.count += 1;
    if (filling.count < this.n) return false;
    this.close(filling);
    return true;
  }

  /** Closes the window that is being filled. */
  end(failure?: SourceError): void {
    this.outages.stop(failure?.error);
    if (this.filling !== undefined) this.close(this.filling);
  }

  /** Returns the closed windows, oldest first, and removes them. */
  *drain(): Generator<W, void, undefined> {
    while (this.full.length > 0) {
      const [first, ...rest] = this.full;
      this.full = rest;
      yield first as W;
    }
  }

  private follow(event: ClusterLifecycleEvent): boolean {
    // A watermark moves the time, but only an item ends a window of `n` items.
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
