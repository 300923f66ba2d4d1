import { receiveMessageOnPort } from 'node:worker_threads';
import type { PeerCertificate } from 'node:tls';
import type { Verdict } from '../../protocol/failures/failure-code.js';
import type { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { crossed, crossing } from '../crossed-error.js';
import type { Answer, Boot, Question } from '../messages.js';
import { standIns } from '../stand-ins.js';

/** The functions of the user's, as a worker calls them: they run on the main thread. */
export interface Asking {
  readonly apiKey: () => Promise<string>;
  readonly classify: (failure: TradeFeedError, verdict: Verdict) => Verdict;
  readonly random: () => number;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
  /** Takes the answer of the key's function. */
  readonly hear: (id: number, key: Answer<string | undefined>) => void;
}

/**
 * Makes them.
 *
 * All but the key's function must answer at once, so this thread stands still until the main thread has. None of them is called while a
 * connection is open that would have to be read.
 */
export const createAsking = (
  { questions, answered }: Pick<Boot, 'questions' | 'answered'>,
  wantKey: (id: number) => void,
): Asking => {
  const waiting = new Map<number, (key: Answer<string | undefined>) => void>();
  let newest = 0;

  const now = (question: Question): unknown => {
    Atomics.store(answered, 0, 0);
    questions.postMessage(question);
    Atomics.wait(answered, 0, 0);
    const answer = receiveMessageOnPort(questions)?.message as Answer<unknown> | undefined;
    if (answer === undefined) throw new Error('Nobody is left to ask.');
    return valueOf(answer);
  };

  return {
    apiKey: async () => {
      newest += 1;
      wantKey(newest);
      const answer = await new Promise<Answer<string | undefined>>((resolve) => waiting.set(newest, resolve));
      return valueOf(answer) as string;
    },
    classify: (failure, verdict) => now({ ask: 'classify', failure: crossing(failure, standIns), verdict }) as Verdict,
    random: () => now({ ask: 'random' }) as number,
    checkServerIdentity: (host, certificate) => {
      const refusal = now({ ask: 'checkServerIdentity', host, certificate });
      return refusal === undefined ? undefined : new Error(refusal as string);
    },
    hear: (id, key) => {
      waiting.get(id)?.(key);
      waiting.delete(id);
    },
  };
};

const valueOf = <T>(answer: Answer<T>): T => {
  if ('thrown' in answer) throw crossed(answer.thrown, standIns);
  return answer.value;
};
