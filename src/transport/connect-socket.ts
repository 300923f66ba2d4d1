import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, TLSSocket } from 'node:tls';
import type { TlsOptions } from '../options.js';
import { withIdentityCheck } from './identity-check.js';

/** Starts a connection to the origin of a URL. */
export type Connect<S extends Socket = Socket> = (url: URL) => S;

/** Starts a connection to the origin of a URL. With `onread`, Node reads into the buffer of the caller. */
export type ConnectWith = (url: URL, onread?: OnReadOpts) => Socket;

/** Returns whether a URL is reached over TLS. */
export const isSecure = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'wss:';

/** TLS state that the connections of one subscription share. */
export interface SharedTls {
  /** The parsed certificates of the options. Parsing them is most of the work of starting a connection. */
  readonly secureContext?: SecureContext;
  /** An earlier session with the same origin, to resume. */
  readonly session?: Buffer | undefined;
}

/** Returns the origin of a URL, the same for `https:` and `wss:`: with or without TLS, host and port. */
export const originOf = (url: URL): string => `${isSecure(url) ? 'tls' : 'tcp'}://${hostOf(url)}:${portOf(url)}`;

/**
 * Starts a connection to the origin of a URL: TLS for `https:` and `wss:`, plain TCP otherwise.
 *
 * This function creates every socket of the client, except the sockets of a user's `dispatcher` or `agent`, and of a proxy.
 *
 * @param tls - the user's options. The server name is `servername`, or else the host, but not an IP address (RFC 6066, 3)
 */
export const connectSocket = (url: URL, tls?: TlsOptions, shared?: SharedTls, onread?: OnReadOpts): Socket => {
  const host = hostOf(url);
  const port = portOf(url);
  const reading = onread && { onread };
  const socket = isSecure(url)
    ? connectTls({ ...tlsOptionsFor(url, tls), ...shared, ...reading, host, port })
    : connectTcp({ ...reading, host, port });
  // Nagle's algorithm would delay a request that follows soon after the TLS handshake until the handshake is acknowledged.
  return socket.setNoDelay();
};

/** Returns the TLS options of a connection to the host of a URL. */
export const tlsOptionsFor = (url: URL, tls: TlsOptions | undefined): TlsOptions => {
  const host = hostOf(url);
  return { servername: isIP(host) === 0 ? host : '', ...withIdentityCheck(tls) };
};

/** Returns whether a socket is connected, including its TLS handshake. */
export const isReady = (socket: Socket): boolean =>
  !socket.connecting && (!(socket instanceof TLSSocket) || socket.authorized || Boolean(socket.authorizationError));

/** Calls `then` when a socket is ready, but never synchronously. Does not call it if the socket fails. */
export const whenReady = (socket: Socket, then: () => void): void => {
  if (isReady(socket)) process.nextTick(then);
  else socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', then);
};

/** Returns the host of a URL. An IPv6 address has brackets in a URL, and none here. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

/** Returns the port of a URL. */
export const portOf = (url: URL): number => Number(url.port || (isSecure(url) ? 443 : 80));
