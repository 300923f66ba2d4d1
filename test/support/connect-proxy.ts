import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Certificate } from './certificate.js';
import { listen } from './listen.js';

export interface ConnectProxyOptions {
  /** The ports on 127.0.0.1, by the `host:port` that clients request. Any other request gets 502. */
  readonly targets: Readonly<Record<string, number>>;
  /** The status of every answer. @defaultValue 200 */
  readonly status?: number;
  /** The key and certificate of a proxy with an `https:` address. */
  readonly tls?: Certificate;
  /** Never answers. */
  readonly isSilent?: boolean;
}

/** Starts an HTTP proxy for CONNECT (RFC 9110, 9.3.6), which also knows hosts that DNS doesn't. */
export const startConnectProxy = async ({ targets, status = 200, tls, isSilent = false }: ConnectProxyOptions) => {
  const requests: { authority: string; headers: IncomingHttpHeaders }[] = [];
  let tunnels = 0;
  const server: Server = tls ? createSecureServer(tls) : createServer();
  server
    .on('tlsClientError', () => undefined)
    .on('connect', ({ url: authority = '', headers }, client: Duplex) => {
      requests.push({ authority, headers });
      client.on('error', () => client.destroy());
      if (isSilent) return;
      const port = targets[authority];
      const answer = port === undefined ? 502 : status;
      if (port === undefined || answer >= 300) {
        client.end(`HTTP/1.1 ${answer} Refused\r\ncontent-length: 0\r\n\r\n`);
        return;
      }
      const target = connect({ host: '127.0.0.1', port }, () => {
        tunnels += 1;
        client.write(`HTTP/1.1 ${answer} Connection Established\r\n\r\n`);
        target.pipe(client).pipe(target);
      });
      target.on('error', () => target.destroy()).once('close', () => client.destroy());
      client.once('close', () => target.destroy());
    });
  const { port, ...listening } = await listen(server);
  return {
    url: `http${tls ? 's' : ''}://127.0.0.1:${port}`,
    requests,
    tunnels: () => tunnels,
    [Symbol.asyncDispose]: listening[Symbol.asyncDispose],
  };
};
