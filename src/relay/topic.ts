import { catchError, connect, defer, endWith, filter, ignoreElements, interval, merge, mergeMap } from 'rxjs';
import {
  type Observable,
  type OperatorFunction,
  type SchedulerLike,
  takeUntil,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { EventTime } from '../operators/stream/event-time.js';
import { isFrame, isLifecycle, isWatermark, timeOf } from '../operators/stream/item.js';
import type { RelayedEvent, Stopped } from '../protocol/event.js';
import { Frame } from '../protocol/frame.js';
import { errorBy } from '../protocol/meaning.js';
import { relayTold } from '../protocol/relay-told.js';
import { notBefore } from './catch-up.js';
import { type LoggedValue, nextPresent, openedIn, type Present } from './present.js';
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
 * Emits what the operator emits: frames and events unchanged, anything else as a value. Emits each lifecycle event of the feed itself, after
 * what the operator has emitted for it. Times never go back: what an operator held back gets the time of what was emitted before it.
 * A watermark precedes each event, so that the clock does not count: the operator may hold back what is older.
 *
 * Completes when the operator does. Errors with the error of the feed, or with a {@link TopicError}, after `stopped`.
 */
export const topicEvents$ = (
  source: Observable<RelayedEvent>,
  topic: RelayTopic,
  scheduler: SchedulerLike,
): Observable<TopicEvent> =>
  defer(() => {
    const times = new TopicTimes();
    const ofSource = new WeakSet<RelayedEvent>();
    let failed: { readonly error: unknown } | undefined;
    return source.pipe(
      tap({ error: (error: unknown) => (failed = { error }) }),
      withOpening(),
      withWatermarks(scheduler),
      tap((event) => {
        times.heard(event);
        if (isLifecycle(event) && event.type !== 'watermark') ofSource.add(event);
      }),
      connect((events$) =>
        merge(
          // Subscribed first: what it emits for an event goes before the event.
          events$.pipe(
            topic,
            filter((output) => !ofSource.has(output as RelayedEvent)),
            mergeMap((output) => times.stamped(output)),
            endWith(over),
          ),
          events$.pipe(
            filter((event) => isLifecycle(event) && !isWatermark(event)),
            mergeMap((event) => times.stamped(event)),
          ),
        ),
      ),
      takeWhile((event) => event !== over),
      catchError((error: unknown) =>
        failed === undefined
          ? merge(
              times.stamped(stoppedAt(times.heardAt)),
              throwError(() => new TopicError(error)),
            )
          : throwError(() => failed?.error),
      ),
    );
  });

const over = Symbol('over');

const stoppedAt = (at: number): Stopped => {
  const failure = errorBy(relayTold.sourceFailed, { stage: 'stream', endedAt: at });
  return { type: 'stopped', at, failure };
};

/** How often an operator gets a watermark of a source that sends none, in ms. */
const watermarkMs = 100;

// For clients, a source without events around its frames is open from the first frame on.
const withOpening = (): OperatorFunction<RelayedEvent, RelayedEvent> => (source) =>
  defer(() => {
    let present: Present = [];
    return source.pipe(
      mergeMap((event) => {
        if (event.type === 'stopped') return [event];
        const before = present;
        present = nextPresent(before, event);
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

type Emitted = Exclude<TopicEvent, { readonly type: 'watermark' }>;

/** The times of a topic, which never go back. */
class TopicTimes {
  /** The latest time of the events that the operator got, in epoch ms. */
  heardAt = -Infinity;
  /** The time of the event that it got last. */
  #lastAt = 0;
  /** The time of the last event that was emitted. */
  #emittedAt = -Infinity;
  #watermark = -Infinity;

  heard(event: RelayedEvent): void {
    this.#lastAt = timeOf(event) ?? this.#lastAt;
    this.heardAt = Math.max(this.heardAt, this.#lastAt);
  }

  /** Gives what is emitted for an output of the operator. */
  stamped(output: unknown): readonly TopicEvent[] {
    if (isLifecycle(output)) {
      if (output.type !== 'watermark') return this.#emit(notBefore(output, this.#emittedAt) as Emitted);
      this.#watermark = Math.max(this.#watermark, output.at);
      return [{ type: 'watermark', at: this.#watermark }];
    }
    if (isFrame(output)) return this.#emit(frameNotBefore(output, this.#emittedAt));
    // A window that the end of the feed has cut ends later than anything that has happened.
    const own = Math.min(valueTime(output) ?? this.#lastAt, this.heardAt);
    const at = Math.max(own, this.#emittedAt, this.#watermark);
    return this.#emit({ type: 'value', at, json: valueJson(output) });
  }

  #emit(event: Emitted): readonly TopicEvent[] {
    const at = event.type === 'value' ? event.at : (timeOf(event) ?? this.#emittedAt);
    this.#emittedAt = Math.max(this.#emittedAt, at);
    this.#watermark = Math.max(this.#watermark, this.#emittedAt);
    return [{ type: 'watermark', at: this.#watermark }, event];
  }
}

const frameNotBefore = (frame: Frame, at: number): Frame =>
  frame.receivedAt >= at ? frame : new Frame(frame.feed, frame.data, frame.isBinary, at, frame.connection);
