import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Starts the worker thread. Bundlers recognize this expression and include the file of the worker. */
export const startWorker = (options: WorkerOptions): Worker =>
  new Worker(new URL('./inside/feed-worker.js', import.meta.url), options);
