import { MessageChannel } from 'node:worker_threads';
import type { Subscriber } from 'rxjs';
import type { Boot, Question } from './messages.js';

/** The way for questions that a worker stands still for. */
export interface Questions {
  /** Its end in the worker. */
  readonly asked: Pick<Boot, 'questions' | 'answered'>;
  readonly close: () => void;
}

/** Opens it. Once the subscription is over, the worker gets `undefined` for an answer, and nobody is asked. */
export const openQuestions = (
  answer: (question: Question) => unknown,
  subscriber: Pick<Subscriber<unknown>, 'closed'>,
): Questions => {
  const { port1, port2 } = new MessageChannel();
  const answered = new Int32Array(new SharedArrayBuffer(4));
  port1.on('message', (question: Question) => {
    port1.postMessage(subscriber.closed ? undefined : answer(question));
    Atomics.store(answered, 0, 1);
    Atomics.notify(answered, 0);
  });
  return { asked: { questions: port2, answered }, close: () => port1.close() };
};
