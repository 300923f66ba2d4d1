// Runs an operator, such as `append` of a log, while this replica owns the connection.
//
// An owner that has lost its generation is fenced off twice. The first fence is the log: a folder has a lock, which even
// a suspended process keeps, and a store takes nothing of a writer that was replaced. The second is this operator: after
// a process stood still, its sockets may hold frames from before its connection was replaced. It drops them, because
// that time belongs to another owner.
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
  type OperatorFunction,
  retry,
  startWith,
  subscribeOn,
  switchMap,
  throwError,
  timer,
} from 'rxjs';
import { LogError } from '../log/log-error.js';
import { aFunction, checkRequired } from '../protocol/validate.js';
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

/** Runs an operator on the events of each generation that this replica emits as the owner. */
export const whileOwner = <E, R>(
  { events$, account, generation, maxStallMs }: Owned<E>,
  operator: OperatorFunction<E, R>,
): Observable<R> => {
  checkRequired({ operator }, { operator: aFunction });
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
      switchMap(({ events, generation }) => (generation === undefined ? EMPTY : onceFree(events, events$, operator))),
    );
  });
};

/** Runs an operator on events and those that follow. They wait while the previous owner's writer closes. */
const onceFree = <E, R>(first: readonly E[], events$: Observable<E>, operator: OperatorFunction<E, R>): Observable<R> =>
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
      operator,
      // To open a log takes a while, so this owner's first messages leave before that.
      subscribeOn(asyncScheduler),
      retry({ count: timing.folderInUseMs / timing.folderRetryMs, delay }),
      finalize(() => holding.unsubscribe()),
    );
  });

const stoodStill = (account: string, stallMs: number): LogError => {
  const problem =
    `This replica of '${account}' stood still for ${Math.round(stallMs)} ms, so another one may own the connection. ` +
    'Subscribe again: it goes on when it owns.';
  return new LogError('log-fenced', problem, { path: account });
};
