import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { tradeFeed$ } from '../../src/index.js';
import type { ClusterEngine } from '../../src/cluster/engine/cluster-engine.js';
import { memoryEngine } from '../../src/cluster/index.js';
import type { Presence } from '../../src/cluster/election/election.js';
import { readPresence, writeControl } from '../../src/cluster/messages/control.js';
import { readClusterState, requestHandOver, resumeCluster } from '../../src/cluster/operate.js';
import { subjectsOf } from '../../src/cluster/subjects.js';
import { waitFor } from '../support/wait-for.js';
import { startTestCluster, type TestCluster, type TestReplica } from './support/replicas.js';

const { standby } = subjectsOf('main');
let engine: ClusterEngine;
let cluster: TestCluster;
let presences: Set<string | undefined>;

beforeEach(async () => {
  engine = memoryEngine();
  presences = new Set();
  engine.subscribe(standby).subscribe((data) => presences.add(readPresence(data)?.replica));
  cluster = await startTestCluster(engine);
});
afterEach(async () => {
  await cluster[Symbol.asyncDispose]();
});

const gapsOf = ({ events }: TestReplica): number => events.filter(({ type }) => type === 'gap').length;

/** Waits until a replica has reported that it could own the connection. */
const reported = (replica: TestReplica) => waitFor(() => presences.has(replica.cluster.status.replica));

describe('the operator of a cluster', () => {
  it('reads the standbys that report themselves while it waits, the oldest first, and ignores other messages', async () => {
    const state = readClusterState(engine, 'main', 1);
    const messages: readonly Presence[] = [
      { replica: 'young', since: 2 },
      { replica: 'old', since: 1 },
      { replica: 'young', since: 2 },
    ];
    for (const each of messages) engine.publish(standby, writeControl(each));
    engine.publish(standby, Buffer.from('?'));
    expect((await state).standbys).toEqual([messages[1], messages[0]]);
  });

  it('reads no key before the first owner', async () => {
    expect(await readClusterState(engine, 'main', 1)).toEqual({ key: undefined, standbys: [] });
    expect(await requestHandOver(engine, 'main')).toBe(false);
    expect(await resumeCluster(engine, 'main')).toBe(false);
  });

  it('moves the ownership to another replica, and back', async () => {
    const [one, other] = [cluster.start('one'), cluster.start('other')];
    const owner = await cluster.owner(one, other);
    const rest = owner === one ? other : one;
    const { key } = await readClusterState(engine, 'main', 1);
    expect(key).toMatchObject({ owner: owner.cluster.status.replica, phase: 'open' });
    let changes = 0;
    for (const next of [rest, owner]) {
      await reported(next);
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
    const after = (await readClusterState(engine, 'main', 1)).key;
    expect(after?.owner).toBe(owner.cluster.status.replica);
    const names = after?.changes.map((change) => [change.owner.replace(/-[^-]*$/, ''), change.cause]);
    expect(names).toEqual([
      [owner.name, 'first'],
      [rest.name, 'hand-over'],
      [owner.name, 'hand-over'],
    ]);
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
