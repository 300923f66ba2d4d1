import { concat, concatMap, defer, distinctUntilChanged, EMPTY, filter, first, fromEventPattern, map } from 'rxjs';
import { merge, NEVER, type Observable, scan, type SchedulerLike, startWith, switchAll, switchMap } from 'rxjs';
import { takeUntil, takeWhile, tap, timer } from 'rxjs';
import { RelayClient, type SentAway } from './relay-client.js';
import type { RelayMessage } from './relay-message.js';
import type { RelayRun } from './relay-run.js';
import type { RelayTopic } from './topic.js';

/** Who receives. */
export interface RelayReceiver {
  /** What it gave back as `Last-Event-ID`: it gets what it missed since, or is told of the gap. */
  readonly lastEventId?: string | undefined;
  /** Where the messages are written to, so that they wait while it is full; without it they are handed out as they come. */
  readonly response?: RelayResponse | undefined;
  /** What it gets instead of every frame: see {@link RelayTopic}. @defaultValue the whole feed */
  readonly select?: RelayTopic | undefined;
  /** The id of its user, for `maxClientsPerUser` and {@link Relay.disconnect}. */
  readonly user?: string | undefined;
}

/** The key of what decides on the topic of a client that was let in. It is not published. */
export const selection = Symbol('selection');

/** The key of what a relay waits for before a client receives. It is not published. */
export const admission = Symbol('admission');

/** A client that has to be let in first. */
export interface AskingReceiver extends RelayReceiver {
  /** Emits the id of its user, or `undefined`, once it may receive; takes the place of `user`. Completes without when it has gone. */
  readonly [admission]?: Observable<string | undefined>;
  /** Called then; takes the place of `select`. */
  readonly [selection]?: () => RelayTopic | undefined;
}

/** What a relay asks of a response: the `ServerResponse` of Node has it all. */
export interface RelayResponse {
  /** Whether it holds as much as it should: then the relay waits for `drain`. */
  readonly writableNeedDrain: boolean;
  /** Tells when it can take more. */
  on(event: 'drain', listener: () => void): unknown;
  /** Ends that. */
  off(event: 'drain', listener: () => void): unknown;
  /** Called when nothing was read for four heartbeats. */
  destroy(): unknown;
}

/** Who is told what a client does. */
export interface ClientWatcher {
  joined(client: RelayClient): void;
  behind(client: RelayClient): void;
  stuck(): void;
}

/** The times at which something is sent to a client for which there is no event. */
export interface RelayTicks {
  readonly heartbeats$: Observable<unknown>;
  readonly watermarks$: Observable<unknown>;
}

/** A client that has read nothing for so many heartbeats has gone without a word. */
const mostSilentBeats = 4;

/** A client that is sent away gets what is held for it while it reads: after so long without, or after so long in all, in ms, it does not. */
const reading = { pauseMs: 500, mostMs: 5_000 };

/**
 * Streams the messages of one client: when there is something new in the run, when its response is free again, and now and then a
 * watermark and a heartbeat.
 *
 * Completes behind the last message of the run, when the client is stuck, and when it is sent away: it gets what was not sent
 * yet, if it reads, and `connect-again`.
 */
export const clientMessages$ = (
  run$: Observable<RelayRun>,
  { heartbeats$, watermarks$ }: RelayTicks,
  { lastEventId, response }: RelayReceiver,
  sentAway$: Observable<SentAway>,
  scheduler: SchedulerLike,
  watcher: ClientWatcher,
): Observable<RelayMessage> => {
  const isFull = () => response?.writableNeedDrain === true;
  const drained$ = response === undefined ? NEVER : drains$(response);
  const stuck$ = drained$.pipe(
    startWith(undefined),
    // Who is slow is full at each of them, too, but drains in between.
    switchMap(() => heartbeats$.pipe(scan((beats) => (isFull() ? beats + 1 : 0), 0))),
    filter((beats) => beats === mostSilentBeats),
    tap(() => {
      watcher.stuck();
      response?.destroy();
    }),
  );
  const paused$ = drained$.pipe(
    startWith(undefined),
    switchMap(() => timer(reading.pauseMs, scheduler)),
  );
  const unsent$ = (client: RelayClient) =>
    merge([undefined], drained$).pipe(
      // A response that is not full after the last message has taken them all.
      concatMap(() =>
        concat(
          client.messages(isFull),
          defer(() => (isFull() ? EMPTY : [undefined])),
        ),
      ),
      takeWhile((message) => message !== undefined),
      takeUntil(merge(paused$, timer(reading.mostMs, scheduler))),
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
      return sentAway$.pipe(
        // A client whose session has ended may still be waited for when the relay is closed: it must not come back here.
        scan((first, why) => (first === 'closing' ? first : why)),
        distinctUntilChanged(),
        map((why) =>
          concat(
            unsent$(client),
            defer(() => [client.connectAgain(why)]),
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
