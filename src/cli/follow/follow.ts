import {
  catchError,
  connect,
  defer,
  filter,
  interval,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  type OperatorFunction,
  pipe,
  scan,
  skip,
  take,
  takeWhile,
  timer,
} from 'rxjs';
import type { Feed, FeedEvent, OwnerChanged } from '../../index.js';
import { type CliEvent, type Ended, ended, type Ending, type ShownEvent } from './event.js';
import { emptyTally, type Tally, tallied } from './tally.js';

/** The limits of a command. */
export interface Bounds {
  /** The number of frames. */
  readonly count?: number | undefined;
  /** The duration, in ms. */
  readonly durationMs?: number | undefined;
}

/** An event, and the totals including it. */
export interface Step {
  readonly event: CliEvent;
  readonly tally: Tally;
}

/** The time between ticks, in ms. */
export const tickMs = 500;

/**
 * Follows a feed to its end, and updates the tally.
 *
 * Emits a step for each event, frame and tick. The last step is `ended`, then it completes. Never errors: a failure that stops the feed is an
 * ending.
 *
 * @param endings$ - other causes of the end: a signal, a broken output
 */
export const follow = (
  feed: Feed,
  bounds: Bounds,
  endings$: Observable<Ending>,
): OperatorFunction<FeedEvent | OwnerChanged, Step> =>
  pipe(
    filter(isShown),
    endingAfter(bounds.count),
    catchError((error: unknown) => of(ended({ kind: 'failed', error }))),
    (events$) =>
      defer(() =>
        merge(
          endings$.pipe(map(ended)),
          timeUp$(bounds.durationMs),
          interval(tickMs).pipe(map(() => ({ type: 'tick' as const, at: Date.now() }))),
          events$,
        ).pipe(
          takeWhile(({ type }) => type !== 'ended', true),
          scan(step, { tally: emptyTally(feed, Date.now()) } as Step),
        ),
      ),
  );

const step = ({ tally }: Step, event: CliEvent): Step => ({ event, tally: tallied(tally, event) });

const timeUp$ = (durationMs: number | undefined): Observable<Ended> =>
  durationMs === undefined ? NEVER : timer(durationMs).pipe(map(() => ended({ kind: 'time-up' })));

// `stopped` is reported as the ending, and a watermark is only for windows.
const isShown = (event: FeedEvent | OwnerChanged): event is ShownEvent =>
  event.type !== 'stopped' && event.type !== 'watermark';

const endingAfter = (count: number | undefined): OperatorFunction<ShownEvent, ShownEvent | Ended> => {
  if (count === undefined) return pipe();
  return connect((events$) =>
    merge(
      events$,
      events$.pipe(
        filter(({ type }) => type === 'frame'),
        skip(count - 1),
        take(1),
        map(() => ended({ kind: 'count-reached' })),
      ),
    ),
  );
};
