import { catchError, concat, concatMap, defer, EMPTY, endWith, filter, merge, type Observable, of } from 'rxjs';
import { Subject, takeWhile, tap, throwError } from 'rxjs';
import type { SourceError } from '../items/item.js';

/** Collects the values of one subscription into results, such as windows. */
export interface Collector<E, W> {
  /** Adds a value. Returns whether to call `drain`. */
  add(value: E): boolean;
  /** Ends the collection, so that all remaining results are ready. `failure` has the error of the source, if it errored. */
  end(failure: SourceError | undefined): void;
  /** Returns the results that are ready, oldest first. Each is created when the iterator reaches it. */
  drain(): Iterable<W>;
}

/**
 * Emits the results of a collector: when `add` returns `true`, at each tick, and at the end of the source. Then completes or errors with the source.
 *
 * @param ticks - called with the values for which `add` returned `true`; returns the ticks, which end with the source. No ticks by default
 */
export const collect$ = <E, W>(
  source: Observable<E>,
  collector: Collector<E, W>,
  ticks: (added: Observable<unknown>) => Observable<unknown> = () => EMPTY,
): Observable<W> => {
  const added = new Subject<unknown>();
  const rest = ({ failure }: End): Observable<W> =>
    defer(() => {
      collector.end(failure);
      return failure === undefined
        ? collector.drain()
        : concat(
            collector.drain(),
            throwError(() => failure.error),
          );
    });
  return merge(
    ticks(added),
    source.pipe(
      filter((value) => collector.add(value)),
      tap((value) => added.next(value)),
      endWith(new End(undefined)),
      // An error would end `concatMap` at once. As a value, it waits for the results before it.
      catchError((error: unknown) => of(new End({ error }))),
    ),
  ).pipe(
    takeWhile((moment) => !(moment instanceof End), true),
    concatMap((moment) => (moment instanceof End ? rest(moment) : collector.drain())),
  );
};

class End {
  readonly failure: SourceError | undefined;

  constructor(failure: SourceError | undefined) {
    this.failure = failure;
  }
}
