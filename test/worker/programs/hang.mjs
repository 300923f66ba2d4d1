// A worker that starts and ignores all messages.
import { parentPort } from 'node:worker_threads';

parentPort.postMessage({ type: 'ready' });
for (;;);
