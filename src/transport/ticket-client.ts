import type { Socket } from 'node:net';
import { noop } from 'rxjs';
import type * as undici from 'undici';
import type { Client } from 'undici';
import { type Connect, whenReady } from './connect-socket.js';
import { MAX_IDLE_MS } from './renew-idle.js';

/** An undici Client with one connection, whose socket is accessible. */
export interface TicketClient {
  readonly dispatcher: Client;
  /** Returns the newest socket. */
  readonly socket: () => Socket | undefined;
  /** Destroys the connection, also while it connects. */
  readonly destroy: () => void;
}

/** Creates a Client for the origin of a URL. It connects at the first request. */
export const createTicketClient = (http: typeof undici, url: URL, connect: Connect): TicketClient => {
  let socket: Socket | undefined;
  const dispatcher = new http.Client(url.origin, {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: MAX_IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
    connect: (_options, callback) => {
      const opened = connect(url);
      socket = opened;
      // An error may follow the `connect` event within the same turn, before undici listens for errors.
      opened.on('error', (error: Error) => void dispatcher.destroy(error).catch(noop));
      whenReady(opened, () => callback(null, opened));
    },
  });
  return {
    dispatcher,
    socket: () => socket,
    // While undici connects, neither an abort nor `dispatcher.destroy()` ends the connection, so the socket is destroyed, too.
    destroy: () => {
      dispatcher.destroy().catch(noop);
      socket?.destroy();
    },
  };
};
