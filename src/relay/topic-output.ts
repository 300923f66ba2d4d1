import { isFrame, isLifecycle, timeOf } from '../operators/items/item.js';
import type { WindowFacts } from '../operators/window/feed-window.js';
import { type LoggedValue, notBefore } from '../protocol/snapshot.js';
import type { Disconnected, Gap, LifecycleEvent, RelayedEvent, Stopped, Watermark } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { Frame } from '../protocol/frame.js';
import { isRelayedValue } from '../protocol/relayed-value.js';
import { publicJson } from './public-json.js';

/** An event that a topic writes to its log. */
export type TopicEvent = RelayedEvent | LoggedValue;

/** Converts the outputs of an operator to the events of a topic, with times that never decrease. */
export class TopicOutput {
  readonly #clock: () => number;
  /** The lifecycle events and values that the operator received. Compared by identity, because a parsed payload can have the same shape. */
  readonly #inputs = new WeakSet();
  #latestAt: number | undefined;
  /** The time of the last input. */
  #inputAt: number | undefined;
  /** The latest time of the emitted events. */
  #emittedAt = -Infinity;
  #watermark = -Infinity;

  /** @param clock - returns the time in epoch ms, for an operator that ends before its first input */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** The latest time of the inputs, in epoch ms. */
  get latestAt(): number {
    return this.#latestAt ?? this.#clock();
  }

  /** Records an input of the operator. Returns whether it is the first one. */
  input(event: RelayedEvent): boolean {
    const isFirst = this.#latestAt === undefined;
    this.#inputAt = timeOf(event) ?? this.#inputAt ?? this.latestAt;
    this.#latestAt = Math.max(this.#latestAt ?? -Infinity, this.#inputAt);
    if (!isFrame(event)) this.#inputs.add(event);
    return isFirst;
  }

  /** Returns the events for a lifecycle event of the feed. */
  ofLifecycle(event: Exclude<LifecycleEvent, Watermark>): readonly TopicEvent[] {
    return this.#emit(notBefore(event, this.#emittedAt) as typeof event);
  }

  /** Returns the events for an output of the operator. There are none for a lifecycle event of the feed, because {@link ofLifecycle} emits it. */
  ofOutput(output: unknown): readonly TopicEvent[] {
    if (isFrame(output)) return this.#emit(frameNotBefore(output, this.#emittedAt));
    if (this.#inputs.has(output as object)) {
      if (isRelayedValue(output)) return this.#value(output.at, output.value);
      if (isLifecycle(output)) return output.type === 'watermark' ? this.#watermarkAt(output.at) : [];
    }
    return isFailureEvent(output) ? this.ofLifecycle(output) : this.#value(timeOfValue(output), output);
  }

  #value(valueAt: number | undefined, value: unknown): readonly TopicEvent[] {
    // If the feed ends inside a window, the end of the window is in the future.
    const time = Math.min(valueAt ?? this.#inputAt ?? Infinity, this.latestAt);
    const at = Math.max(time, this.#emittedAt, this.#watermark);
    return this.#emit({ type: 'value', at, json: publicJson(value) });
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

// A parsed payload of the same shape has no `TradeFeedError`.
const isFailureEvent = (output: unknown): output is Disconnected | Stopped | Gap =>
  isLifecycle(output) && 'failure' in output && output.failure instanceof TradeFeedError;

const frameNotBefore = (frame: Frame, at: number): Frame =>
  frame.receivedAt >= at ? frame : new Frame(frame.feed, frame.data, frame.isBinary, at, frame.connection);

// The time of a frame, or the end of a window. A payload may look like a lifecycle event, but its time is not a time of the feed.
const timeOfValue = (value: unknown): number | undefined => {
  if (isLifecycle(value)) return undefined;
  const time = isWindow(value) ? value.end : timeOf(value);
  return Number.isFinite(time) ? time : undefined;
};

const isWindow = (value: unknown): value is WindowFacts => {
  const { type, start, end, gaps } = Object(value) as Partial<Record<keyof WindowFacts, unknown>>;
  return type === 'window' && typeof start === 'number' && typeof end === 'number' && Array.isArray(gaps);
};
