import { Worker } from 'node:worker_threads';
import { Observable } from 'rxjs';
import type { TicketSettings } from '../options.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import type { Emit } from '../reconnect/lifecycle.js';
import type { OnClosing } from '../transport/handshake.js';
import { answerTo, keyAnswer } from './answers.js';
import { keptValues } from './kept-values.js';
import { lostWorker, notStarted } from './lost-worker.js';
import type { Boot, FromWorker, ToWorker } from './messages.js';
import { movedSettings } from './moved-settings.js';
import { networkDefaults } from './network-defaults.js';
import { countHandled, createProgress } from './progress.js';
import { openQuestions } from './questions.js';
import { createReceiver } from './receiver.js';
import type { startWorker } from './start-worker.js';
import { workerEnvironment } from './worker-environment.js';

/** A closing handshake is cut after a second; a worker that has not ended some time later never will by itself. */
const graceMs = 3_000;

/**
 * Starts a worker and streams what it receives.
 *
 * Errors with what stopped the feed there, and with `receiver-failed` when the worker is lost. Unsubscribing lets it close its connection and
 * end; before it is up, it is ended at once.
 *
 * @param connectionsBefore - how many connections earlier workers of this subscription had
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
    const kept = keptValues();
    const receiver = createReceiver(subscriber, emit, kept, connectionsBefore);
    const progress = createProgress();
    const questions = openQuestions((question) => answerTo(question, settings, kept), subscriber);

    const worker = started(start, { ...questions.asked, progress, network: networkDefaults() });
    if (!(worker instanceof Worker)) {
      questions.close();
      return subscriber.error(notStarted(settings, worker.cause));
    }
    const post = (message: ToWorker) => worker.postMessage(message);

    let isUp = false;
    let cause: unknown;
    const handle: { readonly [Type in FromWorker['type']]: (message: Extract<FromWorker, { type: Type }>) => void } = {
      ready: () => {
        isUp = true;
        post({ type: 'start', feed, settings: movedSettings(settings) });
      },
      batch: ({ items }) => {
        receiver.take(items);
        // Not before the end of this turn: whoever else has something to do comes first.
        setImmediate(() => {
          if (countHandled(progress) && !subscriber.closed) post({ type: 'go-on' });
        });
      },
      'key-wanted': ({ id }) => void keyAnswer(settings, kept).then((key) => post({ type: 'key', id, key })),
    };
    worker
      .on('message', (message: FromWorker) => {
        if (!subscriber.closed) handle[message.type](message as never);
      })
      .on('error', (error) => (cause = error))
      .on('exit', (code) => {
        questions.close();
        if (subscriber.closed) return;
        const why = cause ?? new Error(`it exited with code ${code}`);
        subscriber.error(isUp ? lostWorker(settings, receiver.open, why) : notStarted(settings, why));
      });

    return () => {
      const gone = endOf(worker);
      onClosing(gone);
      if (!isUp) return void worker.terminate();
      post({ type: 'stop' });
      const bound = setTimeout(() => void worker.terminate(), graceMs);
      void gone.then(() => clearTimeout(bound));
    };
  });

// One that has ended has no number any more.
const endOf = (worker: Worker): Promise<void> =>
  worker.threadId === -1 ? Promise.resolve() : new Promise((resolve) => worker.once('exit', () => resolve()));

const started = (start: typeof startWorker, boot: Boot): Worker | { readonly cause: unknown } => {
  try {
    return start({
      name: 'rx-trade-feed',
      env: workerEnvironment(),
      execArgv: [],
      workerData: boot,
      transferList: [boot.questions],
    });
  } catch (cause) {
    return { cause };
  }
};
