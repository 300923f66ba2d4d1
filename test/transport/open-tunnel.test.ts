import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { openTunnel } from '../../src/transport/open-tunnel.js';
import { startConnectProxy } from '../support/connect-proxy.js';

const url = new URL('https://feed.example:8443');

const tunnelThrough = (proxy: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    openTunnel(new URL(proxy), url, (error, socket) =>
      socket ? resolve(socket) : reject(error ?? new Error('no socket')),
    );
  });

describe('openTunnel', () => {
  it.each([200, 204])('connects to the host and port of the URL after HTTP %i, in both directions', async (status) => {
    const server = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await using proxy = await startConnectProxy({ targets: { 'feed.example:8443': port }, status });
    const socket = await tunnelThrough(proxy.url);
    socket.write('echo');
    const [echo] = (await once(socket.ref(), 'data')) as [Buffer];
    expect(echo.toString()).toBe('echo');
    // A quiet feed must not end the connection.
    expect(socket.timeout).toBe(0);
    socket.destroy();
    server.close();
    await once(server, 'close');
  });

  it.each([301, 403, 407, 502])('reports HTTP %i with the host and port of the proxy only', async (status) => {
    await using proxy = await startConnectProxy({ targets: { 'feed.example:8443': 1 }, status });
    const { host } = new URL(proxy.url);
    await expect(tunnelThrough(proxy.url.replace('//', '//user:planted-password@'))).rejects.toThrow(
      new Error(`the proxy ${host} refused the connection to feed.example:8443 (HTTP ${status})`),
    );
  });

  it('sends an IPv6 address in brackets', async () => {
    await using proxy = await startConnectProxy({ targets: {} });
    const refused = new Promise((resolve) => {
      openTunnel(new URL(proxy.url), new URL('https://[2001:db8::1]'), resolve);
    });
    expect(String(await refused)).toContain('refused the connection to [2001:db8::1]:443 (HTTP 502)');
    expect(proxy.requests[0]).toMatchObject({ authority: '[2001:db8::1]:443', headers: { host: '[2001:db8::1]:443' } });
  });
});
