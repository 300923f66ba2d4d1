// A worker that starts and throws.
import { parentPort } from 'node:worker_threads';

parentPort.on('message', () => {
  throw Object.assign(new Error('planted-api-key-7f3a was in my hand'), { code: 'ERR_PLANTED' });
});
parentPort.postMessage({ type: 'ready' });
