/** @lane clock */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { type FaultProxyOptions, startFaultProxy } from './fault-proxy.js';
import type { Faults, Flow } from './faults.js';
import { listen } from './listen.js';

type End = ReturnType<typeof watch>;

/** One end of a connection, and what it received. */
const watch = (socket: Socket) => {
  const chunks: Buffer[] = [];
  const arrivedMs: number[] = [];
  socket.setNoDelay().on('data', (chunk) => {
    chunks.push(chunk);
    arrivedMs.push(performance.now());
  });
  const bytes = () => Buffer.concat(chunks);
  return {
    socket,
    chunks,
    arrivedMs,
    bytes,
    text: () => bytes().toString(),
    /** Resolves with `FIN` or an error code when the connection ends. */
    ended: new Promise<string>((resolve) => {
      socket
        .once('end', () => resolve('FIN'))
        .once('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)));
    }),
    /** Resolves when this many bytes have been received. */
    received: async (count: number) => {
      while (bytes().length < count) await once(socket, 'data');
    },
  };
};

/** Starts a TCP server, a fault proxy in front of it, and clients on demand. */
const connectThrough = async (faults: Faults | ((n: number) => Faults), options: Partial<FaultProxyOptions> = {}) => {
  const services: End[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => services.push(watch(socket)));
  const { port: target, ...listening } = await listen(server);
  const faultsOf = typeof faults === 'function' ? faults : () => faults;
  const proxy = await startFaultProxy({ target, faults: faultsOf, ...options });
  const clients: End[] = [];
  return {
    proxy,
    services,
    client: (): End => {
      const client = watch(connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true }));
      clients.push(client);
      return client;
    },
    /** Waits for the n-th connection and returns the server's end of it. */
    service: async (n = 1): Promise<End> => {
      while (services.length < n) await once(server, 'connection');
      return services[n - 1] as End;
    },
    [Symbol.asyncDispose]: async () => {
      for (const { socket } of clients) socket.on('error', () => undefined).destroy();
      await proxy[Symbol.asyncDispose]();
      await listening[Symbol.asyncDispose]();
    },
  };
};

/** Creates bytes whose values encode their position. */
const kilobytes = (count: number): Buffer => Buffer.alloc(count * 1_024, Buffer.from([...Array(251).keys()]));

it('the proxy forwards all bytes, FIN and resets in both directions', async () => {
  await using net = await connectThrough({});
  const [client, other] = [net.client(), net.client()];
  client.socket.end('question');
  const services = [await net.service(1), await net.service(2)] as const;
  expect(await services[0].ended).toBe('FIN');
  services[0].socket.end(kilobytes(1_500));
  expect(await client.ended).toBe('FIN');
  expect(services[0].text()).toBe('question');
  expect(client.bytes().equals(kilobytes(1_500))).toBe(true);
  other.socket.resetAndDestroy();
  expect(await services[1].ended).toBe('ECONNRESET');
  expect([net.proxy.connections, net.proxy.open]).toEqual([2, 0]);
});

describe('the flow of bytes', () => {
  it.each<[string, Flow, size: number, chunks: (count: number, ms: number) => boolean]>([
    ['limited to a number of bytes per second', { bytesPerSecond: 100_000 }, 20, (_, ms) => ms > 150],
    ['delayed', { delayMs: 150, jitterMs: 50 }, 1, (_, ms) => ms > 145],
    ['split into small pieces', { segments: 'split' }, 8, (count) => count >= 8],
    ['split into bytes', { segments: 'drip' }, 2, (count) => count >= 200],
  ])('is %s but complete', async (_, toClient, size, isSo) => {
    await using net = await connectThrough({ toClient });
    const client = net.client();
    const startedMs = performance.now();
    (await net.service()).socket.write(kilobytes(size));
    await client.received(size * 1_024);
    expect(isSo(client.chunks.length, performance.now() - startedMs)).toBe(true);
    expect(client.bytes().equals(kilobytes(size))).toBe(true);
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
    expect(client.bytes().equals(kilobytes(100).subarray(0, afterBytes))).toBe(true);
    expect(await service.ended).toBe('ECONNRESET');
  });
});
