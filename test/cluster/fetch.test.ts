/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ClusterEngine } from '../../src/cluster/index.js';
import { connectEngine } from '../peers/brokers.mjs';
import { startFaultProxy } from '../support/fault-proxy.js';
import { waitFor } from '../support/wait-for.js';
import { becomes, describeInstalled, type RealServer, startServer } from './support/real-server.js';
import { startTestCluster, type TestCluster, type TestReplica } from './support/replicas.js';

const payload = 'x'.repeat(1_000);
/** A second of a busy feed: more than a direct read of NATS takes. */
const burst = 500;

describeInstalled('nats', 'replicas with a real store: NATS', () => test('nats'));
describeInstalled('redis', 'replicas with a real store: Redis', () => test('redis'));

function test(kind: 'nats' | 'redis'): void {
  let server: RealServer;
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
    const close = async (): Promise<void> => {
      await cluster[Symbol.asyncDispose]();
      for (const each of connections) await each.close();
      await wire[Symbol.asyncDispose]();
    };
    return { cluster, owner, follower, wire, port, cut, [Symbol.asyncDispose]: close };
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

  const expectAll = async (owner: TestReplica, follower: TestReplica): Promise<void> => {
    const all = owner.texts();
    await waitFor(() => follower.texts().at(-1) === all.at(-1), {
      what: () => `${follower.texts().length} of ${all.length} frames`,
    });
    expect(follower.texts()).toEqual(all);
    expect(follower.events.filter(({ type }) => type === 'gap')).toEqual([]);
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
}
