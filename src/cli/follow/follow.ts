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
import type { Feed, FeedEvent } from '../../index.js';
import { type Ended, ended, type Ending, type Happening, type ShownEvent } from './happening.js';
import { emptyTally, type Tally, tallied } from './tally.js';

/** When to stop by oneself. */
export interface Bounds {
  /** After so many frames. */
  readonly count?: number | undefined;
  /** After so many ms. */
  readonly durationMs?: number | undefined;
}

/** What a view is told: what happened, and all of it so far. */
export interface Step {
  readonly happening: Happening;
  readonly tally: Tally;
}

/** How often a view is told that time goes by, in ms. */
export const tickMs = 500;

/**
 * Follows a feed to its end, whatever that is, and keeps the tally.
 *
 * Emits a step for each event, frame and tick; the last one is `ended`, then it completes. Never errors: a failure that stops
 * the feed is an ending.
 *
 * @param bounds - when to end by itself
 * @param endings$ - what else ends it: a signal, a closed output
 */
export const follow = (feed: Feed, bounds: Bounds, endings$: Observable<Ending>): OperatorFunction<FeedEvent, Step> =>
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

const step = ({ tally }: Step, happening: Happening): Step => ({ happening, tally: tallied(tally, happening) });

const timeUp$ = (durationMs: number | undefined): Observable<Ended> =>
  durationMs === undefined ? NEVER : timer(durationMs).pipe(map(() => ended({ kind: 'time-up' })));

// A stop is the ending, and a watermark is for windows.
const isShown = (event: FeedEvent): event is ShownEvent => event.type !== 'stopped' && event.type !== 'watermark';

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
