import type { Socket } from 'node:net';
import { noop } from 'rxjs';
import { Client } from 'undici';
import { type Connect, whenReady } from './connect-socket.js';
import { MAX_IDLE_MS } from './kept-ready.js';

/** An undici Client with one connection, and hold of its socket. */
export interface TicketClient {
  readonly dispatcher: Client;
  /** The socket that was made last. */
  readonly socket: () => Socket | undefined;
  /** Ends the connection, also one that is still being made. */
  readonly destroy: () => void;
}

/** Makes a Client for the origin of an address; it connects when there is a request. */
export const createTicketClient = (url: URL, connect: Connect): TicketClient => {
  let socket: Socket | undefined;
  const dispatcher = new Client(url.origin, {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: MAX_IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
    connect: (_options, callback) => {
      const made = connect(url);
      socket = made;
      // An error may follow the connect within the same turn, before undici listens for it.
      made.on('error', (error: Error) => void dispatcher.destroy(error).catch(noop));
      whenReady(made, () => callback(null, made));
    },
  });
  return {
    dispatcher,
    socket: () => socket,
    // Neither an abort nor destroy() ends a connection that undici is still making.
    destroy: () => {
      dispatcher.destroy().catch(noop);
      socket?.destroy();
    },
  };
};
