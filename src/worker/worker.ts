import { Worker } from 'node:worker_threads';
import { Observable } from 'rxjs';
import type { TicketSettings } from '../options.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import type { Emit } from '../reconnect/lifecycle.js';
import type { OnClosing } from '../transport/handshake.js';
import { bootWorker } from './boot-worker.js';
import { openCallChannel } from './call-channel.js';
import { cloneableSettings } from './cloneable-settings.js';
import type { FromWorker, ToWorker } from './messages.js';
import { networkDefaults } from './network-defaults.js';
import { countHandled, createProgress } from './progress.js';
import { createReceiver } from './receiver.js';
import type { startWorker } from './start-worker.js';
import { storedValues } from './thrown-values.js';
import { callApiKey, callUser } from './user-calls.js';
import { workerLost, workerNotStarted } from './worker-failure.js';

/** Longest wait in ms for the end of a stopped worker. A closing handshake takes at most 1 s, so a worker that still runs then hangs. */
const graceMs = 3_000;

/**
 * Starts a worker and streams the frames that it receives.
 *
 * Errors with the error that stopped the feed in the worker, or with `receiver-failed` if the worker ends before that. Unsubscribing
 * stops the worker, which closes its connection and ends. A worker that is not ready yet is terminated.
 *
 * @param connectionsBefore - how many connections earlier workers of this subscription opened
 * @param start - starts the thread
 */
export const worker$ = (
  feed: Feed,
  settings: TicketSettings,
  emit: Emit,
  connectionsBefore: number,
  start: typeof startWorker,
  onClosing: OnClosing,
): Observable<Frame> =>
  new Observable((subscriber) => {
    const values = storedValues();
    const receiver = createReceiver(subscriber, emit, values, connectionsBefore);
    const progress = createProgress();
    const channel = openCallChannel((call) => callUser(call, settings, values), subscriber);

    const worker = bootWorker(start, { ...channel.workerEnd, progress, network: networkDefaults() });
    if (!(worker instanceof Worker)) {
      channel.close();
      return subscriber.error(workerNotStarted(settings, worker.cause));
    }
    const post = (message: ToWorker) => worker.postMessage(message);

    let isReady = false;
    let cause: unknown;
    const handle: { readonly [Type in FromWorker['type']]: (message: Extract<FromWorker, { type: Type }>) => void } = {
      ready: () => {
        isReady = true;
        post({ type: 'start', feed, settings: cloneableSettings(settings) });
      },
      batch: ({ items }) => {
        receiver.receive(items);
        // Count the batch as handled at the end of the turn, so that other callbacks run before the next batch.
        setImmediate(() => {
          if (countHandled(progress) && !subscriber.closed) post({ type: 'resume' });
        });
      },
      'key-request': ({ id }) => void callApiKey(settings, values).then((key) => post({ type: 'key', id, key })),
    };
    worker
      .on('message', (message: FromWorker) => {
        if (!subscriber.closed) handle[message.type](message as never);
      })
      .on('error', (error) => (cause = error))
      .on('exit', (code) => {
        channel.close();
        if (subscriber.closed) return;
        const why = cause ?? new Error(`it exited with code ${code}`);
        subscriber.error(isReady ? workerLost(settings, receiver.open, why) : workerNotStarted(settings, why));
      });

    return () => {
      const ended = endOf(worker);
      onClosing(ended);
      if (!isReady) return void worker.terminate();
      post({ type: 'stop' });
      const timeout = setTimeout(() => void worker.terminate(), graceMs);
      void ended.then(() => clearTimeout(timeout));
    };
  });

// The `threadId` of a worker that has ended is -1.
const endOf = (worker: Worker): Promise<void> =>
  worker.threadId === -1 ? Promise.resolve() : new Promise((resolve) => worker.once('exit', () => resolve()));
