import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { attempts$ } from '../../feed/attempts.js';
import type { LifecycleEvent } from '../../protocol/event.js';
import { standIn, toCloneable } from '../errors.js';
import { HandOver } from '../hand-over.js';
import type { EventItem, FromWorker, KeyResult, ToWorker, WorkerStart } from '../messages.js';
import { restoreSettings, setNetworkDefaults } from '../settings.js';

/** How often to send a watermark while the store is empty, in ms. They close windows on the main thread. */
const watermarkMs = 100;

// Runs the attempts of a feed and sends its frames and events to the main thread, which starts and stops it.
const runFeed = (port: MessagePort, { progress, network }: WorkerStart): void => {
  const post = (message: FromWorker, transferred: ArrayBuffer[] = []) => port.postMessage(message, transferred);
  const keys = createKeys((id) => post({ type: 'key-request', id }));

  const start = ({ feed, settings, hasOpened: hadOpened }: Extract<ToWorker, { type: 'start' }>) => {
    let hasOpened = hadOpened;
    const handOver = new HandOver(
      (items, buffers) => post({ type: 'batch', items }, buffers),
      progress,
      settings.receiveBufferBytes,
    );
    const emit = (event: LifecycleEvent) => {
      hasOpened ||= event.type === 'opened';
      handOver.addEvent(itemOf(event));
    };
    // The main thread adds `gap` and `stopped`.
    const lifecycle = {
      emit,
      firstFrame: () => undefined,
      stop: () => undefined,
      hasOpened: () => hasOpened,
      now: Date.now,
    };
    const subscription = attempts$(feed, restoreSettings(settings, keys.ask), lifecycle).subscribe({
      next: (frame) => handOver.addFrame(frame),
      error: (error: unknown) => handOver.addEvent({ type: 'error', error: toCloneable(error) }),
    });
    const watermarks = setInterval(() => handOver.sendWatermark(), watermarkMs);
    subscription.add(() => clearInterval(watermarks));
    return { handOver, subscription };
  };

  let running: ReturnType<typeof start> | undefined;
  port.on('message', (message: ToWorker) => {
    switch (message.type) {
      case 'start':
        running = start(message);
        return;
      case 'resume':
        return running?.handOver.resume();
      case 'network':
        return setNetworkDefaults(message.network);
      case 'key':
        return keys.receive(message.id, message.key);
      case 'stop':
        running?.subscription.unsubscribe();
        // Nothing keeps this thread alive after the closing handshake.
        port.close();
    }
  });
  setNetworkDefaults(network);
  post({ type: 'ready' });
};

const itemOf = (event: LifecycleEvent): EventItem => {
  if (event.type !== 'disconnected') return { type: 'event', event };
  const { failure, ...others } = event;
  return { type: 'failed', event: others, failure: toCloneable(failure) };
};

/** Gets the keys that the user's `apiKey` returns on the main thread. */
const createKeys = (request: (id: number) => void) => {
  const waiting = new Map<number, (key: KeyResult) => void>();
  let newest = 0;
  return {
    ask: async (): Promise<string> => {
      newest += 1;
      request(newest);
      const key = await new Promise<KeyResult>((resolve) => waiting.set(newest, resolve));
      if (typeof key === 'object') throw standIn(key);
      return key as string;
    },
    receive: (id: number, key: KeyResult): void => {
      waiting.get(id)?.(key);
      waiting.delete(id);
    },
  };
};

runFeed(parentPort as MessagePort, workerData as WorkerStart);
