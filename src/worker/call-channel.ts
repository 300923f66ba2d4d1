import { MessageChannel } from 'node:worker_threads';
import type { Subscriber } from 'rxjs';
import type { UserCall, WorkerStart } from './messages.js';

/** The channel for calls that block the worker until the main thread returns the result. */
export interface CallChannel {
  /** The end for the worker. */
  readonly workerEnd: Pick<WorkerStart, 'calls' | 'answered'>;
  readonly close: () => void;
}

/** Opens the channel. After the subscription has ended, `answer` is not called, and the worker receives `undefined`. */
export const openCallChannel = (
  answer: (call: UserCall) => unknown,
  subscriber: Pick<Subscriber<unknown>, 'closed'>,
): CallChannel => {
  const { port1, port2 } = new MessageChannel();
  const answered = new Int32Array(new SharedArrayBuffer(4));
  port1.on('message', (call: UserCall) => {
    port1.postMessage(subscriber.closed ? undefined : answer(call));
    Atomics.store(answered, 0, 1);
    Atomics.notify(answered, 0);
  });
  return { workerEnd: { calls: port2, answered }, close: () => port1.close() };
};
