import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ServiceSettings } from '../options/service-options.js';

/** An HTTP server that listens on 127.0.0.1. */
export interface HttpServer {
  readonly port: number;
  /** Lets the process end while it listens. */
  unref(): void;
  /** Stops listening, waits for the clients that are there, destroys them when the time is over. */
  close(timeoutMs: number): Promise<void>;
}

/** A request as a server has it: with a target and a method, always. */
export type ServerRequest = IncomingMessage & { readonly url: string; readonly method: string };

/** What the server hands its requests to. */
export interface HttpHandlers {
  readonly onRequest: (request: ServerRequest, response: ServerResponse) => void;
  readonly onUpgrade: (request: ServerRequest, socket: Duplex, head: Buffer) => void;
}

/**
 * Starts an HTTP server, with TLS when a key and a certificate are given.
 *
 * @throws TypeError when the key and certificate cannot be used; the system's error when the port cannot be listened on
 */
export const startHttpServer = async (
  { port, tls, limits }: Pick<ServiceSettings, 'port' | 'tls' | 'limits'>,
  { onRequest, onUpgrade }: HttpHandlers,
): Promise<HttpServer> => {
  const timeouts = {
    requestTimeout: limits.requestTimeoutMs,
    headersTimeout: limits.requestTimeoutMs,
    // Node looks at its timeouts only so often, and a request may last this much longer.
    connectionsCheckingInterval: Math.min(Math.ceil(limits.requestTimeoutMs / 10), 1_000),
  };
  const listener = onRequest as RequestListener;
  const server = tls
    ? createSecure({ ...timeouts, ...tls, handshakeTimeout: limits.requestTimeoutMs }, listener)
    : createServer(timeouts, listener);
  const sockets = new Set<Socket>();
  // The TCP sockets, also below TLS and after an upgrade, which the server itself loses sight of.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', onUpgrade);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    unref: () => void server.unref(),
    close: async (timeoutMs) => {
      const closed = once(server, 'close');
      server.close();
      const timer = setTimeout(() => sockets.forEach((socket) => socket.destroy()), timeoutMs);
      await closed;
      clearTimeout(timer);
    },
  };
};

const createSecure = (options: ServerOptions, listener: RequestListener): Server => {
  try {
    return createTlsServer(options, listener);
  } catch (cause) {
    throw new TypeError('`tls` must be a PEM key and the PEM certificate that belongs to it.', { cause });
  }
};
