import { concatMap, EMPTY, filter, map, materialize, merge, type Observable, Subject, takeWhile, tap } from 'rxjs';
import type { SourceError } from './item.js';

/** Collects the values of one subscription into results, such as windows. */
export interface Collector<W> {
  /** Adds a value. Returns whether to call `drain`. */
  add(value: unknown): boolean;
  /** Ends the collection, which makes all remaining results ready. `failure` is set if the source errored. */
  end(failure: SourceError | undefined): void;
  /** Returns the results that are ready, oldest first. May create each only when the iterator reaches it. */
  drain(): Iterable<W>;
}

/** Keeps its results in a list until they're drained. */
export abstract class BatchCollector<W> implements Collector<W> {
  protected ready: W[] = [];

  abstract add(value: unknown): boolean;

  end(_failure: SourceError | undefined): void {
    // By default, ending makes nothing more ready.
  }

  drain(): readonly W[] {
    const batch = this.ready;
    this.ready = [];
    return batch;
  }
}

/** Emits results when `add` returns `true`, at each of the `ticks`, and at the end of the source. */
export const collect$ = <W>(
  source: Observable<unknown>,
  collector: Collector<W>,
  ticks: (added: Observable<void>) => Observable<unknown> = () => EMPTY,
): Observable<W> => {
  const added = new Subject<void>();
  const ready$ = source.pipe(
    filter((value) => collector.add(value)),
    // Not the value: the operators of the ticks would hold it.
    tap(() => added.next()),
    // An error would end `concatMap` at once. Turned into a value, it waits for the results before it.
    materialize(),
  );
  // Subscribe to the ticks first, because the source may emit during `subscribe`.
  return merge(ticks(added).pipe(map(() => undefined)), ready$).pipe(
    takeWhile((moment) => moment === undefined || moment.kind === 'N', true),
    concatMap(function* (moment) {
      if (moment !== undefined && moment.kind !== 'N') collector.end(moment.kind === 'E' ? moment : undefined);
      yield* collector.drain();
      if (moment?.kind === 'E') throw moment.error;
    }),
  );
};
