import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Starts the worker that receives. A bundler that knows this form of words takes its file along. */
export const startWorker = (options: WorkerOptions): Worker =>
  new Worker(new URL('./inside/feed-worker.js', import.meta.url), options);
