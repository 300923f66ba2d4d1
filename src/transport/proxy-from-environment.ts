import { Agent as HttpAgent, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { noop } from 'rxjs';
import type { TlsOptions, TradeFeedOptions } from '../options.js';
import { connectSocket, hostOf, tlsOptionsFor, whenReady } from './connect-socket.js';
import { loadHttpClient } from './network-clients.js';
import { type OnConnected, openTunnel, SILENCE_MS } from './open-tunnel.js';
import { type Environment, proxyFor, proxyOf } from './proxy-for.js';

/** The options of {@link proxyFromEnvironment}. */
export interface ProxyFromEnvironmentOptions {
  /** The variables. @defaultValue `process.env` */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The option `tls` of the feed. A `dispatcher` and an `agent` receive it here. */
  readonly tls?: TlsOptions | undefined;
}

/**
 * Resolves with the options `dispatcher` and `agent` for the proxy in the environment; with no options if the environment names none.
 *
 * - `HTTPS_PROXY` (or `https_proxy`) is the proxy: `http://proxy.example:3128`, with a user name and a password if it needs them, or
 *   `https:`. A SOCKS proxy is not supported.
 * - `NO_PROXY` (or `no_proxy`) lists hosts that are connected directly, separated by commas: `example.com` includes all hosts below it,
 *   `example.com:8443` only that port, and `*` is every host. Loopback hosts are always connected directly.
 * - `NODE_USE_ENV_PROXY=0` turns both off. Other values have no effect.
 *
 * The variables are read once. A `baseUrl` or a `wss_url` for which `NO_PROXY` applies is connected directly. The options cannot be used with
 * `receiveIn: 'worker'`, and the option `standby` has no effect with them.
 *
 * @throws TradeFeedError with code `invalid-options` if `HTTPS_PROXY` is not the address of an HTTP proxy
 * @example
 * ```ts
 * import { proxyFromEnvironment, tradeFeed$ } from 'rx-trade-feed';
 *
 * const proxy = await proxyFromEnvironment();
 * tradeFeed$('market', { ...proxy }).subscribe((frame) => console.log(frame.text()));
 * ```
 */
export const proxyFromEnvironment = async (
  options: ProxyFromEnvironmentOptions = {},
): Promise<Pick<TradeFeedOptions, 'dispatcher' | 'agent'>> => {
  const { tls } = options;
  const env = { ...(options.env ?? process.env) };
  if (proxyOf(env) === undefined) return {};
  const { Agent } = await loadHttpClient();
  return {
    dispatcher: new Agent({
      // The deadline of the ticket request is the option `ticketTimeoutMs`.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: ({ protocol, host, hostname }, callback) => {
        const done = callback as OnConnected;
        connectVia(new URL(`${protocol}//${host ?? hostname}`), env, tls, done);
      },
    }),
    agent: agentOf((url, done) => connectVia(url, env, tls, done)),
  };
};

/** Connects to the origin of a URL, including TLS: through the proxy, or directly if the environment names none for this URL. */
const connectVia = (url: URL, env: Environment, tls: TlsOptions | undefined, done: OnConnected): void => {
  const proxy = proxyFor(url, env);
  if (proxy === undefined) {
    settle(connectSocket(url, tls), done);
    return;
  }
  openTunnel(proxy, url, (error, socket) => {
    if (socket === null) done(error, null);
    // Only URLs with TLS have a proxy.
    else settle(connectTls({ ...tlsOptionsFor(url, tls), host: hostOf(url), socket }), done);
  });
};

// While it connects, the socket does not keep the process alive: the deadline of the attempt does. Without this, the process could not exit when
// the feed is unsubscribed, because neither undici nor Node gives up a connection that an agent is making.
const settle = (socket: Socket, done: OnConnected): void => {
  const fail = (error: Error): void => done(error, null);
  const onSilence = (): void => void socket.destroy(new Error(`no answer in ${SILENCE_MS} ms`));
  // An error may follow before the new owner of the socket listens for errors.
  socket.on('error', noop).once('error', fail).setTimeout(SILENCE_MS, onSilence).unref();
  whenReady(socket, () => {
    socket.off('error', fail).setTimeout(0, onSilence).ref();
    done(null, socket);
  });
};

/** Creates an agent for `http:` and `https:`. Agents of Node are for one of them. */
const agentOf = (connect: (url: URL, done: OnConnected) => void): HttpAgent =>
  Object.assign(new HttpAgent(), {
    protocol: undefined,
    createConnection: ({ host, port, defaultPort }: ClientRequestArgs, done: OnConnected) => {
      const name = host?.includes(':') ? `[${host}]` : host;
      connect(new URL(`${defaultPort === 443 ? 'https' : 'http'}://${name}:${port}`), done);
    },
  });
