import { type ClientRequest, request as requestHttp, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import { hostOf, portOf } from './connect-socket.js';

/** Receives a connected socket, or the error why there is none. */
export type OnConnected = (error: Error | null, socket: Socket | null) => void;

/** How long the other side may be silent while a connection is made, in ms. */
export const SILENCE_MS = 10_000;

/**
 * Opens a TCP connection to the host and port of a URL through an HTTP proxy (CONNECT: RFC 9110, 9.3.6).
 *
 * The connection does not keep the process alive. The errors name the host and port of the proxy, and never its user name or password.
 */
export const openTunnel = (proxy: URL, url: URL, onConnected: OnConnected): void => {
  const authority = `${url.hostname}:${portOf(url)}`;
  const fail = (what: string, cause?: Error): void =>
    onConnected(new Error(`the proxy ${hostOf(proxy)}:${portOf(proxy)} ${what}`, { cause }), null);
  const request: (options: RequestOptions) => ClientRequest = proxy.protocol === 'https:' ? requestHttps : requestHttp;
  const asked = request({
    host: hostOf(proxy),
    port: portOf(proxy),
    method: 'CONNECT',
    path: authority,
    agent: false,
    timeout: SILENCE_MS,
  });
  asked.setHeader('host', authority);
  if (proxy.username !== '') asked.setHeader('proxy-authorization', basicCredentials(proxy));
  asked
    .once('socket', (socket) => socket.unref())
    .once('timeout', () => asked.destroy(new Error(`no answer in ${SILENCE_MS} ms`)))
    .once('error', (error) => fail(`cannot be used: ${error.message}`, error))
    // Node emits this for every answer to CONNECT.
    .once('connect', ({ statusCode }, socket: Socket) => {
      // TLS reads from the handle of this socket. Its timer would not notice, and end the connection.
      if (statusCode?.toString().startsWith('2')) onConnected(null, socket.setTimeout(0).setNoDelay());
      else {
        socket.destroy();
        fail(`refused the connection to ${authority} (HTTP ${statusCode})`);
      }
    })
    .end();
};

const basicCredentials = ({ username, password }: URL): string =>
  `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`;
