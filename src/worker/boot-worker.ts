import type { Worker } from 'node:worker_threads';
import type { WorkerStart } from './messages.js';
import type { startWorker } from './start-worker.js';

/** Starts the worker thread. Returns the cause if it cannot be started. */
export const bootWorker = (start: typeof startWorker, data: WorkerStart): Worker | { readonly cause: unknown } => {
  try {
    return start({
      name: 'rx-trade-feed',
      env: workerEnvironment(),
      execArgv: [],
      workerData: data,
      transferList: [data.calls],
    });
  } catch (cause) {
    return { cause };
  }
};

/** Variables that the worker does not need: the key and the address, which it receives as settings, and flags that it may refuse. */
const hidden = new Set(['TRADE_FEED_API_KEY', 'TRADE_FEED_BASE_URL', 'NODE_OPTIONS']);

/** Copies the environment for the worker, without the hidden variables. */
export const workerEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !hidden.has(name)));
