import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsOptions } from '../options.js';
import { type Connect, connectSocket, isSecure, originOf, whenReady } from './connect-socket.js';

/** How many origins a session is kept of: a service may name another one in every ticket. */
const MAX_ORIGINS = 4;

/**
 * Makes a {@link Connect} that reads the certificates of the options once, and resumes the last TLS session with the same origin:
 * less to compute on both sides, and in TLS 1.2 a round trip less.
 *
 * The sessions belong to what it gives. A user's own check of the certificate is never passed over: Node does not ask it of a
 * session that is resumed, so with one there is no resuming.
 */
export const resumingConnect = (tls: TlsOptions | undefined): Connect => {
  const sessions = new Map<string, Buffer>();
  let secureContext: SecureContext | undefined;
  return (url) => {
    if (!isSecure(url)) return connectSocket(url);
    secureContext ??= createSecureContext(tls);
    if (tls?.checkServerIdentity !== undefined) return connectSocket(url, tls, { secureContext });
    const origin = originOf(url);
    const socket = connectSocket(url, tls, { secureContext, session: sessions.get(origin) });
    // A session that led to an error before there was a connection is not tried again.
    const forget = () => sessions.delete(origin);
    return socket
      .once('error', forget)
      .once('secureConnect', () => socket.off('error', forget))
      .on('session', (session: Buffer) => whenReady(socket, () => keep(sessions, origin, session)));
  };
};

// The one that was kept the longest goes.
const keep = (sessions: Map<string, Buffer>, origin: string, session: Buffer): void => {
  sessions.delete(origin);
  sessions.set(origin, session);
  if (sessions.size > MAX_ORIGINS) sessions.delete([...sessions.keys()][0] as string);
};
