import { AsyncSubject, auditTime, catchError, concat, defer, endWith, filter, finalize, ignoreElements } from 'rxjs';
import { map, merge, NEVER, type Observable, ReplaySubject, share, startWith, takeUntil, tap, timer } from 'rxjs';
import { clampMs } from '../protocol/rules.js';
import type { RelaySettings } from './relay-options.js';
import { RelayRun } from './relay-run.js';
import type { TopicEvent } from './topic.js';

/** The run of a source that all clients share. */
export interface SharedRun {
  /**
   * The run for a client that joins now: it stays the same run for this client. Emits the run at once, and again when there is something
   * new in it.
   */
  readonly run$: Observable<RelayRun>;
  /** The runs that are held: the one that clients join, and those before a `restart` that clients still read. */
  readonly held: ReadonlySet<RelayRun>;
  /** Lets the next client begin another run, if this one has ended. Clients that are here read it to its end. */
  restart(): void;
  /** Ends the subscription of the source. Clients that are here can still read what is held. */
  close(): void;
}

/**
 * Shares the run of a source: subscribes with the first client, and stays subscribed for `lingerMs` after the last one left.
 *
 * @param onStop - called with the error of the source, after the run has ended
 * @param isKept - whether a run that has ended is kept until `restart`, also when no client comes back; else new clients begin another run
 *   `lingerMs` after its end
 */
export const shareRun = (
  source: Observable<TopicEvent>,
  settings: RelaySettings,
  onStop: (error: unknown) => void,
  { isKept }: { readonly isKept: boolean } = { isKept: true },
): SharedRun => {
  const { lingerMs, scheduler } = settings;
  const closed = new AsyncSubject<void>();
  const held = new Set<RelayRun>();
  let joined: JoinedRun | undefined;

  const begin = (): JoinedRun => {
    const run = new RelayRun(settings, () => scheduler.now());
    const detached = new AsyncSubject<void>();
    const detach = () => {
      if (joined === begun) joined = undefined;
      detached.next();
      detached.complete();
    };
    const lingered$ = timer(clampMs(lingerMs), scheduler);
    // A source that has ended is not subscribed to again: a page that is loaded again must not evict another client of the account.
    const isOver = () => isKept && run.end !== undefined;
    const expired$ = isKept ? NEVER : lingered$.pipe(tap(detach), ignoreElements());
    const run$ = defer(() => {
      held.add(run);
      return running$(source, run, settings, closed, onStop, expired$);
    }).pipe(
      finalize(() => {
        held.delete(run);
        detach();
      }),
      share({
        connector: () => new ReplaySubject(1),
        resetOnRefCountZero: () => merge(closed, detached, isOver() ? NEVER : lingered$.pipe(filter(() => !isOver()))),
      }),
    );
    const begun: JoinedRun = { run, run$, detach };
    return begun;
  };

  return {
    get run$() {
      joined ??= begin();
      return joined.run$;
    },
    held,
    restart: () => {
      if (joined?.run.end !== undefined) joined.detach();
    },
    close: () => {
      closed.next();
      closed.complete();
    },
  };
};

/** The run that a new client gets. */
interface JoinedRun {
  readonly run: RelayRun;
  readonly run$: Observable<RelayRun>;
  /** Gives new clients another run; this one is released with its last client. */
  readonly detach: () => void;
}

/** Fills the run with what the source emits. Emits it at once, and again at most every `batchMs` when there is something new in it. */
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
