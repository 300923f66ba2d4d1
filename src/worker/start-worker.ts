// Without `node:`: webpack recognizes `Worker` of `worker_threads` only. It takes one of `node:worker_threads` for a
// global, and writes broken code.
import { Worker, type WorkerOptions } from 'worker_threads';

/** Starts the worker thread. Bundlers recognize this expression and include the file of the worker. */
export const startWorker = (options: WorkerOptions): Worker =>
  new Worker(new URL('./inside/feed-worker.js', import.meta.url), options);
