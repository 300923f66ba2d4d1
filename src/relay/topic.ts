import {
  catchError,
  concat,
  connect,
  defer,
  filter,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  type OperatorFunction,
  takeLast,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { isFrame, isLifecycle, timeOf } from '../operators/items/item.js';
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
import { publicJson } from './public-json.js';
import { type SharedSource, untilFirstEnds } from './shared-source.js';

/**
 * Turns the events of a feed into something else: a filter, a conflation, a decoder or windows. Clients that select it
 * receive its output instead of every frame.
 *
 * The same function is the same topic, so create it once, as a constant.
 */
export type RelayTopic = OperatorFunction<RelayedEvent, unknown>;

export type TopicEvent = RelayedEvent | LoggedValue;

/**
 * Emits the events of a topic.
 *
 * Emits the outputs of the operator: frames and values of another relay unchanged, a `disconnected`, `stopped` or `gap`
 * with a `TradeFeedError` as an event, anything else as a value. Emits each lifecycle event of the feed after the
 * outputs for it. Holds outputs back until the first event. Times never decrease: a delayed output gets the time of the
 * event before it. A watermark precedes each event: the log then takes the time from watermarks, not from the clock, so
 * operators may delay values.
 *
 * Completes when the operator completes. Errors with the error of the feed, or after `stopped` with that of the
 * operator, or for a value that JSON can't represent.
 *
 * @param clock - for an operator that ends before its first input
 */
export const topic$ = (topic: RelayTopic, source: SharedSource, clock: () => number): Observable<TopicEvent> =>
  defer(() => {
    const output = new TopicOutput(clock);
    return source.completed$.pipe(
      tap((event) => output.input(event)),
      connect((events$) =>
        untilFirstEnds<TopicEvent>(
          // Subscribed first, so that the outputs for an event precede it.
          events$.pipe(
            topic,
            heldUntil(events$),
            mergeMap((value) => output.ofOutput(value)),
          ),
          events$.pipe(
            filter(isLifecycle),
            mergeMap((event) => (event.type === 'watermark' ? [] : output.ofLifecycle(event))),
          ),
        ),
      ),
      catchError((error: unknown) => {
        if (source.failure !== undefined) throw source.failure.error;
        const at = output.latestAt;
        const failure = createFailure(relayReports.sourceFailed, { stage: 'stream', endedAt: at });
        return concat(
          output.ofLifecycle({ type: 'stopped', at, failure }),
          throwError(() => error),
        );
      }),
    );
  });

/** How many outputs may wait for the first event. */
const maxHeld = 1_000;

// Outputs take their time from an event, not from the clock: the source may lag, or be a log.
const heldUntil = (event$: Observable<unknown>): MonoTypeOperatorFunction<unknown> =>
  connect((outputs$) => concat(outputs$.pipe(takeUntil(event$), takeLast(maxHeld)), outputs$));

/** Turns the outputs of an operator into events, in the order of their times. */
class TopicOutput {
  readonly #clock: () => number;
  // Lifecycle events and values that the operator received, by identity: a parsed payload can have the same shape.
  readonly #inputs = new WeakSet();
  #inputAt: number | undefined;
  #latestAt: number | undefined;
  #emittedAt = -Infinity;
  #watermark = -Infinity;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  get latestAt(): number {
    return this.#latestAt ?? this.#clock();
  }

  input(event: RelayedEvent): void {
    this.#inputAt = timeOf(event) ?? this.latestAt;
    this.#latestAt = Math.max(this.#latestAt ?? -Infinity, this.#inputAt);
    if (!isFrame(event)) this.#inputs.add(event);
  }

  ofLifecycle(event: Exclude<LifecycleEvent, Watermark>): readonly TopicEvent[] {
    const later = notBefore(event, this.#emittedAt) as typeof event;
    return this.#emit(later, timeOf(later) as number);
  }

  /** Returns nothing for the feed's own lifecycle events: {@link ofLifecycle} emits them. */
  ofOutput(output: unknown): readonly TopicEvent[] {
    if (isFrame(output)) {
      const at = Math.max(output.receivedAt, this.#emittedAt);
      return this.#emit(frameAt(output, at, output.connection), at);
    }
    if (this.#inputs.has(output as object)) {
      if (isRelayedValue(output)) return this.#value(output.at, output.value);
      if (isLifecycle(output)) return output.type === 'watermark' ? [this.#mark(output.at)] : [];
    }
    return isFailureEvent(output) ? this.ofLifecycle(output) : this.#value(timeOfValue(output), output);
  }

  #value(valueAt: number | undefined, value: unknown): readonly TopicEvent[] {
    // If the feed ends inside a window, the window's end is in the future.
    const time = Math.min(valueAt ?? this.#inputAt ?? Infinity, this.latestAt);
    // Each emitted event has a watermark before it, so this is the latest time of both.
    const at = Math.max(time, this.#watermark);
    return this.#emit({ type: 'value', at, json: publicJson(value) }, at);
  }

  #emit(event: Exclude<TopicEvent, Watermark>, at: number): readonly TopicEvent[] {
    this.#emittedAt = Math.max(this.#emittedAt, at);
    return [this.#mark(this.#emittedAt), event];
  }

  #mark(at: number): Watermark {
    this.#watermark = Math.max(this.#watermark, at);
    return { type: 'watermark', at: this.#watermark };
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
