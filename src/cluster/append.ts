// Appends to a log while this replica owns the connection.
//
// Two things fence off an owner that has lost its generation. The first is the log: a folder has a lock, which even a
// suspended process keeps, and a store takes nothing of a writer that was replaced. The second is this operator: after a process stood
// still, its sockets may hold frames from before its connection was replaced. It drops them, because that time belongs
// to another owner.
import {
  asyncScheduler,
  defer,
  distinctUntilChanged,
  EMPTY,
  finalize,
  interval,
  map,
  merge,
  type Observable,
  retry,
  startWith,
  subscribeOn,
  switchMap,
  throwError,
  timer,
} from 'rxjs';
import type { FeedLog } from '../log/feed-log.js';
import { LogError } from '../log/log-error.js';
import type { AppendOptions } from '../log/options.js';
import { timing } from './election/timing.js';

interface Owned<E> {
  readonly events$: Observable<E>;
  /** The name of the account. */
  readonly account: string;
  /** Returns the generation whose events this replica emits as the owner, or `undefined`. */
  readonly generation: () => number | undefined;
  /** How long this process may stand still before another replica may claim. */
  readonly maxStallMs: number;
}

/** Appends the events that this replica emits as the owner, and forwards them. */
export const appendOwned = <E>(
  { events$, account, generation, maxStallMs }: Owned<E>,
  log: Pick<FeedLog, 'append'>,
  options: AppendOptions | undefined,
): Observable<E> => {
  // Wrong options are refused now, and what the log needs is loaded, not only when this replica owns.
  log.append(options);
  return defer(() => {
    let lookedAt = performance.now();
    let owned: number | undefined;
    const look = (...events: readonly E[]) => {
      const now = performance.now();
      const [stallMs, wasOwned] = [now - lookedAt, owned];
      lookedAt = now;
      owned = generation();
      if (wasOwned !== undefined && stallMs > maxStallMs) throw stoodStill(account, stallMs);
      return { events, generation: owned };
    };
    const looks$ = merge(events$.pipe(map((event) => look(event))), interval(timing.beatMs).pipe(map(() => look())));
    return looks$.pipe(
      distinctUntilChanged((one, other) => one.generation === other.generation),
      switchMap(({ events, generation }) =>
        generation === undefined ? EMPTY : onceFree(events, events$, log.append(options)),
      ),
    );
  });
};

/** Appends events, then those that follow. They wait while the previous owner's writer closes. */
const onceFree = <E>(
  first: readonly E[],
  events$: Observable<E>,
  append: (source: Observable<E>) => Observable<E>,
): Observable<E> =>
  defer(() => {
    const waiting = [...first];
    const holding = events$.subscribe({ next: (event) => waiting.push(event), error: () => undefined });
    const source$ = defer(() => {
      holding.unsubscribe();
      return events$.pipe(startWith(...waiting.splice(0)));
    });
    const delay = (error: unknown): Observable<unknown> =>
      error instanceof LogError && error.code === 'log-in-use' ? timer(timing.folderRetryMs) : throwError(() => error);
    return source$.pipe(
      append,
      // To open a log takes a while, so this owner's first messages leave before that.
      subscribeOn(asyncScheduler),
      retry({ count: timing.folderInUseMs / timing.folderRetryMs, delay }),
      finalize(() => holding.unsubscribe()),
    );
  });

const stoodStill = (account: string, stallMs: number): LogError => {
  const problem =
    `This replica of '${account}' stood still for ${Math.round(stallMs)} ms, so another one may own the connection ` +
    'and append. Subscribe again: it appends when it owns.';
  return new LogError('log-fenced', problem, { path: account });
};
