import { filter, type Observable, type SchedulerLike, Subject, type Subscription } from 'rxjs';
import { FeedFollower } from '../../../src/operators/items/follow-feed.js';
import { timeOf } from '../../../src/operators/items/item.js';
import { gaps } from '../../../src/operators/gaps.js';
import { tumblingWindow } from '../../../src/operators/tumbling-window.js';
import type { WindowFacts } from '../../../src/operators/window/window.js';
import type { Received } from '../../../src/protocol/event-line.js';
import type { Gap, RelayedEvent } from '../../../src/protocol/event.js';
import type { DirectFeed, SentFrame } from './service.js';

const lengthMs = 500;

interface ClosedWindow extends WindowFacts {
  /** When it was emitted. */
  readonly at: number;
}

/** Records what a reader receives, and compares it with what the service has sent. */
export class Observer {
  readonly events: { readonly at: number; readonly event: Received }[] = [];
  readonly windows: ClosedWindow[] = [];
  /** The gap events; of a reader that subscribes again, what `gaps()` reports: that outage has no event. */
  readonly gaps: Gap[] = [];
  readonly received = new Map<number, number>();
  readonly violations: string[] = [];
  #hasJoined = false;
  /** The latest time, and that of items and gaps. */
  #latest = -Infinity;
  #newest = -Infinity;
  #watermark = -Infinity;
  #last = 0;
  /** From when it misses nothing outside of gaps. */
  #completeFrom: number | undefined;
  readonly #feed = new FeedFollower();
  readonly #subscription: Subscription;

  constructor(feed$: Observable<RelayedEvent>, scheduler: SchedulerLike, subscribesAgain: boolean) {
    const events = new Subject<RelayedEvent>();
    const count = { seed: () => 0, add: (sum: number) => sum + 1 };
    events.pipe(tumblingWindow({ lengthMs, scheduler, ...count })).subscribe((window) => {
      this.windows.push({ ...window, at: scheduler.now() });
    });
    const isGap = filter((event: RelayedEvent): event is Gap => event.type === 'gap');
    events.pipe(subscribesAgain ? gaps() : isGap).subscribe((gap) => this.gaps.push(gap));
    this.#subscription = feed$.subscribe({
      next: (event) => {
        this.#record(event, scheduler.now());
        events.next(event);
      },
      error: (error: unknown) => this.violations.push(`the page has stopped: ${String(error)}`),
    });
  }

  leave(): void {
    this.#subscription.unsubscribe();
  }

  /** Returns the violations of a run. */
  check(sent: readonly SentFrame[], feeds: readonly DirectFeed[], end: number): readonly string[] {
    const hasLeft = this.#subscription.closed;
    return [
      ...this.violations,
      ...this.#lost(sent).map(({ n, at }) => `frame ${n} of ${at} is missing, and in no gap`),
      ...this.windows.flatMap((window) => this.#wrong(window, sent, feeds)),
      ...(hasLeft || ([...this.received.values()].at(-1) ?? 0) > end - 3_000 ? [] : ['no frames arrive in the end']),
    ];
  }

  #record(event: Received, now: number): void {
    this.events.push({ at: now, event });
    const at = timeOf(event) as number;
    const isItem = event.type === 'frame' || event.type === 'value';
    // A page that found no relay may then receive frames from before (`sinceMs`).
    const isOwn = event.type === 'reconnecting' || ('failure' in event && event.failure.code === 'relay-unreachable');
    this.#hasJoined ||= isItem || (!isOwn && this.events.length === 1);
    // A watermark only promises that nothing earlier follows, so it may precede the last event. The gap of an outage is
    // known after its end: watermarks, and what happens to a page, go on while a connection settles.
    const before = event.type === 'watermark' ? this.#watermark : event.type === 'gap' ? this.#newest : this.#latest;
    if (at < before) this.violations.push(`${event.type} of ${at} follows ${before}`);
    if (event.type === 'watermark') this.#watermark = at;
    else if (isItem || event.type === 'gap') this.#newest = Math.max(this.#newest, at);
    if (this.#hasJoined) this.#latest = Math.max(this.#latest, at);
    if (event.type === 'gap' && at > now) this.violations.push(`gap until ${at} at ${now}`);
    this.#completeFrom ??= this.#feed.next(event).completeFrom;
    const n =
      event.type === 'frame'
        ? Number(event.text())
        : event.type === 'value'
          ? Number((event.value as { n: string }).n)
          : 0;
    if (n === 0) return;
    if (n <= this.#last) this.violations.push(`frame ${n} follows ${this.#last}`);
    this.#last = n;
    this.received.set(n, at);
  }

  #lost(sent: readonly SentFrame[]): readonly SentFrame[] {
    const from = this.#completeFrom ?? Infinity;
    return sent
      .filter(({ n, at }) => at > from && n < this.#last && !this.received.has(n))
      .filter(({ at }) => !this.gaps.some((gap) => gap.from <= at && at <= gap.to));
  }

  // Windows close as complete until a stall of a direct connection is noticed: see docs/windows.md.
  #wrong(window: ClosedWindow, sent: readonly SentFrame[], feeds: readonly DirectFeed[]): readonly string[] {
    const { start, end, count, complete, at } = window;
    if (!complete) return [];
    const inside = sent.filter((frame) => frame.at >= start && frame.at < end);
    if (inside.length === count) return [];
    const missing = inside.filter(({ n }) => !this.received.has(n));
    const stalls = feeds.flatMap((feed) => feed.stalls);
    const isUnnoticed = missing.every((frame) => stalls.some(({ from, to }) => frame.at >= from && end <= to));
    if (missing.length > 0 && isUnnoticed) return [];
    const what = missing.map(({ n, at: sentAt }) => `${n} of ${sentAt}`).join();
    return [
      `the window of ${start} says complete, with ${count} of ${inside.length} frames: at ${at}, without ${what}`,
    ];
  }
}
