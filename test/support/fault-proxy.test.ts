import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { cases } from './cases.js';
import { type FaultProxyOptions, startFaultProxy } from './fault-proxy.js';
import { type Faults, type Flow, randomFaults, seededRandom } from './faults.js';
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
const kilobytes = (count: number): Buffer => Buffer.from(Array.from({ length: count * 1_024 }, (_, i) => i % 251));

it('the proxy forwards all bytes, FIN and resets in both directions', async () => {
  await using net = await connectThrough({});
  const [client, other] = [net.client(), net.client()];
  client.socket.end('question');
  const services = [await net.service(1), await net.service(2)] as const;
  expect(await services[0].ended).toBe('FIN');
  services[0].socket.end(kilobytes(3_000));
  expect(await client.ended).toBe('FIN');
  expect(services[0].text()).toBe('question');
  expect(client.bytes().equals(kilobytes(3_000))).toBe(true);
  other.socket.resetAndDestroy();
  expect(await services[1].ended).toBe('ECONNRESET');
  expect([net.proxy.connections, net.proxy.open]).toEqual([2, 0]);
});

describe('connections', () => {
  it('are refused on request, or if there is no target', async () => {
    await using net = await connectThrough((n) => ({ refuse: n === 1 }));
    expect(await net.client().ended).toBe('ECONNRESET');
    const { target } = net.proxy;
    net.proxy.target = undefined;
    expect(await net.client().ended).toBe('ECONNRESET');
    net.proxy.target = target;
    net.client().socket.write('hello');
    await (await net.service()).received(5);
    expect([net.services.length, net.proxy.connections, net.proxy.open]).toEqual([1, 3, 1]);
  });

  it('are reordered, so that one reaches the target after the next', async () => {
    await using net = await connectThrough((n) => (n === 1 ? { connectAfter: 'next' } : {}), { holdMs: 5_000 });
    net.client().socket.write('first');
    await once(net.client().socket.setNoDelay(), 'connect');
    for (const n of [1, 2]) await net.service(n);
    await net.services[1]?.received(5);
    expect(net.services.map((service) => service.text())).toEqual(['', 'first']);
  });

  it.each([
    ['reset', 'ECONNRESET'],
    ['end', 'FIN'],
  ] as const)('end with %s() if they are open', async (method, ending) => {
    await using net = await connectThrough({});
    const ends = [net.client(), net.client(), await net.service(1), await net.service(2)];
    net.proxy[method]();
    for (const { ended } of ends) expect(await ended).toBe(ending);
  });

  it('become half-open with halfOpen() if they are open, but later ones do not', async () => {
    await using net = await connectThrough({});
    const before = net.client();
    const service = await net.service(1);
    net.proxy.halfOpen();
    service.socket.write('discarded');
    const later = net.client();
    (await net.service(2)).socket.write('received');
    await later.received(5);
    expect([before.text(), net.proxy.open]).toEqual(['', 2]);
  });
});

describe('the flow of bytes', () => {
  it('stays in order when delayed, and the delays of chunks overlap', async () => {
    await using net = await connectThrough({ toClient: { delayMs: 600, jitterMs: 100 } });
    const client = net.client();
    const service = await net.service();
    const sentMs = performance.now();
    for (const digit of '0123456789') {
      service.socket.write(digit);
      await delay(5);
    }
    await client.received(10);
    expect(client.text()).toBe('0123456789');
    expect((client.arrivedMs[0] as number) - sentMs).toBeGreaterThanOrEqual(599);
    // Delays in sequence would take 6,000 ms.
    expect((client.arrivedMs.at(-1) as number) - sentMs).toBeLessThan(5_000);
  });

  it.each<[string, Flow, size: number, chunks: (count: number, ms: number) => boolean]>([
    ['limited to a number of bytes per second', { bytesPerSecond: 100_000 }, 20, (_, ms) => ms > 150],
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

  it('can be joined into one chunk', async () => {
    await using net = await connectThrough({ toClient: { segments: 'coalesced', delayMs: 1_500 } });
    const client = net.client();
    const service = await net.service();
    // All arrive long before the first one is due, even on a busy machine.
    for (const digit of '01234') {
      service.socket.write(digit);
      await delay(5);
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
    expect(client.bytes().equals(kilobytes(100).subarray(0, afterBytes))).toBe(true);
    expect(await service.ended).toBe('ECONNRESET');
  });

  it('can end one direction with FIN and keep the other open', async () => {
    await using net = await connectThrough({ toClient: { cut: { afterBytes: 3, how: 'end' } } });
    const client = net.client();
    const service = await net.service();
    service.socket.write('abcdef');
    expect(await client.ended).toBe('FIN');
    client.socket.write('still here');
    await service.received(10);
    expect(client.text()).toBe('abc');
  });

  it('can discard everything in both directions from then on', async () => {
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
});

describe('random faults', () => {
  it('include every kind of fault', () => {
    const random = seededRandom(3);
    const all = JSON.stringify(Array.from({ length: 1_000 }, () => randomFaults(random)));
    const words = ['refuse', 'connectAfter', 'delayMs', 'jitterMs', 'bytesPerSecond', 'split', 'coalesced', 'drip'];
    for (const word of [...words, 'reset', 'end', 'half-open', 'toServer']) expect(all).toContain(`"${word}"`);
  });

  it('never change, lose or add a byte before the cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const { toClient = {} } = randomFaults(seededRandom(seed));
        const { bytesPerSecond: _, ...faults } = toClient;
        await using net = await connectThrough({ toClient: faults }, { random: seededRandom(seed) });
        const client = net.client();
        const service = await net.service();
        // Some faults send byte by byte, so more bytes would take seconds on a busy machine.
        service.socket.end(kilobytes(1));
        const expected = Math.min(faults.cut?.afterBytes ?? Infinity, 1_024);
        await client.received(expected);
        expect(client.bytes().equals(kilobytes(1).subarray(0, expected))).toBe(true);
      }),
      { numRuns: cases(20) },
    );
  });
});
