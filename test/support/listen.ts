import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { freePort } from './free-port.mjs';

/**
 * Starts a server on loopback. Disposing it destroys its connections and closes it.
 *
 * @param event - the event that carries the sockets: `secureConnection` for TLS
 */
export const listen = async (server: Server, event: 'connection' | 'secureConnection' = 'connection', port = 0) => {
  const open = new Set<Socket>();
  let connections = 0;
  server.on(event, (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => undefined);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    open: open as ReadonlySet<Socket>,
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
};

/** Returns a loopback address where nothing is listening. */
export const deadAddress = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`;
