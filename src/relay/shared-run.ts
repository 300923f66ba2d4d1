import { AsyncSubject, auditTime, catchError, concat, defer, endWith, filter, finalize, ignoreElements } from 'rxjs';
import { map, merge, NEVER, type Observable, ReplaySubject, share, startWith, takeUntil, tap, timer } from 'rxjs';
import type { PositionedFeed } from '../protocol/feed-position.js';
import { clampMs } from '../protocol/rules.js';
import type { RelaySettings } from './relay-options.js';
import { RelayRun } from './relay-run.js';
import type { TopicEvent } from './topic-output.js';

/** The run of a source, shared by all clients. */
export interface SharedRun {
  /**
   * The run for a client that joins now. It stays the same for this client. Emits the run at once, and again each time after it has received
   * events.
   */
  readonly run$: Observable<RelayRun>;
  /** The runs that store events: the run that clients join, and the runs before a `restart` that clients still read. */
  readonly runs: ReadonlySet<RelayRun>;
  /** Makes the next client begin a new run, if the current one has ended. Current clients read their run to its end. */
  restart(): void;
  /** Ends the subscription of the source. Current clients can still read the stored events. */
  close(): void;
}

/**
 * Shares the run of a source: subscribes with the first client, and unsubscribes `lingerMs` after the last one has left.
 *
 * @param onStop - called with the error of the source, after the run has ended
 * @param staysEnded - whether an ended run remains until `restart`, even without clients; otherwise new clients begin a new run `lingerMs` after
 *   the end
 * @param cluster - the cluster that emits the events of the source
 */
export const shareRun = (
  source: Observable<TopicEvent>,
  settings: RelaySettings,
  onStop: (error: unknown) => void,
  { staysEnded = true, cluster }: { readonly staysEnded?: boolean; readonly cluster?: PositionedFeed | undefined } = {},
): SharedRun => {
  const { lingerMs, scheduler } = settings;
  const closed = new AsyncSubject<void>();
  const runs = new Set<RelayRun>();
  let current: CurrentRun | undefined;

  const begin = (): CurrentRun => {
    const run = new RelayRun(settings, () => scheduler.now(), cluster);
    const detached = new AsyncSubject<void>();
    const detach = () => {
      if (current === begun) current = undefined;
      detached.next();
      detached.complete();
    };
    const lingered$ = timer(clampMs(lingerMs), scheduler);
    // An ended source is not subscribed to again: each page that reloads would take the connection from another client of the account.
    const isOver = () => staysEnded && run.end !== undefined;
    const expired$ = staysEnded ? NEVER : lingered$.pipe(tap(detach), ignoreElements());
    const run$ = defer(() => {
      runs.add(run);
      return running$(source, run, settings, closed, onStop, expired$);
    }).pipe(
      finalize(() => {
        runs.delete(run);
        detach();
      }),
      share({
        connector: () => new ReplaySubject(1),
        resetOnRefCountZero: () => merge(closed, detached, isOver() ? NEVER : lingered$.pipe(filter(() => !isOver()))),
      }),
    );
    const begun: CurrentRun = { run, run$, detach };
    return begun;
  };

  return {
    get run$() {
      current ??= begin();
      return current.run$;
    },
    runs,
    restart: () => {
      if (current?.run.end !== undefined) current.detach();
    },
    close: () => {
      closed.next();
      closed.complete();
    },
  };
};

/** The run that new clients join. */
interface CurrentRun {
  readonly run: RelayRun;
  readonly run$: Observable<RelayRun>;
  /** Makes new clients join another run. This run is released with its last client. */
  readonly detach: () => void;
}

/** Adds the events of the source to the run. Emits the run at once, and at most every `batchMs` while it receives events. */
const running$ = (
  source: Observable<TopicEvent>,
  run: RelayRun,
  { batchMs, scheduler }: RelaySettings,
  closed$: Observable<void>,
  onStop: (error: unknown) => void,
  expired$: Observable<never>,
): Observable<RelayRun> =>
  concat(
    source.pipe(
      map((event) => run.append(event)),
      endWith(undefined),
      tap({ complete: () => run.complete() }),
      catchError((error: unknown) => {
        run.stop(error);
        onStop(error);
        return [undefined];
      }),
      auditTime(clampMs(batchMs), scheduler),
      takeUntil(closed$),
    ),
    expired$,
    NEVER,
  ).pipe(
    map(() => run),
    startWith(run),
  );
