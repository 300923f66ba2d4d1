// What still closes in this process: a new writer or consumer of the same file waits for it, instead of being refused.
import { defer, from, type Observable, switchMap } from 'rxjs';

const closing = new Map<string, Promise<unknown>>();

/** Says that a path is in use until a promise resolves. */
export const closes = (path: string, closed: Promise<unknown>): void => {
  const done = closed.then(() => {
    if (closing.get(path) === done) closing.delete(path);
  });
  closing.set(path, done);
};

/** Subscribes once a path is free in this process: at once, unless it still closes. */
export const onceClosed = <T>(path: string, source: () => Observable<T>): Observable<T> =>
  defer(() => {
    const before = closing.get(path);
    return before === undefined ? source() : from(before).pipe(switchMap(source));
  });
