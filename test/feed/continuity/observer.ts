import { type Observable, type SchedulerLike, Subject, type Subscription } from 'rxjs';
import { gaps } from '../../../src/operators/gaps.js';
import { slidingWindow } from '../../../src/operators/sliding-window.js';
import { tumblingWindow } from '../../../src/operators/tumbling-window.js';
import type { WindowFacts } from '../../../src/operators/window/window.js';
import type { Gap, RelayedEvent } from '../../../src/protocol/event.js';
import type { Sent } from './service.js';

/** How long a connection may take until it is complete. */
const settlesMs = 500;

interface ObserverOptions {
  readonly clock: SchedulerLike;
  /** Whether to observe windows of more lengths. */
  readonly isThorough?: boolean;
  /** Whether the feed stops at times. */
  readonly stops?: boolean;
  /** Whether the operators get items without a time, as from `map`. */
  readonly isMapped?: boolean;
}

/** Records what arrives behind a hop, and compares it with what the service has seen. */
export class Observer {
  readonly name: string;
  readonly gaps: Gap[] = [];
  readonly windows: WindowFacts[] = [];
  readonly violations: string[] = [];
  /** When each frame was received, by its number. */
  readonly received = new Map<number, number>();
  readonly #subscription: Subscription;
  #openedAt = Infinity;
  #lastOpenedAt = -Infinity;
  #newest = -Infinity;
  #last = 0;

  constructor(
    name: string,
    feed$: Observable<RelayedEvent>,
    { clock, isThorough = false, stops = false, isMapped = false }: ObserverOptions,
  ) {
    this.name = name;
    const events = new Subject<RelayedEvent | { readonly payload: string }>();
    const count = { scheduler: clock, seed: () => 0, add: (sum: number) => sum + 1 };
    const thorough = [
      ...[50, 1_000].map((lengthMs) => events.pipe(tumblingWindow({ lengthMs, ...count }))),
      events.pipe(slidingWindow({ lengthMs: 200, everyMs: 50, ...count })),
    ];
    const all = [
      events.pipe(tumblingWindow({ lengthMs: 200, ...count })),
      events.pipe(tumblingWindow({ lengthMs: 200, align: 'start', ...count })),
      ...(isThorough ? thorough : []),
    ];
    for (const windows$ of all) windows$.subscribe((window) => this.windows.push(window));
    events.pipe(gaps()).subscribe((gap) => {
      if (gap.durationMs === 0 && gap.to === this.gaps.at(-1)?.to) this.violations.push(`another gap up to ${gap.to}`);
      this.gaps.push(gap);
      const latest = this.#lastOpenedAt + settlesMs;
      if (isThorough && gap.to > latest) this.violations.push(`the gap up to ${gap.to} is too long`);
      // The feed emits it by a timer. After a stop it emits none, and an operator waits for the next event.
      if (isThorough && !stops && clock.now() > latest + 2)
        this.violations.push(`the gap up to ${gap.to} is emitted late, at ${clock.now()}`);
      if (gap.to > clock.now()) this.violations.push(`the gap up to ${gap.to} is emitted at ${clock.now()}`);
    });
    this.#subscription = feed$.subscribe({
      next: (event) => {
        this.#record(event);
        events.next(isMapped && event.type === 'frame' ? { payload: event.text() } : event);
      },
      complete: () => events.complete(),
      error: (error: unknown) => this.violations.push(`the feed has stopped: ${String(error)}`),
    });
  }

  end(): void {
    this.#subscription.unsubscribe();
  }

  /** Returns the violations of a run. */
  check(sent: readonly Sent[]): readonly string[] {
    const places = sent.map((frame) => this.#placeOf(frame)).sort((one, other) => one.at - other.at);
    return [
      ...this.violations,
      ...this.#lost(places).map(({ n, at }) => `${this.name}: frame ${n} of ${at} is missing, and in no gap`),
      ...this.windows.flatMap((window) => this.#wrong(window, places)),
    ];
  }

  #record(event: RelayedEvent): void {
    if (event.type === 'opened') {
      this.#openedAt = Math.min(this.#openedAt, event.at);
      this.#lastOpenedAt = event.at;
    }
    if (event.type !== 'frame') return;
    const n = Number(event.text());
    if (n <= this.#last) this.violations.push(`frame ${n} follows ${this.#last}`);
    if (event.receivedAt < this.#newest) this.violations.push(`a frame of ${event.receivedAt} is too early`);
    this.#newest = event.receivedAt;
    this.#last = n;
    this.received.set(n, event.receivedAt);
  }

  /**
   * Where a frame belongs. A client reads a close some ms late, so what was lost before that is missing from its end on,
   * and not earlier.
   */
  #placeOf({ n, expectedAt, lostOn }: Sent): Place {
    const receivedAt = this.received.get(n);
    return {
      n,
      at: receivedAt ?? Math.max(expectedAt, lostOn?.endedAt ?? expectedAt),
      isLost: receivedAt === undefined,
    };
  }

  // Before the first connection is complete nothing is promised but that no window says complete.
  #lost(places: readonly Place[]): readonly Place[] {
    return places
      .filter(({ n, at, isLost }) => isLost && n < this.#last && at > this.#openedAt + settlesMs)
      .filter(({ at }) => !this.gaps.some((gap) => gap.from <= at && at <= gap.to));
  }

  #wrong({ start, end, count, complete }: WindowFacts, places: readonly Place[]): readonly string[] {
    if (!complete) return [];
    let expected = 0;
    const missing: string[] = [];
    for (let index = firstFrom(places, start); index < places.length && places[index]!.at < end; index += 1) {
      const { n, at, isLost } = places[index]!;
      if (isLost) missing.push(`${n} of ${at}`);
      else expected += 1;
    }
    const what = `${this.name}: the window of ${start} to ${end} says complete`;
    if (missing.length > 0) return [`${what}, without ${missing.join()}`];
    return count === expected ? [] : [`${what}, with ${count} of ${expected} frames`];
  }
}

interface Place {
  readonly n: number;
  readonly at: number;
  readonly isLost: boolean;
}

/** Returns the index of the first place at a time or later. */
const firstFrom = (places: readonly Place[], at: number): number => {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle]!.at < at) low = middle + 1;
    else high = middle;
  }
  return low;
};
