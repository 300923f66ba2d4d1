import {
  catchError,
  concat,
  concatMap,
  concatWith,
  defer,
  EMPTY,
  endWith,
  filter,
  merge,
  type Observable,
  of,
  Subject,
} from 'rxjs';
import { takeWhile, tap, throwError } from 'rxjs';

/** Takes values in, and lets something out now and then. Made for one subscription. */
export interface Gatherer<E, W> {
  /** Takes a value in. Says whether to ask `closed`. */
  add(value: E): boolean;
  /** Nothing follows: all may be let out. */
  end(): void;
  /** Lets out what is ready, oldest first, each when it is asked for. */
  closed(): Iterable<W>;
}

/**
 * Emits what a gatherer lets out: when it says so, at each tick, and, before it completes or errors as the source does, the rest.
 *
 * @param ticks - made of the moments in which `add` said so; ended with the source; none by default
 */
export const gathered = <E, W>(
  source: Observable<E>,
  gatherer: Gatherer<E, W>,
  ticks: (added: Observable<unknown>) => Observable<unknown> = () => EMPTY,
): Observable<W> => {
  const added = new Subject<unknown>();
  const rest = defer(() => {
    gatherer.end();
    return of(undefined);
  });
  return merge(
    ticks(added),
    source.pipe(
      filter((value) => gatherer.add(value)),
      tap((value) => added.next(value)),
      catchError((error: unknown) =>
        concat(
          rest,
          throwError(() => error),
        ),
      ),
      concatWith(rest),
      endWith(ended),
    ),
  ).pipe(
    takeWhile((moment) => moment !== ended),
    concatMap(() => gatherer.closed()),
  );
};

const ended = Symbol('ended');
