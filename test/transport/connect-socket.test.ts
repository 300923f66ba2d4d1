import { once } from 'node:events';
import { Socket } from 'node:net';
import { describe, expect, it, jest } from '@jest/globals';
import { connectSocket, isReady, originOf, whenReady } from '../../src/transport/connect-socket.js';
import { certificateFor } from '../support/certificate.js';
import { portOf, startGate } from '../support/gate.js';
import { startWire } from '../support/wire.js';

describe('originOf', () => {
  it.each([
    ['https://feed.example.com/v1', 'wss://FEED.example.com:443/ws?x=1'],
    ['http://127.0.0.1:8080/a', 'ws://127.0.0.1:8080/b'],
    ['http://localhost/', 'ws://localhost:80'],
    ['https://[::1]:8443/', 'wss://[::1]:8443/ws'],
  ])('is equal for %s and %s', (a, b) => {
    expect(originOf(new URL(a))).toBe(originOf(new URL(b)));
  });

  it.each([
    ['wss://a.example/', 'wss://b.example/'],
    ['wss://a.example/', 'wss://a.example:444/'],
    ['wss://a.example:80/', 'ws://a.example/'],
  ])('is different for %s and %s', (a, b) => {
    expect(originOf(new URL(a))).not.toBe(originOf(new URL(b)));
  });
});

describe('connectSocket', () => {
  it('connects to an IPv6 address, which has brackets in a URL', async () => {
    // Nothing listens there, and the machine may not have IPv6: the error names the address.
    const [error] = (await once(connectSocket(new URL('ws://[::1]:1/')), 'error')) as [Error];
    expect(error).toMatchObject({ address: '::1', port: 1 });
  });

  it.each([
    ['ws:', false],
    ['wss:', true],
  ])('is ready when it can be written to: %s', async (_, isTls) => {
    const tls = await certificateFor();
    await using wire = await startWire(isTls ? { tls } : {});
    const socket = connectSocket(new URL(wire.wssUrl), { ca: tls.cert });
    expect(isReady(socket)).toBe(false);
    await new Promise<void>((resolve) => whenReady(socket, resolve));
    expect(isReady(socket)).toBe(true);
    // Also if the socket was ready before the call.
    await new Promise<void>((resolve) => whenReady(socket, resolve));
    socket.destroy();
  });

  it('connects to the host of the URL, whatever the TLS options contain', async () => {
    const tls = await certificateFor();
    await using wire = await startWire({ tls });
    await using elsewhere = await startWire({ tls });
    const to = { ca: tls.cert, host: '127.0.0.1', port: portOf(elsewhere.baseUrl) };
    const socket = connectSocket(new URL(wire.wssUrl), to);
    await once(socket, 'secureConnect');
    expect(socket.remotePort).toBe(portOf(wire.wssUrl));
    expect(elsewhere.connections).toBe(0);
    socket.destroy();
  });

  it.each(['ws:', 'wss:'])('sends small messages without delay, such as a pong or an upgrade: %s', (protocol) => {
    const atOnce = jest.spyOn(Socket.prototype, 'setNoDelay');
    const socket = connectSocket(new URL(`${protocol}//127.0.0.1:1`));
    socket.on('error', () => undefined).destroy();
    expect(atOnce.mock.contexts).toContain(socket);
    atOnce.mockRestore();
  });

  it('is also ready with an untrusted certificate if rejectUnauthorized is false', async () => {
    await using wire = await startWire({ tls: await certificateFor() });
    const socket = connectSocket(new URL(wire.wssUrl), { rejectUnauthorized: false });
    await new Promise<void>((resolve) => whenReady(socket, resolve));
    expect(isReady(socket)).toBe(true);
    socket.destroy();
  });

  it('is not ready after the TCP connection and before the end of the TLS handshake', async () => {
    await using gate = await startGate(['silence']);
    const socket = connectSocket(new URL(`wss://127.0.0.1:${gate.port}`));
    await once(socket, 'connect');
    expect(isReady(socket)).toBe(false);
    socket.destroy();
  });

  it.each<[string, string | undefined, string | false]>([
    ['127.0.0.1', undefined, false],
    ['localhost', undefined, 'localhost'],
    ['127.0.0.1', 'feed.example', 'feed.example'],
    ['localhost', 'feed.example', 'feed.example'],
  ])('sends %s as the server name, with the servername %s, as %s', async (host, servername, named) => {
    const tls = await certificateFor(servername);
    await using wire = await startWire({ tls });
    const url = new URL(`wss://${host}:${portOf(wire.wssUrl)}`);
    const socket = connectSocket(url, { ca: tls.cert, ...(servername && { servername }) });
    await once(socket, 'secureConnect');
    while (wire.open.size === 0) await new Promise((resolve) => setImmediate(resolve));
    expect([...wire.open]).toMatchObject([{ servername: named }]);
    socket.destroy();
  });
});
