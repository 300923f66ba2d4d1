import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Boot } from '../messages.js';
import { runFeed } from './run-feed.js';

// The file that a worker thread runs.
runFeed(parentPort as MessagePort, workerData as Boot);
