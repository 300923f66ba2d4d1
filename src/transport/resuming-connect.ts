import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsOptions } from '../options.js';
import { type ConnectWith, connectSocket, isSecure, originOf, whenReady } from './connect-socket.js';

/** How many origins can have a stored session. A service may name a different origin in every ticket. */
const MAX_ORIGINS = 4;

/**
 * Creates a {@link ConnectWith} that parses the certificates of the options once, and resumes the last TLS session with the same origin.
 * Resuming saves computation on both sides, and one round trip in TLS 1.2.
 *
 * Each returned function has separate sessions. With a user's `checkServerIdentity` no session is resumed, because Node does not call
 * that function for a resumed session.
 */
export const resumingConnect = (tls: TlsOptions | undefined): ConnectWith => {
  const sessions = new Map<string, Buffer>();
  let secureContext: SecureContext | undefined;
  return (url, onread) => {
    if (!isSecure(url)) return connectSocket(url, tls, undefined, onread);
    secureContext ??= createSecureContext(tls);
    if (tls?.checkServerIdentity !== undefined) return connectSocket(url, tls, { secureContext }, onread);
    const origin = originOf(url);
    const socket = connectSocket(url, tls, { secureContext, session: sessions.get(origin) }, onread);
    // A session is removed if the connection fails before the TLS handshake is done.
    const forget = () => sessions.delete(origin);
    return socket
      .once('error', forget)
      .once('secureConnect', () => socket.off('error', forget))
      .on('session', (session: Buffer) => whenReady(socket, () => store(sessions, origin, session)));
  };
};

// Removes the oldest session if there are too many.
const store = (sessions: Map<string, Buffer>, origin: string, session: Buffer): void => {
  sessions.delete(origin);
  sessions.set(origin, session);
  if (sessions.size > MAX_ORIGINS) sessions.delete([...sessions.keys()][0] as string);
};
