import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ServiceSettings } from '../options/service-options.js';

/** An HTTP server that listens on 127.0.0.1. */
export interface HttpServer {
  readonly port: number;
  /** Allows the process to exit while the server listens. */
  unref(): void;
  /** Stops listening, and waits until all clients have disconnected. After `timeoutMs`, destroys their sockets. */
  close(timeoutMs: number): Promise<void>;
}

/** A request that a server received: `url` and `method` are always set. */
export type ServerRequest = IncomingMessage & { readonly url: string; readonly method: string };

/** The handlers of the server's requests. */
export interface HttpHandlers {
  readonly onRequest: (request: ServerRequest, response: ServerResponse) => void;
  readonly onUpgrade: (request: ServerRequest, socket: Duplex, head: Buffer) => void;
}

/**
 * Starts an HTTP server, with TLS if `tls` is set.
 *
 * @throws TypeError if the key or the certificate is invalid; the error of the system if it cannot listen on the port
 */
export const startHttpServer = async (
  { port, tls, limits }: Pick<ServiceSettings, 'port' | 'tls' | 'limits'>,
  { onRequest, onUpgrade }: HttpHandlers,
): Promise<HttpServer> => {
  const timeouts = {
    requestTimeout: limits.requestTimeoutMs,
    headersTimeout: limits.requestTimeoutMs,
    // Node checks its timeouts at this interval, so a request may last longer than its timeout, by one interval.
    connectionsCheckingInterval: Math.min(Math.ceil(limits.requestTimeoutMs / 10), 1_000),
  };
  const listener = onRequest as RequestListener;
  const server = tls
    ? createSecure({ ...timeouts, ...tls, handshakeTimeout: limits.requestTimeoutMs }, listener)
    : createServer(timeouts, listener);
  const sockets = new Set<Socket>();
  // All TCP sockets: Node's server does not track sockets below TLS and sockets after an upgrade.
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
    throw new TypeError('`tls` must be a PEM key and its PEM certificate.', { cause });
  }
};
