import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { tradeFeed$ } from '../../src/index.js';
import type { ClusterEngine } from '../../src/cluster/engine/cluster-engine.js';
import { memoryEngine } from '../../src/cluster/index.js';
import { readClusterState, requestHandOver, resumeCluster } from '../../src/cluster/operate.js';
import { waitFor } from '../support/wait-for.js';
import { startTestCluster, type TestCluster, type TestReplica } from './support/replicas.js';

let engine: ClusterEngine;
let cluster: TestCluster;

beforeEach(async () => {
  engine = memoryEngine();
  cluster = await startTestCluster(engine);
});
afterEach(async () => {
  await cluster[Symbol.asyncDispose]();
});

const gapsOf = ({ events }: TestReplica): number => events.filter(({ type }) => type === 'gap').length;

const standbysOf = async (count: number) => {
  for (;;) {
    const state = await readClusterState(engine, 'main');
    if (state.standbys.length === count) return state;
  }
};

describe('the operator of a cluster', () => {
  it('reads no key before the first owner', async () => {
    expect(await readClusterState(engine, 'main', 1)).toEqual({ key: undefined, standbys: [] });
    expect(await requestHandOver(engine, 'main')).toBe(false);
    expect(await resumeCluster(engine, 'main')).toBe(false);
  });

  it('moves the ownership to another replica, and back', async () => {
    const [one, other] = [cluster.start('one'), cluster.start('other')];
    const owner = await cluster.owner(one, other);
    const rest = owner === one ? other : one;
    const { key, standbys } = await standbysOf(1);
    expect(key).toMatchObject({ owner: owner.cluster.status.replica, phase: 'open' });
    expect(standbys[0]?.replica).toBe(rest.cluster.status.replica);
    let changes = 0;
    for (const next of [rest, owner]) {
      await standbysOf(1);
      expect(await requestHandOver(engine, 'main')).toBe(true);
      await waitFor(() => next.cluster.status.role === 'owning');
      changes += 1;
      await waitFor(() => [one, other].every((each) => gapsOf(each) === changes));
    }
    cluster.push('a', 'b');
    await waitFor(() => [one, other].every(({ texts }) => texts().length === 2));
    expect([one, other].map(({ texts, error }) => [texts(), error()])).toEqual([
      [['a', 'b'], undefined],
      [['a', 'b'], undefined],
    ]);
    // The old run of a replica has a separate id.
    expect((await readClusterState(engine, 'main', 1)).key?.owner).toBe(owner.cluster.status.replica);
  });

  it('lets the only replica connect again', async () => {
    const replica = cluster.start('only');
    await cluster.owner(replica);
    const { generation } = replica.cluster.status;
    expect(await requestHandOver(engine, 'main')).toBe(true);
    await waitFor(() => gapsOf(replica) === 1);
    expect(replica.cluster.status.generation).toBeGreaterThan(generation);
    cluster.push('a');
    await waitFor(() => replica.texts().length === 1);
  });

  it('resumes a cluster that a foreign client has stopped', async () => {
    const replica = cluster.start('one');
    await cluster.owner(replica);
    const foreign = tradeFeed$('market', { baseUrl: cluster.service.baseUrl, apiKey: cluster.apiKey }).subscribe({
      error: () => undefined,
    });
    await waitFor(() => replica.error());
    foreign.unsubscribe();
    expect((await readClusterState(engine, 'main', 1)).key).toMatchObject({
      phase: 'stopped',
      stop: { at: expect.any(Number) },
    });
    expect(await resumeCluster(engine, 'main')).toBe(true);
    expect(await resumeCluster(engine, 'main')).toBe(false);
    await cluster.owner(cluster.start('two'));
  });
});
