import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createRelay, relayHandler, type RelayOptions } from '../../src/relay/index.js';
import { Receiver } from '../browser/support.js';
import { opened } from '../operators/stream.js';
import { frame, range, Raw, Source, Web } from './support.js';
import { waitFor } from '../support/wait-for.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Creates a relay with one client, and a function that starts its HTTP server. */
const replica = (source: Source, options: RelayOptions = {}) => {
  const relay = createRelay(source.events$, { batchMs: 0, ...options });
  const stream = relay.messages$().subscribe();
  closing.push(
    () => relay.close(),
    () => stream.unsubscribe(),
  );
  const serve = async (): Promise<Web> => {
    const web = await Web.start(relayHandler(relay, { authorize: () => true }));
    closing.push(() => web[Symbol.asyncDispose]());
    return web;
  };
  return { relay, serve };
};

/** One address for two servers, like a load balancer. Another program may take the port of a closed server, so it is not reused. */
const balancer = async (target: Web) => {
  let { port } = target;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const upstream = connect({ port, host: '127.0.0.1' });
    for (const each of [socket, upstream]) {
      sockets.add(each);
      each.on('error', () => undefined).on('close', () => [socket, upstream].forEach((one) => one.destroy()));
    }
    socket.pipe(upstream).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/feed`,
    switchTo: (web: Web) => ({ port } = web),
  };
};

const timeOf = (event: RelayedEvent): number =>
  event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;

describe('a page whose server is replaced', () => {
  const begin = Date.now() - 60_000;
  const emit = (source: Source, from: number, to: number): void => {
    for (const n of range(from, to)) source.emit(frame(n, begin + n));
  };

  it.each([
    ['a relay of the same source', 1],
    ['a relay of another source', 2],
  ])('resumes at %s: each frame once, times that never decrease, one gap', async (_what, sources) => {
    const source = new Source();
    const other = sources === 1 ? source : new Source();
    const [first, second] = [replica(source), replica(other)];
    const emitBoth = (from: number, to: number) => new Set([source, other]).forEach((each) => emit(each, from, to));
    for (const each of new Set([source, other])) each.emit(opened(begin));
    const web = await first.serve();
    const front = await balancer(web);
    const page = new Receiver(front.url);
    closing.push(() => page.subscription.unsubscribe());
    await waitFor(() => first.relay.status().clients.length === 2);
    emitBoth(1, 500);
    await page.until(({ frames }) => frames.length === 500);
    await web[Symbol.asyncDispose]();
    emitBoth(501, 700);
    front.switchTo(await second.serve());
    await page.until(({ types }) => types.includes('gap'));
    emitBoth(701, 800);
    await page.until(({ texts }) => texts.at(-1) === '800');

    expect(page.texts).toEqual(range(1, 800).map(String));
    const ofFeed = page.events.filter(({ type }) => type === 'frame' || type === 'gap').map(timeOf);
    expect(ofFeed).toEqual(ofFeed.toSorted((a, b) => a - b));
    expect(page.types.slice(1)).toEqual(['relay-lost', ...page.types.slice(2, -2), 'opened', 'gap']);
    const gaps = page.lifecycle.filter(({ type }) => type === 'gap');
    expect(gaps).toEqual([
      expect.objectContaining({ from: begin + 500, failure: expect.objectContaining({ code: 'relay-behind' }) }),
    ]);
  });

  it('writes `maxReplayBytes` for a forged `Last-Event-ID`, and not the whole log', async () => {
    const source = new Source();
    const { relay, serve } = replica(source, { maxReplayBytes: 100_000 });
    const web = await serve();
    source.emit(opened(begin));
    for (const n of range(1, 3_000)) source.emit(frame(`${n} ${'x'.repeat(1_000)}`, begin + n));
    expect(relay.status().stored.bytes).toBeGreaterThan(3e6);
    for (const id of ['x.1.1.1', 'x.0.0.0', `forged.1.1.${begin}`, `forged.9.9.${begin + 1_500}`]) {
      const raw = await Raw.get(web.port, { 'last-event-id': id });
      const text = await raw.until((all) => all.includes('"data":"3000 '));
      raw.socket.destroy();
      expect(text.length).toBeLessThan(110_000);
      expect(text).toContain('"relay-behind"');
    }
  });
});
