import { catchError, defer, type Observable, retryWhen, switchMap } from 'rxjs';
import type { TicketSettings } from '../options.js';
import type { LifecycleEvent } from '../protocol/event.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { notStarted } from './lost-worker.js';
import { worker$ } from './worker.js';

/**
 * Streams the frames of a feed that a worker thread receives, and tells of what happens around them, in its place.
 *
 * Emits, tells and errors as the feed on this thread does. A worker that is lost is a failure as others are, and another one follows.
 *
 * @param tell - told of each event
 * @param again - the notifier of `retryWhen`, for a worker that is lost
 */
export const feedInWorker$ = (
  feed: Feed,
  settings: TicketSettings,
  tell: (event: LifecycleEvent) => void,
  again: (failures: Observable<unknown>) => Observable<unknown>,
): Observable<Frame> =>
  defer(() => {
    let connections = 0;
    const count = (event: LifecycleEvent): void => {
      if (event.type === 'opened') ({ connection: connections } = event);
      tell(event);
    };
    // Loaded when it is needed: a test runner that makes CommonJS of this package cannot load a file that knows its own address.
    return defer(() => import('./start-worker.js')).pipe(
      catchError((cause: unknown) => {
        throw notStarted(settings, cause);
      }),
      switchMap(({ startWorker }) => worker$(feed, settings, count, connections, startWorker)),
      retryWhen(again),
    );
  });
