import { concat, concatMap, defer, distinctUntilChanged, EMPTY, filter, first, fromEventPattern, map } from 'rxjs';
import { merge, NEVER, type Observable, scan, type SchedulerLike, startWith, switchAll, switchMap } from 'rxjs';
import { takeUntil, takeWhile, tap, timer } from 'rxjs';
import { type EndReason, RelayClient } from './relay-client.js';
import type { RelayMessage } from './relay-message.js';
import type { RelayReceiver, RelayResponse } from './relay-receiver.js';
import type { RelayRun } from './relay-run.js';

/** The callbacks for the changes of one client. */
export interface ClientWatcher {
  joined(client: RelayClient): void;
  behind(client: RelayClient): void;
  stuck(): void;
}

/** The timers for heartbeats and watermarks, shared by all clients. */
export interface RelayTicks {
  readonly heartbeats$: Observable<unknown>;
  readonly watermarks$: Observable<unknown>;
}

/** After this number of heartbeats without a read, a client is stuck. */
const maxSilentBeats = 4;

/** How long a client may read the remaining events after the relay ends its stream, in ms: between two reads, and in total. */
const lastRead = { maxPauseMs: 500, maxMs: 5_000 };

/**
 * Streams the messages of one client: after new events in the run, after its response has drained, and at each watermark and heartbeat.
 *
 * Completes after the last message of the run, when the client is stuck, and when the relay ends the stream. In the last case the client first
 * receives the events that are due, if it reads, and `connect-again`.
 *
 * @param ended$ - emits the reason when the relay ends the stream
 */
export const clientMessages$ = (
  run$: Observable<RelayRun>,
  { heartbeats$, watermarks$ }: RelayTicks,
  { lastEventId, response }: RelayReceiver,
  ended$: Observable<EndReason>,
  scheduler: SchedulerLike,
  watcher: ClientWatcher,
): Observable<RelayMessage> => {
  const isFull = () => response?.writableNeedDrain === true;
  const drained$ = response === undefined ? NEVER : drains$(response);
  const stuck$ = drained$.pipe(
    startWith(undefined),
    // The response of a slow client may be full at each heartbeat and drain in between, so each `drain` restarts the count.
    switchMap(() => heartbeats$.pipe(scan((beats) => (isFull() ? beats + 1 : 0), 0))),
    filter((beats) => beats === maxSilentBeats),
    tap(() => {
      watcher.stuck();
      response?.destroy();
    }),
  );
  const paused$ = drained$.pipe(
    startWith(undefined),
    switchMap(() => timer(lastRead.maxPauseMs, scheduler)),
  );
  const unsent$ = (client: RelayClient) =>
    merge([undefined], drained$).pipe(
      // If the response is not full after these messages, it has taken all of them.
      concatMap(() =>
        concat(
          client.messages(isFull),
          defer(() => (isFull() ? EMPTY : [undefined])),
        ),
      ),
      takeWhile((message) => message !== undefined),
      takeUntil(merge(paused$, timer(lastRead.maxMs, scheduler))),
    );
  return run$.pipe(
    first(),
    switchMap((run) => {
      const client: RelayClient = new RelayClient(
        run,
        lastEventId,
        () => scheduler.now(),
        () => watcher.behind(client),
      );
      watcher.joined(client);
      const stream$ = merge(
        merge(run$, drained$).pipe(concatMap(() => client.messages(isFull))),
        heartbeats$.pipe(
          filter(() => !isFull()),
          map(() => client.heartbeat()),
        ),
        watermarks$.pipe(
          filter(() => !isFull()),
          concatMap(() => client.watermark()),
        ),
      );
      return ended$.pipe(
        // A relay may close while a client still reads after its session ended. The client must then receive `relay-closing`.
        scan((first, reason) => (first === 'closing' ? first : reason)),
        distinctUntilChanged(),
        map((reason) =>
          concat(
            unsent$(client),
            defer(() => [client.connectAgain(reason)]),
          ),
        ),
        startWith(stream$),
        switchAll(),
      );
    }),
    takeWhile(isNotLast, true),
    takeUntil(stuck$),
  );
};

const drains$ = (response: RelayResponse): Observable<void> =>
  fromEventPattern(
    (listener) => response.on('drain', listener),
    (listener) => response.off('drain', listener),
  );

const isNotLast = ({ type }: RelayMessage): boolean => type !== 'connect-again' && type !== 'complete';
