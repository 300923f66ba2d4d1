import {
  catchError,
  concat,
  connect,
  defer,
  endWith,
  filter,
  interval,
  merge,
  mergeMap,
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
import { isFrame, isLifecycle, type SourceError, timeOf } from '../operators/items/item.js';
import type { WindowFacts } from '../operators/window/window.js';
import {
  type Disconnected,
  type Gap,
  isRelayedValue,
  type LifecycleEvent,
  type RelayedEvent,
  type Stopped,
  type Watermark,
} from '../protocol/event.js';
import { relayReports } from '../protocol/failures/meanings.js';
import { createFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type LoggedValue, notBefore } from '../protocol/feed-state.js';
import { frameAt } from '../protocol/frame.js';
import { isTime } from '../protocol/type-guards.js';
import { FollowedSource } from './event-log.js';
import { publicJson } from './public-json.js';

/**
 * Turns the events of a feed into something else: a filter, a conflation, a decoder or windows. Clients that select it
 * receive its output instead of every frame.
 *
 * The same function is the same topic, so create it once, as a constant.
 */
export type RelayTopic = OperatorFunction<RelayedEvent, unknown>;

export type TopicEvent = RelayedEvent | LoggedValue;

/**
 * Turns the events of a feed into those of a topic.
 *
 * Emits the outputs of the operator: frames and values of another relay unchanged, a `disconnected`, `stopped` or `gap`
 * with a `TradeFeedError` as an event, anything else as a value. Emits each lifecycle event of the feed after the
 * outputs for it. Holds outputs back until the first event. Times never decrease: a delayed output gets the time of the
 * event before it. A watermark precedes each event: the log then takes the time from watermarks, not from the clock, so
 * operators may delay values.
 *
 * Completes when the operator completes. Errors with the error of the feed, or after `stopped` with that of the
 * operator, or for a value that JSON can't represent.
 */
export const asTopic =
  (topic: RelayTopic, scheduler: SchedulerLike): OperatorFunction<RelayedEvent, TopicEvent> =>
  (source) =>
    defer(() => {
      const output = new TopicOutput(() => scheduler.now());
      const begun = new Subject<void>();
      let failed: SourceError | undefined;
      return source.pipe(
        tap({ error: (error: unknown) => (failed = { error }) }),
        completed(scheduler),
        tap((event) => {
          if (output.input(event)) begun.next();
        }),
        connect((events$) =>
          merge(
            // Subscribed first, so that the outputs for an event precede it.
            events$.pipe(
              topic,
              bufferUntil(begun),
              mergeMap((value) => output.ofOutput(value)),
              endWith(ended),
            ),
            events$.pipe(
              filter(isLifecycle),
              mergeMap((event) => (event.type === 'watermark' ? [] : output.ofLifecycle(event))),
            ),
          ),
        ),
        takeWhile((event) => event !== ended),
        catchError((error: unknown) => {
          if (failed !== undefined) throw failed.error;
          const at = output.latestAt;
          const failure = createFailure(relayReports.sourceFailed, { stage: 'stream', endedAt: at });
          return concat(
            output.ofLifecycle({ type: 'stopped', at, failure }),
            throwError(() => error),
          );
        }),
      );
    });

const ended = Symbol('ended');

/** How many outputs may wait for the first event. */
const maxBuffered = 1_000;

// Outputs take their time from an event, not from the clock: the source may lag, or be a log.
const bufferUntil = (begun$: Observable<void>): MonoTypeOperatorFunction<unknown> =>
  connect((outputs$) => concat(outputs$.pipe(takeUntil(begun$), takeLast(maxBuffered)), outputs$));

/** How often a watermark is added, in ms. */
const watermarkMs = 100;

/**
 * Adds what a source leaves out: `opened` before a frame if there are no lifecycle events, and watermarks. Operators
 * that delay values delay watermarks too, which shows how far they've got.
 */
const completed =
  (scheduler: SchedulerLike): MonoTypeOperatorFunction<RelayedEvent> =>
  (source) =>
    defer(() => {
      const followed = new FollowedSource({ scheduler });
      const { time } = followed;
      let markedAt = -Infinity;
      const watermarks = (): readonly Watermark[] => {
        const at = time.now();
        const { events, hasOpened } = followed.state;
        // Before the first connection the clock proves nothing: the source may be a relay whose first events are older.
        const hasClock = events.length === 0 || hasOpened;
        if (time.isWithoutClock || !hasClock || at <= markedAt) return [];
        markedAt = at;
        return [{ type: 'watermark', at }];
      };
      const receive = (event: RelayedEvent): readonly RelayedEvent[] => {
        const { open } = followed.state;
        followed.receive(event);
        const opened = event.type === 'frame' && open === undefined ? followed.state.events : [];
        return [...(markedAt === -Infinity ? watermarks() : []), ...opened, event];
      };
      return merge(source.pipe(endWith(ended)), interval(watermarkMs, scheduler)).pipe(
        takeWhile((event) => event !== ended),
        mergeMap((event) => {
          if (typeof event === 'object') return receive(event);
          return markedAt === -Infinity ? [] : watermarks();
        }),
      );
    });

class TopicOutput {
  readonly #clock: () => number;
  // Lifecycle events and values that the operator received, by identity: a parsed payload can have the same shape.
  readonly #inputs = new WeakSet();
  #latestAt: number | undefined;
  #inputAt: number | undefined;
  #emittedAt = -Infinity;
  #watermark = -Infinity;

  /** @param clock - for an operator that ends before its first input */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  get latestAt(): number {
    return this.#latestAt ?? this.#clock();
  }

  /** Returns whether this is the operator's first input. */
  input(event: RelayedEvent): boolean {
    const isFirst = this.#latestAt === undefined;
    this.#inputAt = timeOf(event) ?? this.#inputAt ?? this.latestAt;
    this.#latestAt = Math.max(this.#latestAt ?? -Infinity, this.#inputAt);
    if (!isFrame(event)) this.#inputs.add(event);
    return isFirst;
  }

  ofLifecycle(event: Exclude<LifecycleEvent, Watermark>): readonly TopicEvent[] {
    return this.#emit(notBefore(event, this.#emittedAt) as typeof event);
  }

  /** Returns nothing for the feed's own lifecycle events: {@link ofLifecycle} emits them. */
  ofOutput(output: unknown): readonly TopicEvent[] {
    if (isFrame(output))
      return this.#emit(frameAt(output, Math.max(output.receivedAt, this.#emittedAt), output.connection));
    if (this.#inputs.has(output as object)) {
      if (isRelayedValue(output)) return this.#value(output.at, output.value);
      if (isLifecycle(output)) return output.type === 'watermark' ? this.#watermarkAt(output.at) : [];
    }
    return isFailureEvent(output) ? this.ofLifecycle(output) : this.#value(timeOfValue(output), output);
  }

  #value(valueAt: number | undefined, value: unknown): readonly TopicEvent[] {
    // If the feed ends inside a window, the window's end is in the future.
    const time = Math.min(valueAt ?? this.#inputAt ?? Infinity, this.latestAt);
    // Each emitted event has a watermark before it, so this is the latest time of both.
    return this.#emit({ type: 'value', at: Math.max(time, this.#watermark), json: publicJson(value) });
  }

  #watermarkAt(at: number): readonly TopicEvent[] {
    this.#watermark = Math.max(this.#watermark, at);
    return [{ type: 'watermark', at: this.#watermark }];
  }

  #emit(event: Exclude<TopicEvent, Watermark>): readonly TopicEvent[] {
    const at = event.type === 'value' ? event.at : (timeOf(event) ?? this.#emittedAt);
    this.#emittedAt = Math.max(this.#emittedAt, at);
    return [...this.#watermarkAt(this.#emittedAt), event];
  }
}

// A parsed payload can't contain a `TradeFeedError`.
const isFailureEvent = (output: unknown): output is Disconnected | Stopped | Gap =>
  isLifecycle(output) && 'failure' in output && output.failure instanceof TradeFeedError;

// The time of a frame, or the end of a window. A payload may look like a lifecycle event, but its time isn't the
// feed's.
const timeOfValue = (value: unknown): number | undefined => {
  if (isLifecycle(value)) return undefined;
  const time = isWindow(value) ? value.end : timeOf(value);
  return isTime(time) ? time : undefined;
};

const isWindow = (value: unknown): value is WindowFacts => {
  const { type, start, end, gaps } = Object(value) as Partial<Record<keyof WindowFacts, unknown>>;
  return type === 'window' && isTime(start) && isTime(end) && Array.isArray(gaps);
};
