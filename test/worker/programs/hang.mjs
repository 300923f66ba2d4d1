// A worker that comes up and never listens again.
import { parentPort } from 'node:worker_threads';

parentPort.postMessage({ type: 'ready' });
for (;;);
