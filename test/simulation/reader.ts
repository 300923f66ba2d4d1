import { filter, type Observable, Subject, type Subscription } from 'rxjs';
import { gaps } from '../../src/operators/gaps.js';
import { FeedFollower } from '../../src/operators/items/follow-feed.js';
import { timeOf } from '../../src/operators/items/item.js';
import type { WindowFacts } from '../../src/operators/window/window.js';
import type { Received } from '../../src/protocol/event-line.js';
import type { Gap, RelayedEvent } from '../../src/protocol/event.js';
import type { FailureCode } from '../../src/protocol/failures/meanings.js';
import type { Sent } from './feed.js';
import type { Timeline } from './timeline.js';
import type { Time } from './world.js';

/** The failures of a page that has received nothing. */
const ownFailures: readonly FailureCode[] = ['relay-unreachable', 'relay-stalled'];

/** What the operators of a reader get: without a time if they are mapped. */
type Item = RelayedEvent | { readonly payload: string };

export interface ReaderOptions {
  readonly time: Time;
  readonly timeline: Timeline;
  readonly windows: (items$: Observable<Item>) => readonly Observable<WindowFacts>[];
  /** Whether gaps are what `gaps()` reports: an outage between two subscriptions has no event. */
  readonly usesOperator: boolean;
  /** Whether the operators get items without a time, as from `map`. */
  readonly isMapped?: boolean;
  /** How long a connection may take until it is complete, in ms, if that is known. */
  readonly settlesMs?: number;
}

/** A gap, when it was emitted, and when the connection before that opened. */
interface SeenGap extends Gap {
  readonly emittedAt: number;
  readonly openedAt: number;
}

/** Where the frames belong that a reader should have. */
interface Truth {
  readonly sent: readonly Sent[];
  readonly placeOf: (frame: Sent, receivedAt: number | undefined) => number;
  /** Whether nothing could know that a frame was missing when the window with it closed. */
  readonly isExcused?: (at: number, windowEnd: number) => boolean;
}

interface Place {
  readonly n: number;
  readonly at: number;
  readonly isLost: boolean;
}

/** Records what a reader of a feed receives, and compares it with what the service has sent. */
export class Reader {
  readonly name: string;
  readonly gaps: SeenGap[] = [];
  readonly windows: WindowFacts[] = [];
  /** The time of each frame, by its number. */
  readonly received = new Map<number, number>();
  readonly #options: ReaderOptions;
  readonly #feed = new FeedFollower();
  readonly #subscription: Subscription;
  #isFirst = true;
  #hasJoined = false;
  /** The latest time, and that of items and gaps. */
  #latest = -Infinity;
  #newest = -Infinity;
  #watermark = -Infinity;
  #openedAt = -Infinity;
  #last = 0;
  /** From when it misses nothing outside of gaps: as the events prove, and at the latest. */
  #provenFrom: number | undefined;
  #settledFrom = Infinity;

  constructor(name: string, feed$: Observable<RelayedEvent>, options: ReaderOptions) {
    this.name = name;
    this.#options = options;
    const { time, windows, usesOperator, isMapped } = options;
    const items$ = new Subject<Item>();
    for (const windows$ of windows(items$)) windows$.subscribe((window) => this.windows.push(window));
    const isGap = filter((item: Item): item is Gap => 'type' in item && item.type === 'gap');
    (usesOperator ? items$.pipe(gaps()) : items$.pipe(isGap)).subscribe((gap) => {
      if (gap.to > time.clock.now()) this.#wrong(`the gap up to ${gap.to} is emitted at ${time.clock.now()}`);
      this.gaps.push({ ...gap, emittedAt: time.clock.now(), openedAt: this.#openedAt });
    });
    this.#subscription = feed$.subscribe({
      next: (event) => {
        this.#record(event);
        items$.next(isMapped && event.type === 'frame' ? { payload: event.text() } : event);
      },
      complete: () => items$.complete(),
      error: (error: unknown) => this.#wrong(`the feed has stopped: ${String(error)}`),
    });
  }

  get hasLeft(): boolean {
    return this.#subscription.closed;
  }

  /** The number of the last frame. */
  get last(): number {
    return this.#last;
  }

  leave(): void {
    this.#subscription.unsubscribe();
  }

