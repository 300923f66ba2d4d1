import { beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTls } from 'node:tls';
import { type TradeFeedError, tradeFeed$ } from '../../src/index.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import { optionsFor, outcomeOf, plantedKey } from '../support/feed.js';
import { issue, startWire } from '../support/wire.js';

let certificate: Certificate;
beforeAll(async () => {
  certificate = await certificateFor();
});

/** A TCP server on loopback that stores all received bytes. */
const listening = async (answer: string) => {
  const heard: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('data', (bytes: Buffer) => heard.push(bytes));
    socket.once('data', () => socket.end(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    heard: () => Buffer.concat(heard).toString('latin1'),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};

describe('a connection without TLS, or with a weaker one', () => {
  it.each([
    'http://feed.example',
    'http://localhost.example',
    'http://127.0.0.1.example',
    'ws://127.0.0.1',
    'http://0',
  ])('is refused as a base URL, from the call itself: %s', (baseUrl) => {
    const call = () => tradeFeed$('market', { baseUrl, apiKey: plantedKey });
    expect(call).toThrow('`baseUrl` must be an https: address');
  });

  it.each(['ws://feed.example/ws', 'http://127.0.0.1/ws', 'ws://0/ws'])(
    'is refused as a wss_url: %s',
    async (wss_url) => {
      await using wire = await startWire({ ticket: [issue({ wss_url })] });
      const { failure } = await outcomeOf(optionsFor(wire));
      expect(failure).toMatchObject({ code: 'invalid-ticket', verdict: 'stop' });
    },
  );

  it('receives no key: a service that answers https: without TLS', async () => {
    await using plain = await listening('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    const { failure } = await outcomeOf(optionsFor({ baseUrl: `https://${plain.host}` }));
    expect(failure).toMatchObject({ code: 'ticket-endpoint-without-tls', verdict: 'stop' });
    expect(plain.heard()).not.toBe('');
    expect(plain.heard()).not.toContain(plantedKey);
  });

  it('receives no ticket: a service that answers wss: without TLS', async () => {
    await using plain = await listening('HTTP/1.1 101 Switching Protocols\r\n\r\n');
    await using wire = await startWire({ ticket: [issue({ wss_url: `wss://${plain.host}/ws` })] });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure).toMatchObject({ code: 'handshake-unreachable' });
    expect(plain.heard()).not.toBe('');
    expect(plain.heard()).not.toContain('planted-ticket');
  });

  it('is refused: TLS 1.1 and older', async () => {
    // Such a server receives a ClientHello that offers 1.2 or later.
    const offers: string[] = [];
    const old = createTls({ ...certificate, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' });
    old.on('tlsClientError', (error: NodeJS.ErrnoException) => offers.push(String(error.code))).listen(0, '127.0.0.1');
    await once(old, 'listening');
    const { port } = old.address() as AddressInfo;
    const options = optionsFor({ baseUrl: `https://127.0.0.1:${port}` }, { tls: { ca: certificate.cert } });
    const { failure }: { failure: TradeFeedError } = await outcomeOf(options);
    old.close();
    await once(old, 'close');
    expect(failure).toMatchObject({ code: 'ticket-endpoint-unreachable' });
    expect(offers).toContain('ERR_SSL_UNSUPPORTED_PROTOCOL');
  });

  it('has an untrusted certificate: the key is sent only if `rejectUnauthorized` is false', async () => {
    await using wire = await startWire({ tls: certificate });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure).toMatchObject({ code: 'untrusted-certificate', verdict: 'stop' });
    expect(wire.tickets).toHaveLength(0);
    await outcomeOf(optionsFor(wire, { tls: { rejectUnauthorized: false }, idleTimeoutMs: 20 }));
    expect(wire.tickets[0]?.headers['x-api-key']).toBe(plantedKey);
  });
});
