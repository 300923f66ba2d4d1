import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect as connectTls, createServer as createTls } from 'node:tls';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { certificateFor } from './certificate.js';
import { kilobytes, connectThrough } from './connect-through.js';
import { type Faults, startFaultProxy } from './fault-proxy.js';

describe('the flow of bytes', () => {
  it('is delayed in order, and the delays of chunks overlap', async () => {
    await using net = await connectThrough({ toClient: { delayMs: 60, jitterMs: 40 } });
    const client = net.client();
    const service = await net.service();
    const sentMs = performance.now();
    for (const digit of '0123456789') {
      service.socket.write(digit);
      await delay(5);
    }
    await client.received(10);
    expect(client.text()).toBe('0123456789');
    expect((client.arrivedMs[0] as number) - sentMs).toBeGreaterThanOrEqual(59);
    // Delays in sequence would take 600 ms.
    expect((client.arrivedMs.at(-1) as number) - sentMs).toBeLessThan(500);
  });

  it('is limited to a number of bytes per second', async () => {
    await using net = await connectThrough({ toServer: { bytesPerSecond: 100_000 } });
    const client = net.client();
    const startedMs = performance.now();
    client.socket.write(kilobytes(20));
    const service = await net.service();
    await service.received(20 * 1_024);
    expect(performance.now() - startedMs).toBeGreaterThan(150);
    expect(Buffer.concat(service.chunks).equals(kilobytes(20))).toBe(true);
  });

  it.each([
    ['split', 8, 8],
    ['drip', 2, 200],
  ] as const)('is split into small pieces: %s', async (segments, size, atLeast) => {
    await using net = await connectThrough({ toClient: { segments } });
    const client = net.client();
    (await net.service()).socket.write(kilobytes(size));
    await client.received(size * 1_024);
    expect(client.chunks.length).toBeGreaterThanOrEqual(atLeast);
    expect(Buffer.concat(client.chunks).equals(kilobytes(size))).toBe(true);
  });

  it('is joined into one chunk', async () => {
    await using net = await connectThrough({ toClient: { segments: 'coalesced' } });
    const client = net.client();
    const service = await net.service();
    for (const digit of '01234') {
      service.socket.write(digit);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.received(5);
    expect(client.chunks.map(String)).toEqual(['01234']);
  });
});

describe('a cut', () => {
  it.each([0, 1, 1_000, 70_000])('after %i bytes forwards exactly that many, then resets', async (afterBytes) => {
    await using net = await connectThrough({ toClient: { cut: { afterBytes, how: 'reset' } } });
    const client = net.client();
    const service = await net.service();
    service.socket.write(kilobytes(100));
    // Node reports a reset that arrives together with the last bytes as an end.
    expect(['ECONNRESET', 'FIN']).toContain(await client.ended);
    expect(Buffer.concat(client.chunks).equals(kilobytes(100).subarray(0, afterBytes))).toBe(true);
    expect(await service.ended).toBe('ECONNRESET');
  });

  it('ends one direction with FIN and keeps the other open', async () => {
    await using net = await connectThrough({ toClient: { cut: { afterBytes: 3, how: 'end' } } });
    const client = net.client();
    const service = await net.service();
    service.socket.write('abcdef');
    expect(await client.ended).toBe('FIN');
    client.socket.write('still here');
    await service.received(10);
    expect(client.text()).toBe('abc');
  });

  it('discards everything in both directions from then on', async () => {
    await using net = await connectThrough({ toServer: { cut: { afterBytes: 3, how: 'half-open' } } });
    const client = net.client();
    client.socket.write('abcdef');
    const service = await net.service();
    await service.received(3);
    service.socket.end('discarded');
    client.socket.end('discarded');
    const ended = Promise.race([client.ended, service.ended]);
    expect(await Promise.race([ended, delay(50, 'silence')])).toBe('silence');
    expect([client.text(), service.text()]).toEqual(['', 'abc']);
  });

  it('within the first bytes breaks a TLS handshake', async () => {
    const certificate = await certificateFor();
    let secured = 0;
    const server = createTls(certificate, () => (secured += 1)).on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const target = (server.address() as AddressInfo).port;
    const faults = (n: number): Faults => (n === 1 ? { toClient: { cut: { afterBytes: 100, how: 'reset' } } } : {});
    await using proxy = await startFaultProxy({ target, faults });
    const attempt = () =>
      new Promise<string>((resolve) => {
        const socket = connectTls({ port: proxy.port, host: '127.0.0.1', ca: certificate.cert });
        const report = (outcome: string) => () => {
          socket.destroy();
          resolve(outcome);
        };
        socket.once('secureConnect', report('secure')).once('error', report('broken'));
      });
    expect([await attempt(), secured]).toEqual(['broken', 0]);
    expect(await attempt()).toBe('secure');
    server.close();
  });
});
