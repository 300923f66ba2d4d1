import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Ends a connection abruptly: with RST, or for TLS with `destroy`, because a TLS socket cannot send RST. */
export const resetSocket = (socket: Socket): void => {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
};
