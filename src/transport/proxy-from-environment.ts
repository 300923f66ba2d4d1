import { Agent as HttpAgent, type ClientRequestArgs, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { noop } from 'rxjs';
import type { Dispatcher } from 'undici';
import type { TlsOptions, TradeFeedOptions } from '../feed/options.js';
import { credentialsOf } from '../protocol/secret.js';
import { limitLast, messageOf, type Race, raceTo, wasCutShort } from './addresses.js';
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
  if (proxy === undefined)
    return patiently(portOf(url), (race) => connected(connectSocket(url, tls, { ...(race && { race }) })));
  const socket = await openTunnel(proxy, url);
  // Only URLs with TLS go through a proxy.
  return connected(withCertificateDates(connectTls({ ...tlsOptionsFor(url, tls), host: hostOf(url), socket })));
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

/** Connects once more, to the address that answers first, if Node gave up one that might have answered later. */
const patiently = async (port: number, open: (race?: Race) => Promise<Socket>): Promise<Socket> => {
  try {
    return await open();
  } catch (error) {
    if (!wasCutShort(error)) throw error;
    return open(raceTo(port, noop));
  }
};

/** Sends CONNECT (RFC 9110, 9.3.6). Errors name the proxy's host and port, never its user name or password. */
export const openTunnel = (proxy: URL, url: URL): Promise<Socket> =>
  patiently(portOf(proxy), (race) => askForTunnel(proxy, url, race));

const askForTunnel = (proxy: URL, url: URL, race: Race | undefined): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const authority = `${url.hostname}:${portOf(url)}`;
    const fail = (what: string, cause?: Error): void =>
      reject(new Error(`the proxy ${hostOf(proxy)}:${portOf(proxy)} ${what}`, { cause }));
    const request = proxy.protocol === 'https:' ? requestHttps : requestHttp;
    const to = { host: hostOf(proxy), port: portOf(proxy), path: authority };
    const found = race && { lookup: race.lookup };
    const asked = request({ ...to, ...found, method: 'CONNECT', agent: false, timeout: SILENCE_MS });
    asked.setHeader('host', authority);
    const { user, password } = credentialsOf(proxy);
    const basic = Buffer.from(`${user}:${password}`).toString('base64');
    if (user !== '') asked.setHeader('proxy-authorization', `Basic ${basic}`);
    asked
      .once('socket', (socket) => (race ? socket : limitLast(socket)).unref())
      .once('close', () => race?.stop())
      .once('timeout', () => asked.destroy(silence()))
      .once('error', (error) => {
        const reason = tlsReason(error, error);
        fail(`cannot be used: ${reason === undefined ? messageOf(error) : `TLS: ${reason}`}`, error);
      })
      // Node emits this for any answer to CONNECT.
      .once('connect', ({ statusCode }, socket: Socket) => {
        // TLS reads from this socket's handle, so its timer wouldn't notice and would end the connection.
        if (statusCode?.toString().startsWith('2')) return resolve(socket.setTimeout(0).setNoDelay());
        socket.destroy();
        fail(`refused the connection to ${authority} (HTTP ${statusCode})`);
      })
      .end();
  });
