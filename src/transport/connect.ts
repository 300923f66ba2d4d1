import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import {
  connect as connectTls,
  createSecureContext,
  type DetailedPeerCertificate,
  type SecureContext,
  TLSSocket,
} from 'node:tls';
import type { TlsOptions } from '../feed/options.js';
import { isError, tryCall } from '../protocol/type-guards.js';
import { type Addresses, createAddresses, limitLast, type Race } from './addresses.js';
import { areSame, type TlsDefaults, tlsDefaults } from './tls-defaults.js';

export type Connect<S extends Socket = Socket> = (url: URL) => S;

/** Starts connecting to the origin of a URL. Node reads into the caller's buffer if `onread` is set. */
export type ConnectWith = (url: URL, onread?: OnReadOpts) => Socket;

interface SharedTls {
  /** The parsed certificates of the options. Parsing is most of the work of starting a connection. */
  readonly secureContext?: SecureContext;
  /** An earlier session with the same origin, to be resumed. */
  readonly session?: Buffer | undefined;
  /** How to find the address, instead of Node's way. */
  readonly race?: Race | undefined;
}

export const isSecure = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'wss:';

/** Returns the host of a URL, without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

export const portOf = (url: URL): number => Number(url.port || (isSecure(url) ? 443 : 80));

/** Returns the origin of a URL: TLS or not, host and port. `https:` and `wss:` have the same one. */
export const originOf = (url: URL): string => `${isSecure(url) ? 'tls' : 'tcp'}://${hostOf(url)}:${portOf(url)}`;

/** Creates all sockets of the client, except a proxy's and those of a user's `dispatcher` or `agent`. */
export const connectSocket = (
  url: URL,
  tls?: TlsOptions,
  { race, ...shared }: SharedTls = {},
  onread?: OnReadOpts,
): Socket => {
  const found = race && { lookup: race.lookup };
  const to = { ...(onread && { onread }), ...found, host: hostOf(url), port: portOf(url) };
  const socket = isSecure(url)
    ? withCertificateDates(connectTls({ ...tlsOptionsFor(url, tls), ...shared, ...to }))
    : connectTcp(to);
  // Nagle's algorithm would hold a request back until the TLS handshake right before it is acknowledged.
  if (race) socket.once('close', race.stop);
  else limitLast(socket);
  return socket.setNoDelay();
};

/** Connects without reusing anything, except what is known about the addresses of the origins. */
export const plainConnect =
  (tls: TlsOptions | undefined, addresses: Addresses): ConnectWith =>
  (url, onread) =>
    connectTo(addresses, url, tls, {}, onread);

const connectTo = (addresses: Addresses, ...[url, tls, shared, onread]: Parameters<typeof connectSocket>): Socket => {
  const origin = originOf(url);
  const race = addresses.raceTo(origin, portOf(url));
  return addresses.follow(origin, connectSocket(url, tls, { ...shared, race }, onread));
};

/** Sets the server name: `servername`, or else the host unless it's an IP address (RFC 6066, 3). */
export const tlsOptionsFor = (url: URL, tls: TlsOptions | undefined): TlsOptions => {
  const host = hostOf(url);
  return { servername: isIP(host) === 0 ? host : '', ...withIdentityCheck(tls) };
};

/** When a certificate is valid, in epoch ms. */
export interface CertificateDates {
  readonly validFrom: number;
  readonly validTo: number;
}

/**
 * Adds the dates of an invalid certificate to the error of a connection: Node closes the connection, and forgets the
 * certificate, before it emits the error.
 */
export const withCertificateDates = (socket: TLSSocket): TLSSocket => {
  let chain: readonly CertificateDates[] = [];
  return socket
    .prependOnceListener('secure', () => (chain = datesOf(socket.getPeerCertificate(true))))
    .prependOnceListener('error', (error) => {
      const now = Date.now();
      const wrong = chain.find(({ validFrom, validTo }) => now < validFrom || now > validTo);
      if (wrong) Object.assign(error, wrong);
    });
};

// A root certificate is its own issuer. In an incomplete chain, the last certificate has no issuer.
const datesOf = (certificate: Partial<DetailedPeerCertificate>): readonly CertificateDates[] => {
  const { valid_from: from = '', valid_to: to = '', issuerCertificate: issuer } = certificate;
  const dates = { validFrom: Date.parse(from), validTo: Date.parse(to) };
  return [dates, ...(issuer === undefined || issuer === certificate ? [] : datesOf(issuer))];
};

/** Returns whether a socket is connected and its TLS handshake is done. */
export const isReady = (socket: Socket): boolean =>
  !socket.connecting && (!(socket instanceof TLSSocket) || socket.authorized || Boolean(socket.authorizationError));

/** Calls `then` once a socket is ready, but never synchronously, and not if the socket fails. */
export const whenReady = (socket: Socket, then: () => void): void => {
  if (isReady(socket)) process.nextTick(then);
  else socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', then);
};

/** How many origins can have a stored session. A service may name a new origin in every ticket. */
const MAX_ORIGINS = 4;

/**
 * Parses the certificates once, and resumes the last TLS session with an origin, which saves computation and, in TLS
 * 1.2, a round trip. Doesn't resume if there's a `checkServerIdentity`, because Node wouldn't call it.
 */
export const resumingConnect = (tls: TlsOptions | undefined, addresses = createAddresses()): ConnectWith => {
  const sessions = new Map<string, Buffer>();
  let parsed: { readonly secureContext: SecureContext; readonly defaults: TlsDefaults } | undefined;
  // A program can change what it trusts meanwhile.
  const parsedNow = (): SharedTls => {
    const defaults = tlsDefaults();
    if (parsed === undefined || !areSame(parsed.defaults, defaults)) {
      // A resumed session would skip the check of the certificate.
      sessions.clear();
      parsed = { secureContext: createSecureContext(tls), defaults };
    }
    return { secureContext: parsed.secureContext };
  };
  const store = (origin: string, session: Buffer): void => {
    sessions.delete(origin);
    sessions.set(origin, session);
    if (sessions.size > MAX_ORIGINS) sessions.delete([...sessions.keys()][0] as string);
  };
  return (url, onread) => {
    if (!isSecure(url)) return connectTo(addresses, url, tls, {}, onread);
    const shared = parsedNow();
    if (tls?.checkServerIdentity !== undefined) return connectTo(addresses, url, tls, shared, onread);
    const origin = originOf(url);
    const socket = connectTo(addresses, url, tls, { ...shared, session: sessions.get(origin) }, onread);
    // Forgets a session if the connection fails before the TLS handshake is done.
    const forget = () => sessions.delete(origin);
    return socket
      .once('error', forget)
      .once('secureConnect', () => socket.off('error', forget))
      .on('session', (session: Buffer) => whenReady(socket, () => store(origin, session)));
  };
};

/**
 * Gives what a user's `checkServerIdentity` returns or throws the code of Node's own check. An exception would end the
 * process.
 */
export const withIdentityCheck = (tls: TlsOptions | undefined): TlsOptions => {
  const check = tls?.checkServerIdentity;
  if (check === undefined) return { ...tls };
  const checkServerIdentity: typeof check = (host, certificate) => {
    let refused: unknown;
    try {
      refused = check(host, certificate);
      if (!refused) return undefined;
    } catch (thrown) {
      refused = thrown;
    }
    const why = tryCall(() => String(isError(refused) ? (refused.message as unknown) : refused));
    return Object.assign(new Error(why ?? 'it gave no reason'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  };
  return { ...tls, checkServerIdentity };
};
