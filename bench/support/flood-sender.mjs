// A sender in a separate process: answers the upgrade without a library, then writes prepared batches as fast as the socket drains.
//
//   node bench/support/flood-sender.mjs [--tls]     then connect to ws://127.0.0.1:PORT/200/text/plain
import { createServer as createPlain } from 'node:net';
import { createServer as createSecure } from 'node:tls';
import { batch } from './frames.mjs';
import { certificate } from './certificate.mjs';
import { session, parsePath } from './session.mjs';

const isTls = process.argv.includes('--tls');
const secret = isTls ? await certificate() : undefined;

const batches = new Map();
const batchAt = (path) => {
  if (!batches.has(path)) batches.set(path, batch(parsePath(path)));
  return batches.get(path);
};

const flood = (socket, { bytes }) => {
  const write = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', write);
  // In a later turn than the upgrade, so that its answer is a separate chunk for every peer.
  setTimeout(write, 5);
};

const serve = (socket) => {
  socket.setNoDelay(true);
  const origin = `${isTls ? 'wss' : 'ws'}://127.0.0.1:${server.address().port}`;
  const read = session({
    origin,
    write: (bytes) => socket.write(bytes),
    start: (path) => flood(socket, batchAt(path)),
    hangUp: () => socket.destroy(),
  });
  socket.on('data', read).on('error', () => socket.destroy());
};

const server = isTls ? createSecure(secret, serve) : createPlain(serve);
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const message = { type: 'listening', port, caFile: secret?.caFile };
  if (process.send) process.send(message);
  else console.log(JSON.stringify(message));
});
process.once('disconnect', () => process.exit());
