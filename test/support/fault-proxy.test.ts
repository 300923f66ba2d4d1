import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { kilobytes, connectThrough } from './connect-through.js';

describe('without a fault', () => {
  it('forwards all bytes in both directions, and FIN', async () => {
    await using net = await connectThrough({});
    const client = net.client();
    client.socket.end('question');
    const service = await net.service();
    expect(await service.ended).toBe('FIN');
    service.socket.end(kilobytes(3_000));
    expect(await client.ended).toBe('FIN');
    expect(service.text()).toBe('question');
    expect(Buffer.concat(client.chunks).equals(kilobytes(3_000))).toBe(true);
    expect([net.proxy.connections, net.proxy.open]).toEqual([1, 0]);
  });

  it('forwards a reset from either side', async () => {
    await using net = await connectThrough({});
    const [one, other] = [net.client(), net.client()];
    const services = [await net.service(1), await net.service(2)] as const;
    one.socket.resetAndDestroy();
    expect(await services[0].ended).toBe('ECONNRESET');
    services[1].socket.resetAndDestroy();
    expect(await other.ended).toBe('ECONNRESET');
  });
});

describe('connections', () => {
  it('are refused on request, and without a target', async () => {
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

  it('are reset when the port of the target is closed', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    await using net = await connectThrough({}, { target: port });
    expect(await net.client().ended).toBe('ECONNRESET');
  });

  it('are reordered: one connects to the target after the next', async () => {
    await using net = await connectThrough((n) => (n === 1 ? { connectAfter: 'next' } : {}), { holdMs: 5_000 });
    net.client().socket.write('first');
    await once(net.client().socket.setNoDelay(), 'connect');
    for (const n of [1, 2]) await net.service(n);
    await net.services[1]?.received(5);
    expect(net.services.map((service) => service.text())).toEqual(['', 'first']);
  });

  it('that wait for the next one connect after a time limit', async () => {
    await using net = await connectThrough({ connectAfter: 'next' }, { holdMs: 20 });
    net.client().socket.write('alone');
    await (await net.service()).received(5);
  });

  it.each([
    ['reset', 'ECONNRESET'],
    ['end', 'FIN'],
  ] as const)('that are open end with %s()', async (method, seen) => {
    await using net = await connectThrough({});
    const clients = [net.client(), net.client()];
    const services = [await net.service(1), await net.service(2)];
    net.proxy[method]();
    for (const { ended } of [...clients, ...services]) expect(await ended).toBe(seen);
  });

  it('that are open become half-open with halfOpen(), later ones do not', async () => {
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
