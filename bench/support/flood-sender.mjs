// A sender in a separate process: writes prepared batches as fast as the socket drains.
//
//   node bench/support/flood-sender.mjs [--tls]     then connect to ws://127.0.0.1:PORT/200/text
import { batch } from './frames.mjs';
import { flooding, listen } from './listen.mjs';
import { parsePath } from './session.mjs';

const batches = new Map();
const batchAt = (path) => {
  if (!batches.has(path)) batches.set(path, batch(parsePath(path)));
  return batches.get(path);
};

const { port, caFile } = await listen({
  tls: process.argv.includes('--tls'),
  // In a later turn than the upgrade, so that its answer is a separate chunk for every peer.
  start: (socket, path) => setTimeout(flooding(socket, batchAt(path).bytes), 5),
});
const message = { type: 'listening', port, caFile };
if (process.send) process.send(message);
else console.log(JSON.stringify(message));