  /** Checks what it has received at the end of a run. */
  check({ sent, placeOf, isExcused = () => false }: Truth): void {
    const places = sent
      .map((frame): Place => {
        const receivedAt = this.received.get(frame.n);
        return { n: frame.n, at: placeOf(frame, receivedAt), isLost: receivedAt === undefined };
      })
      .sort((one, other) => one.at - other.at);
    const from = Math.min(this.#provenFrom ?? Infinity, this.#settledFrom);
    // Who leaves during an outage gets no gap.
    const outage = this.hasLeft ? this.#feed.state.outage : undefined;
    const gaps = outage ? [...this.gaps, { from: outage.from, to: Infinity }] : this.gaps;
    for (const { n, at, isLost } of places)
      if (isLost && n < this.#last && at > from && !gaps.some((gap) => gap.from <= at && at <= gap.to))
        this.#wrong(`frame ${n} of ${at} is missing, and in no gap`, 'lost frames outside gaps');
    for (const window of this.windows) this.#checkWindow(window, places, isExcused);
  }

  #wrong(text: string, kind?: string): void {
    this.#options.timeline.wrong(`${this.name}: ${text}`, kind);
  }

  #record(event: Received): void {
    const { time, timeline, settlesMs = Infinity } = this.#options;
    const at = timeOf(event) as number;
    this.#checkTime(event, at);
    if (event.type === 'opened') {
      this.#openedAt = at;
      this.#settledFrom = Math.min(this.#settledFrom, at + settlesMs);
    }
    const { completeFrom } = this.#feed.next(event);
    this.#provenFrom ??= completeFrom;
    if (event.type === 'frame') return this.#receive(Number(event.text()), at);
    if (event.type === 'value') return this.#receive(Number((event.value as { readonly n: string }).n), at);
    if (event.type === 'watermark') return;
    const times = event.type === 'gap' ? `${event.from - time.begin}..${event.to - time.begin}` : at - time.begin;
    const failure = 'failure' in event ? `, ${event.failure.code} ${event.failure.endedAt - time.begin}` : '';
    timeline.note(`${this.name}: ${event.type} (${times}${failure})`);
  }

  #checkTime({ type, ...event }: Received, at: number): void {
    const isItem = type === 'frame' || type === 'value';
    // A page that got nothing from its first relay may then receive frames from before (`sinceMs`).
    const isOwn = type === 'reconnecting' || ('failure' in event && ownFailures.includes(event.failure.code));
    this.#hasJoined ||= isItem || (!isOwn && this.#isFirst);
    this.#isFirst = false;
    // A watermark only promises that nothing earlier follows, so it may precede the last event. The gap of an outage is
    // known after its end: watermarks, and what happens to a page, go on while a connection settles.
    const before = type === 'watermark' ? this.#watermark : type === 'gap' ? this.#newest : this.#latest;
    if (at < before) this.#wrong(`${type} of ${at} follows ${before}`, 'times that go back');
    if (type === 'watermark') this.#watermark = at;
    else if (isItem || type === 'gap') this.#newest = Math.max(this.#newest, at);
    if (this.#hasJoined) this.#latest = Math.max(this.#latest, at);
  }

  #receive(n: number, at: number): void {
    if (n <= this.#last) this.#wrong(`frame ${n} follows ${this.#last}`, 'frames received twice');
    this.#last = n;
    this.received.set(n, at);
  }

  #checkWindow({ start, end, count, complete }: WindowFacts, places: readonly Place[], isExcused: IsExcused): void {
    if (!complete) return;
    let expected = 0;
    const missing: Place[] = [];
    for (let index = firstFrom(places, start); index < places.length && places[index]!.at < end; index += 1) {
      const place = places[index]!;
      if (place.isLost) missing.push(place);
      else expected += 1;
    }
    if (missing.length === 0 ? count === expected : missing.every(({ at }) => isExcused(at, end))) return;
    const without = missing.map(({ n, at }) => `${n} of ${at}`).join();
    this.#wrong(
      `the window of ${start} to ${end} says complete, with ${count} of ${expected} frames, without ${without}`,
      'complete windows that are wrong',
    );
  }
}

type IsExcused = NonNullable<Truth['isExcused']>;

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

/** Counts what readers have received. */
export const countsOf = (readers: readonly Reader[]) => {
  const sum = (count: (reader: Reader) => number): number => readers.reduce((total, each) => total + count(each), 0);
  return {
    received: sum(({ received }) => received.size),
    gaps: sum(({ gaps: all }) => all.length),
    windows: sum(({ windows }) => windows.length),
    completeWindows: sum(({ windows }) => windows.filter(({ complete }) => complete).length),
  };
};
