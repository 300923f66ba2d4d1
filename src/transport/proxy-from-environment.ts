import { once } from 'node:events';
import { Agent as HttpAgent, type ClientRequestArgs, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { noop } from 'rxjs';
import type { Dispatcher } from 'undici';
import type { TlsOptions, TradeFeedOptions } from '../feed/options.js';
import { credentialsOf } from '../protocol/secret.js';
import { messageOf, raceTo, wasCutShort } from './addresses.js';
import { tlsReason } from './attempt-failure.js';
import { connectSocket, hostOf, portOf, tlsOptionsFor, whenReady, withCertificateDates } from './connect.js';
import { withoutInterimResponses } from './interim-responses.js';
import { loadHttpClient } from './network-clients.js';
import { type Environment, proxyFor, proxyOf } from './proxy-for.js';

/** The options of {@link proxyFromEnvironment}. */
export interface ProxyFromEnvironmentOptions {
  /** The environment variables. @defaultValue `process.env` */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The feed's option `tls`. The `dispatcher` and the `agent` get it here. */
  readonly tls?: TlsOptions | undefined;
}

/**
 * Resolves with the options `dispatcher` and `agent` for the proxy in the environment, or no options if there's none.
 *
 * - `HTTPS_PROXY` (or `https_proxy`) is the proxy: `http://proxy.example:3128`, with a user name and a password if it
 *   needs them, or `https:`. SOCKS proxies aren't supported.
 * - `NO_PROXY` (or `no_proxy`) lists hosts that are connected directly, separated by commas: `example.com` includes all
 *   hosts below it, `example.com:8443` only that port, and `*` is every host. Loopback hosts never use the proxy.
 * - `NODE_USE_ENV_PROXY=0` turns both off. Other values don't matter.
 *
 * Reads the variables once. If `NO_PROXY` lists the host of `baseUrl` or `wss_url`, the feed connects to it directly.
 * You can't use these options with `receiveIn: 'worker'`, and they disable the option `standby`.
 *
 * @throws TradeFeedError with code `invalid-options` if `HTTPS_PROXY` is not the address of an HTTP proxy
 * @example
 * ```ts
 * import { proxyFromEnvironment, tradeFeed$ } from 'rx-trade-feed';
 *
 * const proxy = await proxyFromEnvironment();
 * tradeFeed$('market', { ...proxy }).subscribe((frame) =>
 *   console.log(frame.text()),
 * );
 * ```
 */
export const proxyFromEnvironment = async (
  options: ProxyFromEnvironmentOptions = {},
): Promise<{ readonly dispatcher?: Dispatcher } & Pick<TradeFeedOptions, 'agent'>> => {
  const env = { ...(options.env ?? process.env) };
  if (proxyOf(env) === undefined) return {};
  const { Agent } = await loadHttpClient();
  const connect = (address: string, done: OnConnected, prepare = (socket: Socket) => socket): void =>
    void connectVia(new URL(address), env, options.tls).then(
      (socket) => done(null, prepare(socket)),
      (error: unknown) => done(error as Error, null),
    );
  return {
    dispatcher: new Agent({
      // No timeouts here: `ticketTimeoutMs` is the deadline of the ticket request.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: ({ protocol, host, hostname }, callback) =>
        connect(`${protocol}//${host ?? hostname}`, callback as OnConnected, withoutInterimResponses),
    }),
    // For both `http:` and `https:`: Node's agents accept only one of them.
    agent: Object.assign(new HttpAgent(), {
      protocol: undefined,
      createConnection: ({ host, port, defaultPort }: ClientRequestArgs, done: OnConnected) => {
        const name = host?.includes(':') ? `[${host}]` : host;
        connect(`${defaultPort === 443 ? 'https' : 'http'}://${name}:${port}`, done);
      },
    }),
  };
};

type OnConnected = (error: Error | null, socket: Socket | null) => void;

const connectVia = async (url: URL, env: Environment, tls: TlsOptions | undefined): Promise<Socket> => {
  const proxy = proxyFor(url, env);
  if (proxy === undefined) return connectDirectly(url, tls);
  const socket = await openTunnel(proxy, url);
  // Only URLs with TLS go through a proxy.
  return connected(withCertificateDates(connectTls({ ...tlsOptionsFor(url, tls), host: hostOf(url), socket })));
};

/** Connects once more, to the address that answers first, if Node gave up one that might have answered later. */
const connectDirectly = async (url: URL, tls?: TlsOptions): Promise<Socket> => {
  try {
    return await connected(connectSocket(url, tls));
  } catch (error) {
    if (!wasCutShort(error)) throw error;
    return connected(connectSocket(url, tls, { race: raceTo(portOf(url), noop) }));
  }
};

/** How long the other side may be silent while connecting, in ms. */
const SILENCE_MS = 10_000;
const silence = (): Error => new Error(`no answer in ${SILENCE_MS} ms`);

// While it connects, the socket doesn't keep the process alive; the attempt's deadline does. Otherwise the process
// couldn't exit after you unsubscribe, because neither undici nor Node gives up a connection that an agent is making.
const connected = (socket: Socket): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const onSilence = (): void => void socket.destroy(silence());
    // An error may follow before the socket's new owner listens for errors.
    socket.on('error', noop).once('error', reject).setTimeout(SILENCE_MS, onSilence).unref();
    whenReady(socket, () => resolve(socket.setTimeout(0, onSilence).ref()));
  });

/** Sends CONNECT (RFC 9110, 9.3.6). Errors name the proxy's host and port, never its user name or password. */
export const openTunnel = async (proxy: URL, url: URL): Promise<Socket> => {
  const name = `the proxy ${hostOf(proxy)}:${portOf(proxy)}`;
  const authority = `${url.hostname}:${portOf(url)}`;
  const { socket, status } = await askForTunnel(proxy, authority).catch((error: unknown) => {
    const reason = tlsReason(error, error as Error);
    const why = reason === undefined ? messageOf(error) : `TLS: ${reason}`;
    throw new Error(`${name} cannot be used: ${why}`, { cause: error });
  });
  // TLS reads from this socket's handle, so its timer wouldn't notice and would end the connection.
  if (status.startsWith('2')) return socket.setTimeout(0);
  socket.destroy();
  throw new Error(`${name} refused the connection to ${authority} (HTTP ${status})`);
};

const askForTunnel = async (proxy: URL, authority: string): Promise<{ socket: Socket; status: string }> => {
  const { user, password } = credentialsOf(proxy);
  const basic = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const headers = { host: authority, ...(user && { 'proxy-authorization': basic }) };
  const socket = (await connectDirectly(proxy)).unref();
  const createConnection = (): Socket => socket;
  const asked = request({ method: 'CONNECT', path: authority, headers, createConnection, timeout: SILENCE_MS });
  asked.once('timeout', () => asked.destroy(silence())).end();
  // Node emits this for any answer to CONNECT.
  const [{ statusCode }] = (await once(asked, 'connect')) as [IncomingMessage];
  return { socket, status: String(statusCode) };
};
