// A worker that starts and ignores all messages.
import { parentPort } from 'node:worker_threads';

parentPort.postMessage({ type: 'ready' });
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
