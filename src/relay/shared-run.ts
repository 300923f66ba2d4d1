import { AsyncSubject, auditTime, catchError, concat, defer, endWith, filter, finalize, map, merge, NEVER } from 'rxjs';
import { type Observable, ReplaySubject, share, startWith, Subject, takeUntil, tap, timer } from 'rxjs';
import { clampMs } from '../protocol/rules.js';
import type { RelaySettings } from './relay-options.js';
import { RelayRun } from './relay-run.js';
import type { TopicEvent } from './topic.js';

/** The run of a source that all clients share. */
export interface SharedRun {
  /** Emits the run at once, and again when there is something new in it. Completes by `restart`. */
  readonly run$: Observable<RelayRun>;
  /** The run that goes on, or has ended; `undefined` when no client has come. */
  readonly current: RelayRun | undefined;
  /** Lets the next client begin another run, if this one has ended. */
  restart(): void;
  /** Ends the subscription of the source. Clients that are here can still read what is held. */
  close(): void;
}

/**
 * Shares the run of a source: subscribes with the first client, and stays subscribed for `lingerMs` after the last one left.
 *
 * @param onStop - called with the error of the source
 * @param kept - whether a run that has ended is kept until `restart`, also when no client comes back
 */
export const shareRun = (
  source: Observable<TopicEvent>,
  settings: RelaySettings,
  onStop: (error: unknown) => void,
  { isKept }: { readonly isKept: boolean } = { isKept: true },
): SharedRun => {
  const { lingerMs, scheduler } = settings;
  const closed = new AsyncSubject<void>();
  const restarted = new Subject<void>();
  let run: RelayRun | undefined;

  const hasEnded = () => run?.end !== undefined;
  // A source that has ended is not subscribed to again: a page that is loaded again must not evict another client of the account.
  const isOver = () => isKept && hasEnded();
  const lingered$ = defer(() => (isOver() ? NEVER : timer(clampMs(lingerMs), scheduler))).pipe(filter(() => !isOver()));

  return {
    run$: defer(() => {
      run = new RelayRun(settings, () => scheduler.now());
      return running$(source, run, settings, closed, onStop);
    }).pipe(
      finalize(() => (run = undefined)),
      takeUntil(restarted),
      share({ connector: () => new ReplaySubject(1), resetOnRefCountZero: () => merge(closed, lingered$) }),
    ),
    get current() {
      return run;
    },
    restart: () => {
      if (hasEnded()) restarted.next();
    },
    close: () => {
      closed.next();
      closed.complete();
    },
  };
};

/** Fills the run with what the source emits. Emits it at once, and again at most every `batchMs` when there is something new in it. */
const running$ = (
  source: Observable<TopicEvent>,
  run: RelayRun,
  { batchMs, scheduler }: RelaySettings,
  closed$: Observable<void>,
  onStop: (error: unknown) => void,
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
    NEVER,
  ).pipe(
    map(() => run),
    startWith(run),
  );
