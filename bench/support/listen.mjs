// The server of a sender: answers ticket requests and upgrades without a library.
import { createServer as createPlain } from 'node:net';
import { createServer as createSecure } from 'node:tls';
import { certificate } from './certificate.mjs';
import { session } from './session.mjs';

/**
 * Listens on a free port of loopback, until the parent of this process disconnects it.
 *
 * @param start - is called with the socket and the path when frames may be sent
 * @param hangUp - is called with the socket and the answer to the close frame of the client
 * @returns the `port`, and the `caFile` of a server with TLS
 */
export const listen = async ({ tls = false, start, hangUp = (socket) => socket.destroy() }) => {
  const secret = tls ? await certificate() : undefined;
  const serve = (socket) => {
    socket.setNoDelay(true);
    const read = session({
      origin: `${tls ? 'wss' : 'ws'}://127.0.0.1:${server.address().port}`,
      write: (bytes) => socket.write(bytes),
      start: (path) => start(socket, path),
      hangUp: (answer) => hangUp(socket, answer),
    });
    socket.on('data', read).on('error', () => socket.destroy());
  };
  const server = tls ? createSecure(secret, serve) : createPlain(serve);
  process.once('disconnect', () => process.exit());
  return { port: await freePort(server), caFile: secret?.caFile };
};

/** Starts a server on a free port of loopback. Resolves with the port. */
export const freePort = (server) =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));

/** Writes the same bytes as fast as the socket drains. Returns the function that begins. */
export const flooding = (socket, bytes) => {
  const write = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', write);
  return write;
};
