import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { WorkerStart } from '../messages.js';
import { runFeed } from './run-feed.js';

// A worker thread starts with this file.
runFeed(parentPort as MessagePort, workerData as WorkerStart);
