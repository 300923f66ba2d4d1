import { catchError, concat, connect, defer, endWith, filter, ignoreElements, interval, merge, mergeMap } from 'rxjs';
import {
  type MonoTypeOperatorFunction,
  type Observable,
  type OperatorFunction,
  type SchedulerLike,
  Subject,
  takeLast,
  takeUntil,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { EventTime } from '../operators/stream/event-time.js';
import { isFrame, isLifecycle, timeOf } from '../operators/stream/item.js';
import type { Disconnected, Gap, LifecycleEvent, RelayedEvent, Stopped, Watermark } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { Frame } from '../protocol/frame.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { relayReports } from '../protocol/failures/relay-meanings.js';
import { type LoggedValue, nextSnapshot, notBefore, openedIn, type Snapshot } from '../protocol/snapshot.js';
import { isRelayedValue } from '../protocol/relayed-value.js';
import { valueJson, valueTime } from './topic-value.js';

/**
 * What some clients of a relay receive instead of every frame: a filter, a conflation, a decoder, windows.
 *
 * The same function is the same topic. So create it once, as a constant.
 */
export type RelayTopic = OperatorFunction<RelayedEvent, unknown>;

/** What a topic writes to its log. */
export type TopicEvent = RelayedEvent | LoggedValue;

/** The error of the operator of a topic, or of a value that is no JSON: clients are not told what it says. */
export class TopicError extends Error {
  override readonly name = 'TopicError';

  constructor(cause: unknown) {
    super('The operator of a topic has failed.', { cause });
  }
}

/**
 * Runs the operator of a topic over the events of a feed.
 *
 * Emits what the operator emits: frames, and events that it was given, unchanged; a `disconnected`, `stopped` or `gap` that it made with a
 * `TradeFeedError`, too; anything else as a value. Emits each lifecycle event of the feed itself, after what the operator has emitted for it.
 * What the operator emits before the first event waits for it. Times never go back: what an operator held back gets the time of what was
 * emitted before it. A watermark precedes each event, so that the clock does not count: the operator may hold back what is older.
 *
 * Completes when the operator does. Errors with the error of the feed, or with a {@link TopicError}, after `stopped`.
 */
export const topicEvents$ = (
  source: Observable<RelayedEvent>,
  topic: RelayTopic,
  scheduler: SchedulerLike,
): Observable<TopicEvent> =>
  defer(() => {
    const times = new TopicTimes(() => scheduler.now());
    const begun = new Subject<void>();
    let failed: { readonly error: unknown } | undefined;
    return source.pipe(
      tap({ error: (error: unknown) => (failed = { error }) }),
      withOpening(),
      withWatermarks(scheduler),
      tap((event) => {
        if (times.heard(event)) begun.next();
      }),
      connect((events$) =>
        merge(
          // Subscribed first: what it emits for an event goes before the event.
          events$.pipe(
            topic,
            heldUntil(begun),
            mergeMap((output) => times.stamped(output)),
            endWith(over),
          ),
          events$.pipe(
            filter((event): event is Around => isLifecycle(event) && event.type !== 'watermark'),
            mergeMap((event) => times.ofSource(event)),
          ),
        ),
      ),
      takeWhile((event) => event !== over),
      catchError((error: unknown) =>
        failed === undefined
          ? merge(
              times.ofSource(stoppedAt(times.heardAt)),
              throwError(() => new TopicError(error)),
            )
          : throwError(() => failed?.error),
      ),
    );
  });

const over = Symbol('over');

/** The most outputs that wait for the first event. */
const mostHeld = 1_000;

// An output has the time of an event, and the source may be late, or a recording: the clock is no time for it.
const heldUntil = (begun$: Observable<void>): MonoTypeOperatorFunction<unknown> =>
  connect((outputs$) => concat(outputs$.pipe(takeUntil(begun$), takeLast(mostHeld)), outputs$));

const stoppedAt = (at: number): Stopped => {
  const failure = createFailure(relayReports.sourceFailed, { stage: 'stream', endedAt: at });
  return { type: 'stopped', at, failure };
};

/** How often an operator gets a watermark of a source that sends none, in ms. */
const watermarkMs = 100;

// For clients, a source without events around its frames is open from the first frame on.
const withOpening = (): OperatorFunction<RelayedEvent, RelayedEvent> => (source) =>
  defer(() => {
    let present: Snapshot = [];
    return source.pipe(
      mergeMap((event) => {
        if (event.type === 'stopped') return [event];
        const before = present;
        present = nextSnapshot(before, event);
        const opened = event.type === 'frame' && present !== before ? openedIn(present) : undefined;
        return opened === undefined ? [event] : [opened, event];
      }),
    );
  });

// An operator that holds values back holds these, too: so the topic knows how far it is.
const withWatermarks =
  (scheduler: SchedulerLike): OperatorFunction<RelayedEvent, RelayedEvent> =>
  (source) =>
    defer(() => {
      const time = new EventTime(() => scheduler.now());
      let at = -Infinity;
      const next = (): readonly RelayedEvent[] => {
        const now = time.now();
        if (time.isWithoutClock || now <= at) return [];
        at = now;
        return [{ type: 'watermark', at }];
      };
      return source.pipe(
        connect((events$) =>
          merge(
            events$.pipe(
              mergeMap((event) => {
                const isFirst = at === -Infinity;
                time.receive(event, timeOf(event) ?? time.heardAt);
                return isFirst ? [...next(), event] : [event];
              }),
            ),
            interval(watermarkMs, scheduler).pipe(
              filter(() => at !== -Infinity),
              mergeMap(next),
              takeUntil(events$.pipe(ignoreElements(), endWith(undefined))),
            ),
          ),
        ),
      );
    });

type Emitted = Exclude<TopicEvent, Watermark>;
type Around = Exclude<LifecycleEvent, Watermark>;

/** The times of a topic, which never go back. */
class TopicTimes {
  readonly #clock: () => number;
  /** What the operator got besides frames: a payload can look the same. */
  readonly #given = new WeakSet();
  #heardAt: number | undefined;
  /** The time of the event that it got last. */
  #lastAt: number | undefined;
  /** The time of the last event that was emitted. */
  #emittedAt = -Infinity;
  #watermark = -Infinity;

  /** @param clock - gives the time in epoch ms: that of an operator which ends before the first event */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** The latest time of the events that the operator got, in epoch ms. */
  get heardAt(): number {
    return this.#heardAt ?? this.#clock();
  }

  /** Takes note of an event that the operator gets. Returns whether it is the first one. */
  heard(event: RelayedEvent): boolean {
    const isFirst = this.#heardAt === undefined;
    this.#lastAt = timeOf(event) ?? this.#lastAt ?? this.heardAt;
    this.#heardAt = Math.max(this.#heardAt ?? -Infinity, this.#lastAt);
    if (!isFrame(event)) this.#given.add(event);
    return isFirst;
  }

  /** Gives what is emitted for a lifecycle event of the feed. */
  ofSource(event: Around): readonly TopicEvent[] {
    return this.#emit(notBefore(event, this.#emittedAt) as Around);
  }

  /** Gives what is emitted for an output of the operator: nothing for a lifecycle event of the feed, which is emitted anyway. */
  stamped(output: unknown): readonly TopicEvent[] {
    if (isFrame(output)) return this.#emit(frameNotBefore(output, this.#emittedAt));
    if (this.#given.has(output as object)) {
      if (isRelayedValue(output)) return this.#value(output.at, output.value);
      if (isLifecycle(output)) return output.type === 'watermark' ? this.#pass(output.at) : [];
    }
    if (isOfLibrary(output)) return this.ofSource(output);
    return this.#value(valueTime(output), output);
  }

  #value(ownAt: number | undefined, value: unknown): readonly TopicEvent[] {
    // A window that the end of the feed has cut ends later than anything that has happened.
    const own = Math.min(ownAt ?? this.#lastAt ?? Infinity, this.heardAt);
    const at = Math.max(own, this.#emittedAt, this.#watermark);
    return this.#emit({ type: 'value', at, json: valueJson(value) });
  }

  #pass(watermark: number): readonly TopicEvent[] {
    this.#watermark = Math.max(this.#watermark, watermark);
    return [{ type: 'watermark', at: this.#watermark }];
  }

  #emit(event: Emitted): readonly TopicEvent[] {
    const at = event.type === 'value' ? event.at : (timeOf(event) ?? this.#emittedAt);
    this.#emittedAt = Math.max(this.#emittedAt, at);
    this.#watermark = Math.max(this.#watermark, this.#emittedAt);
    return [{ type: 'watermark', at: this.#watermark }, event];
  }
}

// A payload that says the same has no failure of this class.
const isOfLibrary = (output: unknown): output is Disconnected | Stopped | Gap =>
  isLifecycle(output) && 'failure' in output && output.failure instanceof TradeFeedError;

const frameNotBefore = (frame: Frame, at: number): Frame =>
  frame.receivedAt >= at ? frame : new Frame(frame.feed, frame.data, frame.isBinary, at, frame.connection);
