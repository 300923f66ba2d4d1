import { type Observable, type SchedulerLike, Subject } from 'rxjs';
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

/** Records what a page receives, and compares it with what the service has sent. */
export class Observer {
  readonly events: { readonly at: number; readonly event: Received }[] = [];
  readonly windows: ClosedWindow[] = [];
  /** As `gaps()` reports them, even for an outage that has no gap event. */
  readonly gaps: Gap[] = [];
  readonly received = new Map<number, number>();
  readonly violations: string[] = [];
  #latest = -Infinity;
  #watermark = -Infinity;
  #last = 0;

  constructor(feed$: Observable<RelayedEvent>, scheduler: SchedulerLike) {
    const events = new Subject<RelayedEvent>();
    const count = { seed: () => 0, add: (sum: number) => sum + 1 };
    events.pipe(tumblingWindow({ lengthMs, scheduler, ...count })).subscribe((window) => {
      this.windows.push({ ...window, at: scheduler.now() });
    });
    events.pipe(gaps()).subscribe((gap) => this.gaps.push(gap));
    feed$.subscribe({
      next: (event) => {
        this.#record(event, scheduler.now());
        events.next(event);
      },
      error: (error: unknown) => this.violations.push(`the page has stopped: ${String(error)}`),
    });
  }

  /** Returns the violations of a run. */
  check(sent: readonly SentFrame[], feeds: readonly DirectFeed[], end: number): readonly string[] {
    const stalls = feeds.flatMap((feed) => feed.stalls);
    return [
      ...this.violations,
      ...this.#lost(sent).map(({ n, at }) => `frame ${n} of ${at} is missing, and in no gap`),
      ...this.windows.flatMap((window) => this.#wrong(window, sent, stalls)),
      ...([...this.received.values()].at(-1)! > end - 3_000 ? [] : ['no frames arrive in the end']),
    ];
  }

  #record(event: Received, now: number): void {
    this.events.push({ at: now, event });
    const at = timeOf(event) as number;
    // A watermark only promises that nothing earlier follows, so it may precede the last event.
    const before = event.type === 'watermark' ? this.#watermark : this.#latest;
    if (at < before) this.violations.push(`${event.type} of ${at} follows ${before}`);
    if (event.type === 'watermark') this.#watermark = at;
    this.#latest = Math.max(this.#latest, at);
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
    const openedAt = this.events.find(({ event }) => event.type === 'opened');
    const from = openedAt === undefined ? Infinity : (timeOf(openedAt.event) as number);
    return sent
      .filter(({ n, at }) => at > from && n < this.#last && !this.received.has(n))
      .filter(({ at }) => !this.gaps.some((gap) => gap.from <= at && at <= gap.to));
  }

  // Windows close as complete until a stall of a direct connection is noticed: see docs/windows.md.
  #wrong(window: ClosedWindow, sent: readonly SentFrame[], stalls: DirectFeed['stalls']): readonly string[] {
    const { start, end, count, complete, at } = window;
    const inside = sent.filter((frame) => frame.at >= start && frame.at < end);
    if (!complete || inside.length === count) return [];
    const isUnnoticed = inside
      .filter(({ n }) => !this.received.has(n))
      .every((frame) => stalls.some(({ from, to }) => frame.at >= from && end <= to));
    return isUnnoticed
      ? []
      : [
          `the window of ${start} says complete, with ${count} of ${inside.length} frames: at ${at}, without ${inside
            .filter(({ n }) => !this.received.has(n))
            .map(({ n, at: sentAt }) => `${n} of ${sentAt}`)
            .join()}`,
        ];
  }
}
