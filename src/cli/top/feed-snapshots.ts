import {
  auditTime,
  catchError,
  combineLatest,
  connect,
  map,
  NEVER,
  type Observable,
  startWith,
  throwError,
} from 'rxjs';
import {
  connectionStatus,
  type ConnectionStatus,
  type FeedEvent,
  feedStats,
  frames,
  TradeFeedError,
} from '../../index.js';
import { whatHappened } from '../view/failure-words.js';
import { duration } from '../view/units.js';
import type { Snapshot } from './snapshot.js';

/** How often the time of the newest frame is updated, in ms. */
const newestEveryMs = 200;

/** Emits the status of a feed. After the feed has stopped, the last status remains. */
export const feedSnapshots$ = (events$: Observable<FeedEvent>): Observable<Snapshot> =>
  events$.pipe(
    connect((shared$) =>
      combineLatest({
        status: shared$.pipe(connectionStatus(), startWith(undefined)),
        stats: shared$.pipe(feedStats(), startWith(undefined)),
        lastFrameAt: shared$.pipe(
          frames(),
          map(({ receivedAt }) => receivedAt),
          auditTime(newestEveryMs),
          startWith(undefined),
        ),
      }),
    ),
    map(({ status, stats, lastFrameAt }) => ({
      state: status?.state ?? 'connecting',
      problem: status && problemOf(status),
      stats,
      lastFrameAt,
    })),
    catchError((error: unknown) => (error instanceof TradeFeedError ? NEVER : throwError(() => error))),
  );

const problemOf = (status: ConnectionStatus): string | undefined => {
  if (status.state !== 'reconnecting' && status.state !== 'stopped') return undefined;
  const cause = status.failure instanceof TradeFeedError ? whatHappened(status.failure) : 'The feed has stopped.';
  if (status.state === 'stopped') return cause;
  const { nextAttemptAt } = status;
  const wait = nextAttemptAt === undefined ? 'now' : `in ${duration(Math.max(0, nextAttemptAt - Date.now()))}`;
  return `${cause} Reconnecting ${wait}.`;
};
