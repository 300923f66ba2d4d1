import type { Worker } from 'node:worker_threads';
import { catchError, defer, noop, Observable, retryWhen, type Subscriber, switchMap } from 'rxjs';
import { type Emit, type Lifecycle, reconnects } from '../feed/lifecycle.js';
import type { TicketSettings } from '../feed/options.js';
import { createFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { failureFor } from '../protocol/failures/classify.js';
import { row } from '../protocol/failures/meanings.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { gapOfMissed } from '../protocol/feed-state.js';
import { redactor } from '../protocol/secret.js';
import { safeCause } from '../transport/attempt-failure.js';
import { areSame, tlsFlags } from '../transport/tls-defaults.js';
import type { OnClosing } from '../transport/handshake.js';
import { ifBundled } from '../transport/network-clients.js';
import { emitFrames } from './block.js';
import { fromCloneable, keepThrown, type Thrown } from './errors.js';
import {
  countHandled,
  createProgress,
  type FromWorker,
  type Item,
  type KeyResult,
  type ToWorker,
  type WorkerStart,
} from './messages.js';
import { cloneableSettings, networkDefaults } from './settings.js';
import type { startWorker } from './start-worker.js';

/** How long a stopped worker may take to end, in ms. A closing handshake takes at most 1 s. */
const graceMs = 3_000;

/**
 * Receives a feed in a worker. If the worker ends without being stopped, another takes over after the policy's delay.
 */
export const feedInWorker$ = (
  feed: Feed,
  settings: TicketSettings,
  lifecycle: Lifecycle,
  onClosing: OnClosing = noop,
): Observable<Frame> =>
  defer(() => {
    let connections = 0;
    const emitAndCount: Emit = (event) => {
      if (event.type === 'opened') ({ connection: connections } = event);
      lifecycle.emit(event);
    };
    // On demand: a test runner that compiles this package to CommonJS can't load a file with `import.meta.url`.
    return defer(() => import('./start-worker.js')).pipe(
      catchError((cause: unknown) => {
        throw notStarted(settings, lifecycle, cause);
      }),
      switchMap(({ startWorker: start }) =>
        worker$(feed, settings, { ...lifecycle, emit: emitAndCount }, connections, start, onClosing),
      ),
      retryWhen(reconnects(settings.backoff, lifecycle)),
    );
  });

// Errors with what stopped the feed in the worker, or with `receiver-failed` if the worker ends before that. When
// unsubscribed, stops the worker, which closes its connection and ends, or terminates it if it isn't ready yet.
const worker$ = (
  feed: Feed,
  settings: TicketSettings,
  lifecycle: Lifecycle,
  connectionsBefore: number,
  start: typeof startWorker,
  onClosing: OnClosing,
): Observable<Frame> =>
  new Observable((subscriber) => {
    const thrown: Thrown = new Map();
    const receiver = createReceiver(subscriber, lifecycle, thrown, connectionsBefore);
    const progress = createProgress();
    let network = networkDefaults();
    const worker = bootWorker(settings, lifecycle, start, { progress, network });
    const post = (message: ToWorker) => worker.postMessage(message);
    // When an attempt has ended, so that the next one trusts what this thread trusts now. A worker that asked instead
    // couldn't connect while this thread is blocked.
    const handOverNetwork = (): void => {
      const now = networkDefaults();
      if (!areSame(now, network)) post({ type: 'network', network: (network = now) });
    };

    let isReady = false;
    let cause: unknown;
    const handle: { readonly [Type in FromWorker['type']]: (message: Extract<FromWorker, { type: Type }>) => void } = {
      ready: () => {
        isReady = true;
        post({ type: 'start', feed, settings: cloneableSettings(settings), hasOpened: lifecycle.hasOpened() });
      },
      batch: ({ items }) => {
        items.forEach(receiver.receive);
        if (items.some(({ type }) => type === 'failed')) handOverNetwork();
        // Counts the batch at the end of the turn, so that other callbacks run before the next one.
        setImmediate(() => {
          if (countHandled(progress) && !subscriber.closed) post({ type: 'resume' });
        });
      },
      'key-request': ({ id }) => void keyOf(settings, thrown, id).then((key) => post({ type: 'key', id, key })),
    };
    worker
      .on('message', (message: FromWorker) => {
        if (!subscriber.closed) handle[message.type](message as never);
      })
      .on('error', (error) => (cause = error))
      .on('exit', (code) => {
        if (subscriber.closed) return;
        const why = cause ?? new Error(`it exited with code ${code}`);
        subscriber.error(isReady ? lost(settings, receiver.open(), why) : notStarted(settings, lifecycle, why));
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

const bootWorker = (
  settings: TicketSettings,
  lifecycle: Lifecycle,
  start: typeof startWorker,
  workerData: WorkerStart,
): Worker => {
  try {
    return start({
      name: 'rx-trade-feed',
      env: workerEnvironment(),
      execArgv: tlsFlags(workerData.network),
      workerData,
    });
  } catch (cause) {
    throw notStarted(settings, lifecycle, cause);
  }
};

/** Variables the worker doesn't need: it gets the settings, and might refuse the flags. */
const hidden = new Set(['TRADE_FEED_API_KEY', 'TRADE_FEED_BASE_URL', 'NODE_OPTIONS']);

export const workerEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !hidden.has(name)));

// A worker that has ended has the `threadId` -1.
const endOf = (worker: Worker): Promise<void> =>
  worker.threadId === -1 ? Promise.resolve() : new Promise((resolve) => worker.once('exit', () => resolve()));

const keyOf = async ({ apiKey }: TicketSettings, thrown: Thrown, id: number): Promise<KeyResult> => {
  try {
    const key: unknown = await (apiKey as () => unknown)();
    return typeof key === 'string' ? key : undefined;
  } catch (error) {
    return keepThrown(thrown, id, error);
  }
};

/** The open connection, up to the newest frame that reached the main thread. Times are in epoch ms. */
interface OpenFeed {
  readonly openedAt: number;
  readonly framesReceived: number;
  /** When the newest frame was read. */
  readonly endedAt: number;
}

const createReceiver = (
  subscriber: Subscriber<Frame>,
  { emit, firstFrame }: Lifecycle,
  thrown: Thrown,
  connectionsBefore: number,
) => {
  let open: OpenFeed | undefined;
  const receive = (item: Item): void => {
    switch (item.type) {
      case 'frames':
        if (open?.framesReceived === 0) firstFrame(item.from);
        if (open) open = { ...open, framesReceived: open.framesReceived + item.count, endedAt: item.to };
        return emitFrames(item, item.connection + connectionsBefore, subscriber);
      case 'missed':
        return emit(gapOfMissed(item, workerMeanings.tooSlow));
      case 'event': {
        const { event } = item;
        if (event.type !== 'opened') return emit(event);
        open = { openedAt: event.at, framesReceived: 0, endedAt: event.at };
        return emit({ ...event, connection: event.connection + connectionsBefore });
      }
      case 'failed':
        open = undefined;
        return emit({ ...item.event, failure: fromCloneable(item.failure, thrown) as TradeFeedError });
      case 'error':
        return subscriber.error(fromCloneable(item.error, thrown));
    }
  };
  return { receive, open: () => open };
};

// Creates the failure of a worker that ended without being stopped. Its stored frames are lost, so the outage begins
// with the newest frame that reached this thread.
const lost = (settings: TicketSettings, open: OpenFeed | undefined, thrown: unknown): TradeFeedError => {
  const cause = safeCause(thrown, redactor(settings.apiKey));
  const detail = cause.message;
  if (open === undefined) return createFailure(workerMeanings.lost, { stage: 'ticket', detail, cause });
  const { openedAt, ...received } = open;
  const uptimeMs = Math.max(0, Date.now() - openedAt);
  return createFailure(workerMeanings.lost, { stage: 'stream', uptimeMs, ...received, detail, cause });
};

const notStarted = (settings: TicketSettings, { hasOpened }: Lifecycle, thrown: unknown): TradeFeedError => {
  const cause = safeCause(thrown, redactor(settings.apiKey));
  const facts = { stage: 'ticket', hasOpened: hasOpened(), detail: cause.message, cause } as const;
  return failureFor(workerMeanings.notStarted, facts);
};

/** The failures of the thread that receives a feed. */
export const workerMeanings = {
  tooSlow: row({ stage: 'stream' }, 'receiver-too-slow', 'renew', [
    "The main thread was slower than the feed, or was blocked until the worker's buffer was full.",
    'If this happens often, do less for each frame, or raise `receiveBufferBytes`.',
  ]),
  lost: row({}, 'receiver-failed', 'renew', [
    'The worker thread that received the feed has ended.',
    'See the cause. Another worker takes over with a fresh ticket.',
  ]),
  // As in `notLoaded`, its files may only be missing for a moment.
  notStarted: row({ afterOpened: 'backoff' }, 'receiver-failed', 'stop', [
    "The worker thread that receives the feed couldn't be started.",
    `${ifBundled}, or leave out \`receiveIn\`. Otherwise see the cause.`,
  ]),
};
