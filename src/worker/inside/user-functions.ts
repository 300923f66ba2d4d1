import { receiveMessageOnPort } from 'node:worker_threads';
import type { PeerCertificate } from 'node:tls';
import type { Verdict } from '../../protocol/failures/failure-code.js';
import type { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { fromCloneable, toCloneable } from '../cloneable-error.js';
import type { CallResult, UserCall, WorkerStart } from '../messages.js';
import { placeholders } from '../thrown-values.js';

/** The functions of the user, callable in the worker. They run on the main thread. */
export interface UserFunctions {
  readonly apiKey: () => Promise<string>;
  readonly classify: (failure: TradeFeedError, verdict: Verdict) => Verdict;
  readonly random: () => number;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
  /** Receives the result of an `apiKey` call from the main thread. */
  readonly receiveKey: (id: number, key: CallResult<string | undefined>) => void;
}

/**
 * Creates the functions.
 *
 * All functions except `apiKey` are synchronous, so a call blocks this thread until the main thread returns the result. They are never
 * called while a connection is open, so a blocked worker misses no frames.
 */
export const createUserFunctions = (
  { calls, answered }: Pick<WorkerStart, 'calls' | 'answered'>,
  requestKey: (id: number) => void,
): UserFunctions => {
  const waiting = new Map<number, (key: CallResult<string | undefined>) => void>();
  let newest = 0;

  const callNow = (call: UserCall): unknown => {
    Atomics.store(answered, 0, 0);
    calls.postMessage(call);
    Atomics.wait(answered, 0, 0);
    const result = receiveMessageOnPort(calls)?.message as CallResult<unknown> | undefined;
    if (result === undefined) throw new Error('The subscription has ended.');
    return valueOf(result);
  };

  return {
    apiKey: async () => {
      newest += 1;
      requestKey(newest);
      const result = await new Promise<CallResult<string | undefined>>((resolve) => waiting.set(newest, resolve));
      return valueOf(result) as string;
    },
    classify: (failure, verdict) =>
      callNow({ name: 'classify', failure: toCloneable(failure, placeholders), verdict }) as Verdict,
    random: () => callNow({ name: 'random' }) as number,
    checkServerIdentity: (host, certificate) => {
      const refusal = callNow({ name: 'checkServerIdentity', host, certificate });
      return refusal === undefined ? undefined : new Error(refusal as string);
    },
    receiveKey: (id, key) => {
      waiting.get(id)?.(key);
      waiting.delete(id);
    },
  };
};

const valueOf = <T>(result: CallResult<T>): T => {
  if ('thrown' in result) throw fromCloneable(result.thrown, placeholders);
  return result.value;
};
