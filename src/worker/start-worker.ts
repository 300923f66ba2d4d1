// No `node:` here: webpack recognizes `Worker` only from `worker_threads`. It mistakes one from `node:worker_threads`
// for a global and writes broken code.
import { Worker, type WorkerOptions } from 'worker_threads';

/** Starts the worker thread. Bundlers recognize this expression and include the worker's file. */
export const startWorker = (options: WorkerOptions): Worker =>
  new Worker(new URL('./inside/feed-worker.js', import.meta.url), options);
