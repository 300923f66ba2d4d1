import type { MessagePort } from 'node:worker_threads';
import { attempts$ } from '../../attempts.js';
import type { LifecycleEvent } from '../../protocol/event.js';
import { toCloneable } from '../cloneable-error.js';
import { createHandOver } from '../hand-over.js';
import type { EventItem, FromWorker, ToWorker, WorkerStart } from '../messages.js';
import { setNetworkDefaults } from '../network-defaults.js';
import { placeholders } from '../thrown-values.js';
import { restoreSettings } from './restore-settings.js';
import { createUserFunctions } from './user-functions.js';

/** Runs the attempts of a feed in a worker, and sends its frames and events to the main thread. Starts and stops by messages of the main thread. */
export const runFeed = (port: MessagePort, { progress, network, ...channel }: WorkerStart): void => {
  const post = (message: FromWorker, transferred: ArrayBuffer[] = []) => port.postMessage(message, transferred);
  const functions = createUserFunctions(channel, (id) => post({ type: 'key-request', id }));

  const start = ({ feed, settings }: Extract<ToWorker, { type: 'start' }>) => {
    const handOver = createHandOver(
      (items, buffers) => post({ type: 'batch', items }, buffers),
      progress,
      settings.receiveBufferBytes,
    );
    const emit = (event: LifecycleEvent) => handOver.addEvent(itemOf(event));
    const subscription = attempts$(feed, restoreSettings(settings, functions), emit).subscribe({
      next: (frame) => handOver.addFrame(frame),
      error: (error: unknown) => handOver.addEvent({ type: 'error', error: toCloneable(error, placeholders) }),
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
      case 'key':
        return functions.receiveKey(message.id, message.key);
      case 'stop':
        running?.subscription.unsubscribe();
        // After the closing handshake nothing keeps this thread alive.
        port.close();
    }
  });
  setNetworkDefaults(network);
  post({ type: 'ready' });
};

/** Interval of the watermarks while the store is empty, in ms. They close windows on the main thread. */
const watermarkMs = 100;

const itemOf = (event: LifecycleEvent): EventItem => {
  if (event.type !== 'disconnected') return { type: 'event', event };
  const { failure, ...others } = event;
  return { type: 'failed', event: others, failure: toCloneable(failure, placeholders) };
};
