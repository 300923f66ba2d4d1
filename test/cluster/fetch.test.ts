/**
 * @lane brokers
 * @ci
 */
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { createServer } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { relayFeed$ } from '../../src/browser/index.js';
import type { ClusterEngine } from '../../src/cluster/index.js';
import { connectEngine } from '../peers/brokers.mjs';
import { createRelay, relayHandler } from '../../src/relay/index.js';
import type { ClusterEvent, FeedEvent, RelayedEvent } from '../../src/protocol/event.js';
import { listen } from '../support/listen.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { waitFor } from '../support/wait-for.js';
import type { Place } from '../../src/protocol/place.js';
import { becomes, describeInstalled, type RealServer, startServer } from './support/real-server.js';
import { startTestCluster, type TestCluster, type TestReplica, windowsFrom, windowsOf } from './support/replicas.js';
import { linesOf, noting, read } from './support/stored.js';

const payload = 'x'.repeat(1_000);
/** A second of a busy feed: more than a direct read of NATS takes. */
const burst = 500;

describeInstalled('nats', 'replicas with a real store: NATS', () => test('nats'));
describeInstalled('redis', 'replicas with a real store: Redis', () => test('redis'));

function test(kind: 'nats' | 'redis'): void {
  let server: RealServer;
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  beforeAll(async () => {
    server = await startServer(kind);
  });
  afterAll(() => server.stop());

  /** Starts an owner, and a follower whose connection to the engine can be cut. */
  const start = async (account: string) => {
    const { port } = server.broker;
    const wire = await startFaultProxy({ target: port });
    const connections = await Promise.all([connectEngine(kind, port), connectEngine(kind, wire.port)]);
    const [own, cut] = connections.map(({ engine }) => engine) as [ClusterEngine, ClusterEngine];
    await Promise.all([becomes(own), becomes(cut)]);
    const cluster = await startTestCluster(own, true);
    const owner = await cluster.startOwner('owner', { account });
    const follower = cluster.start('follower', { account, engine: cut, canOwn: false });
    await cluster.owner(owner, follower);
    const closing = connections.map((each) => () => each.close());
    const close = async (): Promise<void> => {
      await cluster[Symbol.asyncDispose]();
      for (const each of closing) await each();
      await wire[Symbol.asyncDispose]();
    };
    return { cluster, owner, follower, wire, port, cut, closing, [Symbol.asyncDispose]: close };
  };

  /** Pushes frames until the owner has them all. */
  const push = async ({ push }: TestCluster, owner: TestReplica, count: number): Promise<void> => {
    const until = owner.texts().length + count;
    for (let n = owner.texts().length; n < until; n += 1) {
      push(`${n} ${payload}`);
      if (n % 10 === 0) await nextTurn();
    }
    await waitFor(() => owner.texts().length === until, { what: () => `${owner.texts().length} of ${until} frames` });
  };

  /** Serves a replica's events to pages. */
  const serve = async ({ cluster }: TestReplica): Promise<number> => {
    const relay = createRelay(cluster.events$, { cluster });
    relay.hold();
    const server = await listen(createServer(relayHandler(relay, { authorize: () => true })));
    ends.push(async () => {
      relay.close();
      await server[Symbol.asyncDispose]();
    });
    return server.port;
  };

  const expectAll = async (owner: TestReplica, follower: TestReplica): Promise<void> => {
    const all = owner.texts();
    await waitFor(() => follower.texts().at(-1) === all.at(-1), {
      what: () => `${follower.texts().length} of ${all.length} frames`,
    });
    expect(follower.texts()).toEqual(all);
    expect(follower.events.filter(({ type }) => type === 'gap')).toEqual([]);
  };

  /** Waits until windows are of all that was pushed. Those that are complete are the same as those of the owner. */
  const expectWindows = async (
    owner: TestReplica,
    ...all: readonly ReturnType<typeof windowsFrom>[]
  ): Promise<void> => {
    const newestAt = Math.max(...owner.events.flatMap((event) => (event.type === 'frame' ? event.receivedAt : [])));
    await waitFor(() => all.every((windows) => (windows.at(-1)?.end ?? 0) > newestAt));
    const ofOwner = await windowsOf(owner);
    for (const windows of all) {
      const complete = windows.filter((window) => window.complete && window.end <= newestAt);
      const from = complete[0]!.start;
      expect(complete).toEqual(ofOwner.filter(({ start, end }) => start >= from && end <= newestAt));
    }
  };

  it('fetch what a follower missed while it was cut off: no frame is lost, and none comes twice', async () => {
    await using started = await start('cut');
    const { cluster, owner, follower, wire, port, cut } = started;
    await push(cluster, owner, burst);
    for (let n = 0; n < 2; n += 1) {
      wire.target = undefined;
      wire.reset();
      await becomes(cut, false);
      await push(cluster, owner, (1 + 3 * n) * burst);
      wire.target = port;
      await push(cluster, owner, 10);
      await expectAll(owner, follower);
    }
  });

  it('have the same windows as a replica that was not, also for who subscribes just before, or meanwhile', async () => {
    await using started = await start('windows');
    const { cluster, owner, follower, wire, port, cut } = started;
    const windows = [windowsFrom(follower)];
    await push(cluster, owner, burst);
    await expectAll(owner, follower);
    windows.push(windowsFrom(follower));
    await push(cluster, owner, 1);
    await expectAll(owner, follower);
    wire.target = undefined;
    wire.reset();
    await becomes(cut, false);
    windows.push(windowsFrom(follower));
    await push(cluster, owner, 2 * burst);
    wire.target = port;
    await push(cluster, owner, 10);
    await expectAll(owner, follower);
    await expectWindows(owner, ...windows);
  });

  it('begin with what follows if they are subscribed again meanwhile: nothing comes twice', async () => {
    await using started = await start('again');
    const { cluster, owner, follower, wire, port, cut } = started;
    await push(cluster, owner, burst);
    await expectAll(owner, follower);
    wire.target = undefined;
    wire.reset();
    await becomes(cut, false);
    follower.unsubscribe();
    const again: (FeedEvent | ClusterEvent)[] = [];
    follower.cluster.events$.subscribe({ next: (event) => again.push(event), error: () => undefined });
    await push(cluster, owner, burst);
    wire.target = port;
    const texts = () => again.flatMap((event) => (event.type === 'frame' ? [event.text()] : []));
    while (texts().length === 0) await push(cluster, owner, 10);
    await push(cluster, owner, burst);
    await waitFor(() => texts().at(-1) === owner.texts().at(-1), { what: () => `${texts().length} frames` });
    expect(texts()).toEqual(owner.texts().slice(-texts().length));
    expect(owner.texts().length - texts().length).toBeGreaterThanOrEqual(2 * burst);
    const told = again.filter(({ type }) => type === 'opened' || type === 'gap');
    expect(told).toEqual([expect.objectContaining({ type: 'opened', completeFrom: expect.any(Number) })]);
  });

  it('have the last minute if they start late: as the others received it, once, and in the same windows', async () => {
    await using started = await start('late');
    const { cluster, owner, follower, port, closing } = started;
    await push(cluster, owner, 2 * burst);
    const { engine, close } = await connectEngine(kind, port);
    closing.push(close);
    await becomes(engine);
    const late = cluster.start('late', { account: 'late', engine, sinceMs: 60_000 });
    const live = windowsFrom(late);
    await push(cluster, owner, burst);
    await expectAll(owner, late);
    await expectAll(owner, follower);
    await expectWindows(owner, live);
    expect(late.cluster.status).toMatchObject({ surplus: 0, line: { from: 0 } });
    expect(live.flatMap(({ value }) => value).length).toBeGreaterThan(2 * burst);
  });

  it('lose nothing while the engine restarts: the owner sends again what was not confirmed', async () => {
    await using started = await start('engine');
    const { cluster, owner, follower, cut } = started;
    await push(cluster, owner, burst);
    await server.broker.kill();
    await becomes(cut, false);
    await push(cluster, owner, 2 * burst);
    await server.broker.start();
    await push(cluster, owner, 10);
    await expectAll(owner, follower);
  });

  it('have what a page lacks after each of its places: as it was emitted, and once', async () => {
    await using started = await start('stored');
    const { cluster, owner, follower } = started;
    const { events, places, stop } = noting(follower.cluster);
    ends.push(stop);
    await push(cluster, owner, burst);
    cluster.service.dropConnections();
    await waitFor(() => events.some(({ type }) => type === 'gap'));
    await push(cluster, owner, burst);
    await waitFor(() => follower.texts().length === owner.texts().length);
    const all = linesOf(events);
    const texts = owner.texts().length;
    // Of the newest messages, the store has confirmed some only.
    const stored = async (place: Place) => {
      const found = await read(follower.cluster, place, { isNext: true });
      return found.end?.offset === follower.cluster.position?.offset ? found : undefined;
    };
    for (let n = 0; n < places.length - 1; n += 97) {
      const lines = linesOf(events.slice(n + 1));
      const found = await waitFor(() => stored(places[n]!));
      expect(found.lines).toEqual(lines);
    }
    const newest = await read(follower.cluster, places[0]!, { maxBytes: 100_000 });
    const cut = newest.lines.findIndex((line) => line.includes('"relay-behind"'));
    const frames = newest.lines.filter((line) => line.includes('"type":"frame"'));
    expect(frames.length).toBeGreaterThan(20);
    expect(frames).toEqual(all.slice(-frames.length));
    expect(cut).toBeGreaterThan(-1);
    expect(frames.length).toBeLessThan(texts / 2);
  });

  it('send each frame once to a page that moves between them, also while one of them was cut off', async () => {
    await using started = await start('pages');
    const { cluster, owner, follower, wire, port, cut } = started;
    const ports = [await serve(owner), await serve(follower)] as const;
    const balancer = await startFaultProxy({ target: ports[1] });
    ends.push(() => balancer[Symbol.asyncDispose]());
    const events: RelayedEvent[] = [];
    const page = relayFeed$(`http://127.0.0.1:${balancer.port}/`).subscribe((event) => events.push(event));
    ends.push(() => page.unsubscribe());
    const texts = () => events.flatMap((event) => (event.type === 'frame' ? [event.text()] : []));
    const isHere = (what: string) =>
      waitFor(() => texts().at(-1) === owner.texts().at(-1), { what: () => `${what}: ${texts().length}` });
    const moveTo = (n: 0 | 1): void => {
      balancer.target = ports[n];
      balancer.reset();
    };
    await push(cluster, owner, 50);
    await isHere('on the follower');
    wire.target = undefined;
    wire.reset();
    await becomes(cut, false);
    await push(cluster, owner, burst);
    moveTo(0);
    await push(cluster, owner, 10);
    await isHere('on the owner, while the follower is cut off');
    moveTo(1);
    wire.target = port;
    await push(cluster, owner, 10);
    await isHere('on the follower, which fetches');
    // It came while the first frames were sent.
    expect(texts().length).toBeGreaterThan(burst + 20);
    expect(texts()).toEqual(owner.texts().slice(-texts().length));
    expect(events.filter(({ type }) => type === 'gap')).toEqual([]);
  });

  it('let a page go on after a restart of its relay: no frame is lost, and none comes twice', async () => {
    await using started = await start('restarts');
    const { cluster, owner } = started;
    const first = await serve(owner);
    const balancer = await startFaultProxy({ target: first });
    ends.push(() => balancer[Symbol.asyncDispose]());
    const events: RelayedEvent[] = [];
    const page = relayFeed$(`http://127.0.0.1:${balancer.port}/`).subscribe((event) => events.push(event));
    ends.push(() => page.unsubscribe());
    const texts = () => events.flatMap((event) => (event.type === 'frame' ? [event.text()] : []));
    await push(cluster, owner, 50);
    await waitFor(() => texts().at(-1) === owner.texts().at(-1));
    for (let restart = 1; restart <= 3; restart += 1) {
      balancer.target = undefined;
      balancer.reset();
      await push(cluster, owner, burst);
      const next = cluster.start(`restarted-${restart}`, { account: 'restarts', canOwn: false });
      balancer.target = await serve(next);
      await push(cluster, owner, 10);
      const what = () => `${texts().length} of ${owner.texts().length} frames`;
      await waitFor(() => texts().at(-1) === owner.texts().at(-1), { what });
    }
    expect(texts()).toEqual(owner.texts().slice(-texts().length));
    expect(texts().length).toBeGreaterThan(3 * burst);
    expect(events.filter(({ type }) => type === 'gap')).toEqual([]);
    const times = events.flatMap((event) => (event.type === 'frame' ? [event.receivedAt] : []));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
  });
}
