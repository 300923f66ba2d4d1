import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, TLSSocket } from 'node:tls';
import type { TlsOptions } from '../options.js';
import { withOwnCheck } from './tls.js';

/** Begins a connection to the origin of an address. */
export type Connect = (url: URL) => Socket;

/** Whether an address is reached over TLS. */
export const isSecure = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'wss:';

/** What the TLS connections of one subscription can share. */
export interface SharedTls {
  /** What is made of the certificates in the options; making it is most of the work of beginning a connection. */
  readonly secureContext?: SecureContext;
  /** A session with the same origin, to be resumed. */
  readonly session?: Buffer | undefined;
}

/** Names the origin of an address, `https:` and `wss:` alike: over TLS or not, host and port. */
export const originOf = (url: URL): string => `${isSecure(url) ? 'tls' : 'tcp'}://${hostOf(url)}:${portOf(url)}`;

/**
 * Begins a connection to the origin of an address: TLS for `https:` and `wss:`, plain TCP otherwise.
 *
 * Every socket of the client is made here, but for those of a user's own `dispatcher` or `agent`.
 *
 * @param tls - the user's own; an IP address is named to the server only if these say so (RFC 6066, 3)
 */
export const connectSocket = (url: URL, tls?: TlsOptions, shared?: SharedTls): Socket => {
  const host = hostOf(url);
  const port = portOf(url);
  const servername = isIP(host) === 0 ? host : '';
  const socket = isSecure(url)
    ? connectTls({ servername, ...withOwnCheck(tls), ...shared, host, port })
    : connectTcp({ host, port });
  // A request that comes soon after the end of the TLS handshake would wait until that is acknowledged: Nagle's algorithm.
  return socket.setNoDelay();
};

/** Whether a socket is connected, and its TLS handshake done where it has one. */
export const isReady = (socket: Socket): boolean =>
  !socket.connecting && (!(socket instanceof TLSSocket) || socket.authorized || Boolean(socket.authorizationError));

/** Calls back once a socket is ready, in a later turn; never when it fails. */
export const whenReady = (socket: Socket, then: () => void): void => {
  if (isReady(socket)) process.nextTick(then);
  else socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', then);
};

// An IPv6 address stands in brackets in a URL.
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

const portOf = (url: URL): number => Number(url.port || (isSecure(url) ? 443 : 80));
