import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Ends a connection without a goodbye: with RST, where the socket itself has the handle for it. */
export const resetSocket = (socket: Socket): void => {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
};
