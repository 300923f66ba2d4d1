import { EventTime } from '../operators/items/event-time.js';
import { afterItem } from '../operators/items/follow-feed.js';
import { isOfEngine, timeOf } from '../operators/items/item.js';
import type { ClusterLifecycleEvent, Gap } from '../protocol/event.js';
import {
  afterEvent,
  afterFrame,
  afterTime,
  createGap,
  type FeedState,
  gapUntil,
  isOfRelay,
  noFeed,
} from '../protocol/feed-state.js';
import type { Settings } from './settle-options.js';
import type { Because } from './outcome.js';

/** How many gaps are kept. Beyond it the oldest two become one. */
const maxGaps = 1_000;

export const withGaps = (gaps: readonly Gap[], more: readonly Gap[]): readonly Gap[] => {
  const all = [...gaps, ...more];
  const [first, second, ...rest] = all;
  if (first === undefined || second === undefined || all.length <= maxGaps) return all;
  return [createGap(first.from, Math.max(first.to, second.to), first.failure), ...rest];
};

/** One of the two streams: up to when it is complete, and when it wasn't observed. Times are in epoch ms. */
export class Side {
  readonly name: Because['side'];
  endedAt = Infinity;
  private readonly latenessMs: number;
  private readonly time: EventTime;
  private state: FeedState = noFeed;
  private holes: readonly Gap[] = [];
  private begunAt = Infinity;
  /** From when its first connection is complete. */
  private completeFrom = Infinity;
  private lastAt = -Infinity;

  constructor(name: Because['side'], { allowedLatenessMs, scheduler }: Settings) {
    this.name = name;
    this.latenessMs = allowedLatenessMs;
    this.time = new EventTime(() => scheduler.now());
  }

  /** Whether its connection is open and complete, so that every gap of it is known. */
  get isOpen(): boolean {
    const { open, outage } = this.state;
    return open !== undefined && outage === undefined && this.stateNow.completeFrom !== undefined;
  }

  /** Whether it is in an outage, or has come back from one and isn't complete yet. */
  get isDown(): boolean {
    return this.state.outage !== undefined;
  }

  get isOver(): boolean {
    return this.endedAt < Infinity;
  }

  /** Whether the clock moves its time, and not only its events. */
  get isClocked(): boolean {
    return this.begunAt < Infinity && !this.isOver && !this.time.isWithoutClock;
  }

  /** The gaps that became known with the last event. */
  get gaps(): readonly Gap[] {
    return this.state.gaps;
  }

  /** Up to when it is complete, as of the last event or call of {@link now}. */
  get until(): number {
    if (this.isOver) return Infinity;
    return this.begunAt === Infinity ? -Infinity : this.time.known() - this.latenessMs;
  }

  /** Returns up to when it is complete. Reads the clock if the clock moves it. */
  now(): number {
    if (this.isClocked) this.time.now();
    return this.until;
  }

  /** Returns how long until the clock reaches a time, in ms. */
  waitMs(time: number): number {
    return this.until >= time ? 0 : this.time.waitMs(time + this.latenessMs);
  }

  /** Records an item or a step, and returns its time. */
  item(value: unknown, ownTime: number | undefined): number {
    const at = ownTime ?? this.time.now();
    // Most items have the time of the one before.
    if (at !== this.lastAt) this.receive(value, at);
    const { open, settling, gaps } = this.state;
    if (open === undefined || settling !== undefined || gaps.length > 0)
      this.follow(this.name === 'feed' ? afterItem(this.state, value, at) : afterFrame(this.state, at));
    return at;
  }

  /** Records an event. Returns whether its holes have changed. */
  event(event: ClusterLifecycleEvent): boolean {
    if (isOfEngine(event)) return false;
    const { outage } = this.state;
    this.follow(afterEvent(this.state, event, this.time.newestAt));
    this.receive(event, timeOf(event) as number);
    return this.gaps.length > 0 || this.state.outage !== outage;
  }

  end(): void {
    this.endedAt = this.begunAt === Infinity ? -Infinity : this.time.now();
  }

  /** Returns why it wasn't observed for all of a time, both ends included; `undefined` if it was. */
  lacks(from: number, to: number): Because | undefined {
    const { name: side } = this;
    const gap = this.holeIn(from, to);
    if (gap !== undefined) return { side, why: 'gap', gap };
    if (from < this.coveredFrom) return { side, why: 'start' };
    return to > this.endedAt ? { side, why: 'end' } : undefined;
  }

  /** Forgets the holes before a time. */
  forget(before: number): void {
    if (this.holes.length > 0) this.holes = this.holes.filter(({ to }) => to >= before);
  }

  private holeIn(from: number, to: number): Gap | undefined {
    const { outage, gaps } = this.stateNow;
    const isIn = (gap: Gap): boolean => gap.from <= to && gap.to > from;
    // The first one: whether the last outage is over by now, a clock knows before the next record of a log does.
    const known = this.holes.find(isIn) ?? gaps.find(isIn);
    if (known !== undefined || outage === undefined || outage.from > to || isOfRelay(outage)) return known;
    return gapUntil(outage, this.time.known());
  }

  private receive(value: unknown, at: number): void {
    this.begunAt = Math.min(this.begunAt, at);
    this.time.receive(value, at);
    this.lastAt = at;
  }

  private get coveredFrom(): number {
    if (this.name === 'ledger') return this.begunAt;
    return Math.min(this.completeFrom, this.stateNow.completeFrom ?? Infinity);
  }

  /** The state by now: a connection is complete after some time, also without a frame. */
  private get stateNow(): FeedState {
    return afterTime(this.state, this.time.known());
  }

  private follow(state: FeedState): void {
    this.state = state;
    if (this.completeFrom === Infinity) this.completeFrom = state.completeFrom ?? Infinity;
    if (state.gaps.length > 0) this.holes = withGaps(this.holes, state.gaps);
  }
}
