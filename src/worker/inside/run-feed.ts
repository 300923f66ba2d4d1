import type { MessagePort } from 'node:worker_threads';
import { attempts$ } from '../../attempts.js';
import type { LifecycleEvent } from '../../protocol/event.js';
import { crossing } from '../crossed-error.js';
import { createHandOver } from '../hand-over.js';
import type { Boot, FromWorker, Told, ToWorker } from '../messages.js';
import { setNetworkDefaults } from '../network-defaults.js';
import { standIns } from '../stand-ins.js';
import { createAsking } from './asking.js';
import { restoredSettings } from './restored-settings.js';

/** Runs the same feed as the main thread would, and hands it over instead of emitting it. Says that it is ready, and does as it is told. */
export const runFeed = (port: MessagePort, { progress, network, ...questions }: Boot): void => {
  const post = (message: FromWorker, transferred: ArrayBuffer[] = []) => port.postMessage(message, transferred);
  const asking = createAsking(questions, (id) => post({ type: 'key-wanted', id }));

  const start = ({ feed, settings }: Extract<ToWorker, { type: 'start' }>) => {
    const handOver = createHandOver(
      (items, buffers) => post({ type: 'batch', items }, buffers),
      progress,
      settings.receiveBufferBytes,
    );
    const feed$ = attempts$(feed, restoredSettings(settings, asking), (event) => handOver.tell(toldOf(event)));
    const subscription = feed$.subscribe({
      next: (frame) => handOver.put(frame),
      error: (error: unknown) => handOver.tell({ type: 'error', error: crossing(error, standIns) }),
    });
    const beats = setInterval(() => handOver.beat(), beatMs);
    subscription.add(() => clearInterval(beats));
    return { handOver, subscription };
  };

  let running: ReturnType<typeof start> | undefined;
  port.on('message', (message: ToWorker) => {
    switch (message.type) {
      case 'start':
        running = start(message);
        return;
      case 'go-on':
        return running?.handOver.goOn();
      case 'key':
        return asking.hear(message.id, message.key);
      case 'stop':
        running?.subscription.unsubscribe();
        // What is left is the closing handshake: then nothing keeps this thread.
        port.close();
    }
  });
  setNetworkDefaults(network);
  post({ type: 'ready' });
};

/** How often a quiet feed sends a watermark, in ms: it closes windows on the main thread. */
const beatMs = 100;

const toldOf = (event: LifecycleEvent): Told => {
  if (event.type !== 'disconnected') return { type: 'event', event };
  const { failure, ...others } = event;
  return { type: 'failed', event: others, failure: crossing(failure, standIns) };
};
