import { catchError, defer, noop, type Observable, pipe, retryWhen, switchMap, tap } from 'rxjs';
import type { TicketSettings } from '../options.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { backoff } from '../reconnect/backoff.js';
import { type Emit, reconnecting } from '../reconnect/lifecycle.js';
import type { OnClosing } from '../transport/handshake.js';
import { worker$ } from './worker.js';
import { workerNotStarted } from './worker-failure.js';

/**
 * Streams the frames of a feed that a worker thread receives, as `attempts$` does on this thread.
 *
 * If a worker ends without being stopped, that is a failure: after a wait by the same policy, another worker starts.
 *
 * @param emit - receives each lifecycle event
 * @param onClosing - is called for each worker that is stopped
 * @param onStop - receives the error of the feed, before the subscriber
 */
export const feedInWorker$ = (
  feed: Feed,
  settings: TicketSettings,
  emit: Emit,
  onClosing: OnClosing = noop,
  onStop: (error: unknown) => void = noop,
): Observable<Frame> =>
  defer(() => {
    let connections = 0;
    const emitAndCount: Emit = (event) => {
      if (event.type === 'opened') ({ connection: connections } = event);
      emit(event);
    };
    // Imported on demand: a test runner that compiles this package to CommonJS cannot load a file with `import.meta.url`.
    return defer(() => import('./start-worker.js')).pipe(
      catchError((cause: unknown) => {
        throw workerNotStarted(settings, cause);
      }),
      switchMap(({ startWorker }) => worker$(feed, settings, emitAndCount, connections, startWorker, onClosing)),
      retryWhen(pipe(backoff(settings.backoff, reconnecting(emit)), tap({ error: onStop }))),
    );
  });
