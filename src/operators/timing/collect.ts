import { catchError, concat, concatMap, defer, EMPTY, endWith, filter, merge, type Observable, of } from 'rxjs';
import { Subject, takeWhile, tap, throwError } from 'rxjs';
import type { Failure } from '../stream/failure.js';

/** Takes values in, and lets something out now and then. Made for one subscription. */
export interface Gatherer<E, W> {
  /** Takes a value in. Says whether to ask `closed`. */
  add(value: E): boolean;
  /** Nothing follows: all may be let out. `failure` holds the error that the source ended with. */
  end(failure: Failure | undefined): void;
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
  const rest = ({ failure }: End): Observable<W> =>
    defer(() => {
      gatherer.end(failure);
      return failure === undefined
        ? gatherer.closed()
        : concat(
            gatherer.closed(),
            throwError(() => failure.error),
          );
    });
  return merge(
    ticks(added),
    source.pipe(
      filter((value) => gatherer.add(value)),
      tap((value) => added.next(value)),
      endWith(new End(undefined)),
      // As a value: what still waits for its turn goes before it.
      catchError((error: unknown) => of(new End({ error }))),
    ),
  ).pipe(
    takeWhile((moment) => !(moment instanceof End), true),
    concatMap((moment) => (moment instanceof End ? rest(moment) : gatherer.closed())),
  );
};

class End {
  readonly failure: Failure | undefined;

  constructor(failure: Failure | undefined) {
    this.failure = failure;
  }
}
