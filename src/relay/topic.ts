import {
  catchError,
  concat,
  connect,
  defer,
  endWith,
  filter,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
} from 'rxjs';
import { type Observable, type OperatorFunction, type SchedulerLike, Subject, takeLast, takeUntil } from 'rxjs';
import { takeWhile, tap, throwError } from 'rxjs';
import { isLifecycle } from '../operators/items/item.js';
import type { LifecycleEvent, RelayedEvent, Stopped, Watermark } from '../protocol/event.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { relayReports } from '../protocol/failures/relay-meanings.js';
import { topicInput } from './topic-input.js';
import { type TopicEvent, TopicOutput } from './topic-output.js';

/**
 * An operator over the events of a feed, such as a filter, a conflation, a decoder or windows. Clients that select it receive its output instead
 * of every frame.
 *
 * The same function is the same topic, so create it once, as a constant.
 */
export type RelayTopic = OperatorFunction<RelayedEvent, unknown>;

/** The operator of a topic failed, or emitted a value that has no JSON. Clients do not receive the text of this error. */
export class TopicError extends Error {
  override readonly name = 'TopicError';

  constructor(cause: unknown) {
    super('The operator of a topic failed.', { cause });
  }
}

/**
 * Runs the operator of a topic over the events of a feed.
 *
 * Emits the outputs of the operator: frames and values of another relay unchanged, a `disconnected`, `stopped` or `gap` with a `TradeFeedError`
 * as an event, anything else as a value. Emits each lifecycle event of the feed after the outputs for it. Outputs before the first event wait
 * for it. Times never decrease: a delayed output gets the time of the event before it. Emits a watermark before each event: the log then takes
 * the time from watermarks, not from the clock, so an operator may delay values.
 *
 * Completes when the operator completes. Errors with the error of the feed, or after `stopped` with a {@link TopicError}.
 */
export const topicEvents$ = (
  source: Observable<RelayedEvent>,
  topic: RelayTopic,
  scheduler: SchedulerLike,
): Observable<TopicEvent> =>
  defer(() => {
    const output = new TopicOutput(() => scheduler.now());
    const begun = new Subject<void>();
    let failed: { readonly error: unknown } | undefined;
    return source.pipe(
      tap({ error: (error: unknown) => (failed = { error }) }),
      topicInput(scheduler),
      tap((event) => {
        if (output.input(event)) begun.next();
      }),
      connect((events$) =>
        merge(
          // Subscribed first, so that the outputs for an event precede the event.
          events$.pipe(
            topic,
            bufferUntil(begun),
            mergeMap((value) => output.ofOutput(value)),
            endWith(ended),
          ),
          events$.pipe(
            filter(
              (event): event is Exclude<LifecycleEvent, Watermark> => isLifecycle(event) && event.type !== 'watermark',
            ),
            mergeMap((event) => output.ofLifecycle(event)),
          ),
        ),
      ),
      takeWhile((event) => event !== ended),
      catchError((error: unknown) =>
        failed === undefined
          ? merge(
              output.ofLifecycle(stoppedAt(output.latestAt)),
              throwError(() => new TopicError(error)),
            )
          : throwError(() => failed?.error),
      ),
    );
  });

const ended = Symbol('ended');

/** The most outputs that wait for the first event. */
const maxBuffered = 1_000;

// An output has the time of an event. The clock is not used, because the source may be late or a recording.
const bufferUntil = (begun$: Observable<void>): MonoTypeOperatorFunction<unknown> =>
  connect((outputs$) => concat(outputs$.pipe(takeUntil(begun$), takeLast(maxBuffered)), outputs$));

const stoppedAt = (at: number): Stopped => {
  const failure = createFailure(relayReports.sourceFailed, { stage: 'stream', endedAt: at });
  return { type: 'stopped', at, failure };
};
