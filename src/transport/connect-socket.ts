import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { TlsOptions } from '../options.js';
import { withOwnCheck } from './tls.js';

/** Whether an address is reached over TLS. */
export const isSecure = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'wss:';

/** What names an origin, of `https:` and `wss:` alike: over TLS or not, host and port. */
export const originOf = (url: URL): string => `${isSecure(url) ? 'tls' : 'tcp'}://${hostOf(url)}:${portOf(url)}`;

/**
 * Begins a connection to the origin of an address: TLS for `https:` and `wss:`, plain TCP otherwise.
 *
 * Every socket of this library is made here, but for those of a user's own `dispatcher` or `agent`.
 *
 * @param tls - the user's own; a host that is an IP address is named to the server only if these say so (RFC 6066, 3)
 * @param session - a session with this origin, to be resumed
 */
export const connectSocket = (url: URL, tls: TlsOptions | undefined, session?: Buffer): Socket => {
  const host = hostOf(url);
  const port = portOf(url);
  if (!isSecure(url)) return connectTcp({ host, port });
  const servername = isIP(host) === 0 ? host : '';
  return connectTls({ host, port, servername, ...withOwnCheck(tls), ...(session && { session }) });
};

// An IPv6 host stands in brackets in an address.
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

const portOf = (url: URL): number => Number(url.port || (isSecure(url) ? 443 : 80));
