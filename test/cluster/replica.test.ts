import { describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { filter, firstValueFrom, NEVER, throwError } from 'rxjs';
import { type ClusterKey, readKey, writeKey } from '../../src/cluster/election/cluster-key.js';
import { type ClusterEngine, memoryEngine } from '../../src/cluster/index.js';
import { readReport, readVoided, writeControl } from '../../src/cluster/messages/control.js';
import { encode } from '../../src/cluster/messages/encode.js';
import type { MessageHead } from '../../src/cluster/messages/feed-message.js';
import { tradeFeedEvents$ } from '../../src/index.js';
import { requestHandOver } from '../../src/cluster/operate.js';
import { subjectsOf } from '../../src/cluster/subjects.js';
import { fakeTimers } from '../support/fake-timers.js';
import { waitFor } from '../support/wait-for.js';
import { startTestCluster } from './support/replicas.js';

const names = subjectsOf('main');
/** A short lease. The times between messages are not options. */
const times = { leaseMs: 300, renewMs: 50, marginMs: 50, suspectMs: 260 };

const keyOf = (fields: Partial<ClusterKey> = {}): ClusterKey => ({
  ...{ v: 1, feed: 'market', epoch: 1, gen: 1, owner: 'other', phase: 'opening', since: 0 },
  ...{ credits: [], evictions: [], changes: [] },
  ...fields,
});

const beatOf = (fields: Partial<MessageHead>): Buffer =>
  encode({
    ...{ kind: 'beat', epoch: 1, gen: 1, owner: 'other', phase: 'open', revision: 1, sequence: 0, frames: 0, at: 1 },
    ...fields,
  });

const revisionOf = async (engine: ClusterEngine) => (await engine.read(names.key))?.revision;

/** Replaces the key, whatever it is. */
const overwrite = async (engine: ClusterEngine, text: string) =>
  engine.compareAndSet(names.key, text, await revisionOf(engine));

/** Holds the results of calls until `release`. */
const held = () => {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let isOn = false;
  return {
    on: () => {
      isOn = true;
    },
    release: () => {
      isOn = false;
      release();
    },
    pass: async <T>(result: Promise<T>): Promise<T> => {
      if (isOn) await released;
      return result;
    },
  };
};

describe('a replica', () => {
  it('ignores messages that no replica sends', async () => {
    const engine = memoryEngine();
    await using test = await startTestCluster(engine);
    const replica = test.start('a');
    await test.owner(replica);
    const { replica: id } = replica.cluster.status;
    const subjects = [names.feed, names.standby, names.voided, names.evicted, names.to(id)];
    for (const subject of subjects) engine.publish(subject, Buffer.from('{"x":1}'));
    expect(await engine.request(names.owner, Buffer.from('?'), 1)).toEqual({ type: 'reply', data: new Uint8Array() });
    test.push('a');
    await waitFor(() => replica.texts().length === 1);
    expect(replica.cluster.status).toMatchObject({ role: 'owning', generation: 1 });
  });

  it('ends with an error if it cannot read the key', async () => {
    const engine = memoryEngine();
    await overwrite(engine, '{"v":2}');
    await using test = await startTestCluster(engine);
    const replica = test.start('a');
    expect(await waitFor(() => replica.error())).toMatchObject({ code: 'invalid-options', option: 'account' });
    expect(replica.events).toMatchObject([{ type: 'stopped', failure: { code: 'invalid-options' } }]);
  });

  it('ends once if the engine refuses all subscriptions', async () => {
    const refused = new Error('no permission');
    const engine: ClusterEngine = { ...memoryEngine(), subscribe: () => throwError(() => refused) };
    await using test = await startTestCluster(engine);
    let errors = 0;
    const { cluster } = test.start('a', { engine });
    cluster.events$.subscribe({ error: () => (errors += 1) });
    expect(errors).toBe(1);
    await nextTurn();
    expect(errors).toBe(1);
  });

  it('ends with an error if the engine refuses the requests to an owner, and opens no connection', async () => {
    const memory = memoryEngine();
    const refused = new Error('no permission');
    const engine: ClusterEngine = { ...memory, respond: () => throwError(() => refused) };
    await using test = await startTestCluster(memory);
    let tickets = 0;
    test.service.events$.pipe(filter(({ type }) => type === 'ticket-issued')).subscribe(() => (tickets += 1));
    const replica = test.start('a', { engine });
    expect(await waitFor(() => replica.error())).toBe(refused);
    // A ticket that the replica requests arrives before that of a later client.
    const later = tradeFeedEvents$('market', { baseUrl: test.service.baseUrl, apiKey: test.apiKey });
    await firstValueFrom(later.pipe(filter(({ type }) => type === 'opened')));
    expect(tickets).toBe(1);
  });

  it('ends with the failure of the service if no replica can own the connection', async () => {
    using _timers = fakeTimers();
    await using test = await startTestCluster(memoryEngine());
    const replica = test.start('wrong', { apiKey: 'not-a-key' });
    const error = await waitFor(() => {
      jest.advanceTimersByTime(50);
      return replica.error();
    });
    expect(error).toMatchObject({ code: 'invalid-api-key', status: 401 });
  });

  it.each<[string, Partial<ClusterEngine>]>([
    ['cannot be read', { request: () => Promise.resolve({ type: 'reply', data: Buffer.from('?') }) }],
    ['does not arrive', { request: () => Promise.reject(new Error('timeout')) }],
  ])('waits for the end of the lease if the answer of the owner %s', async (_, fields) => {
    const memory = memoryEngine();
    const engine: ClusterEngine = { ...memory, ...fields };
    await overwrite(memory, writeKey(keyOf({ phase: 'open' })));
    await using test = await startTestCluster(memory);
    const startedAt = performance.now();
    const replica = test.start('a', { engine, ...times });
    await test.owner(replica);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(times.leaseMs);
    expect(replica.cluster.status.generation).toBe(2);
  });

  it('answers a replica that asks for the owner', async () => {
    const engine = memoryEngine();
    await using test = await startTestCluster(engine);
    const replica = test.start('a');
    await test.owner(replica);
    const { replica: owner } = replica.cluster.status;
    const reply = await engine.request(names.owner, writeControl({ gen: 1, owner }), 1);
    expect(reply.type === 'reply' && readReport(reply.data)).toMatchObject({ gen: 1, owner, phase: 'open' });
  });

  it('asks an owner whose messages do not arrive, and does not claim while it answers', async () => {
    const memory = memoryEngine();
    let questions = 0;
    const engine: ClusterEngine = {
      ...memory,
      subscribe: (subject) => (subject === names.feed ? NEVER : memory.subscribe(subject)),
      request: (subject, ...rest) => {
        if (subject === names.owner) questions += 1;
        return memory.request(subject, ...rest);
      },
    };
    await using test = await startTestCluster(memory);
    const owner = test.start('a');
    await test.owner(owner);
    const isolated = test.start('isolated', { engine, ...times });
    await waitFor(() => questions === 3);
    expect(isolated.cluster.status).toMatchObject({ role: 'following', generation: 1 });
    expect(owner.cluster.status).toMatchObject({ role: 'owning', generation: 1 });
  });

  it('tries again after the engine did not answer', async () => {
    const memory = memoryEngine();
    let calls = 0;
    const engine: ClusterEngine = {
      ...memory,
      read: async (key) => {
        calls += 1;
        return calls === 1 ? Promise.reject(new Error('timeout')) : memory.read(key);
      },
    };
    await using test = await startTestCluster(memory);
    const replica = test.start('a', { engine });
    await test.owner(replica);
    expect(calls).toBeGreaterThan(1);
  });

  it('voids its credit if another replica has claimed before its handshake', async () => {
    const engine = memoryEngine();
    const voided: (number | undefined)[] = [];
    engine.subscribe(names.voided).subscribe((data) => voided.push(readVoided(data)?.gen));
    await using test = await startTestCluster(engine);
    const first = engine.subscribe(names.feed).subscribe(() => {
      first.unsubscribe();
      engine.publish(names.feed, beatOf({ gen: 5, phase: 'opening' }));
    });
    const replica = test.start('a');
    await waitFor(() => voided.length > 0);
    expect(voided).toEqual([1]);
    expect(replica.cluster.status).toMatchObject({ role: 'following', owner: 'other', generation: 5 });
  });

  it('receives an offer while its old connection is still open, and keeps receiving frames', async () => {
    const engine = memoryEngine();
    await using test = await startTestCluster(engine);
    const replica = test.start('a');
    await test.owner(replica);
    const stored = readKey((await engine.read(names.key))!.value);
    const key = keyOf({ epoch: stored.epoch, gen: 2, phase: 'open' });
    const revision = (await overwrite(engine, writeKey(key)))!;
    engine.publish(names.feed, beatOf({ epoch: stored.epoch, gen: 2, revision, phase: 'opening' }));
    await waitFor(() => replica.cluster.status.role === 'following');
    engine.publish(names.to(replica.cluster.status.replica), writeControl({ key, revision }));
    await waitFor(() => replica.cluster.status.generation === 3 && replica.cluster.status.role === 'owning');
    await waitFor(() => replica.events.filter(({ type }) => type === 'gap').length === 1);
    test.push('a');
    await waitFor(() => replica.texts().includes('a'));
    expect(replica.error()).toBeUndefined();
  });
});

describe('a replica that joins again after a hand-over', () => {
  it('ignores the result of a call of its earlier run', async () => {
    const memory = memoryEngine();
    const writes = held();
    const engine: ClusterEngine = {
      ...memory,
      compareAndSet: (...args) => writes.pass(memory.compareAndSet(...args)),
    };
    await using test = await startTestCluster(memory);
    const replica = test.start('a', { engine, handOverMs: 50 });
    await test.owner(replica);
    const { replica: before } = replica.cluster.status;
    writes.on();
    expect(await requestHandOver(memory, 'main')).toBe(true);
    // The earlier run leaves after `handOverMs`, although its write has no result.
    await waitFor(() => replica.cluster.status.replica !== before);
    writes.release();
    await waitFor(() => replica.events.some(({ type }) => type === 'gap'));
    test.push('a');
    await waitFor(() => replica.texts().length === 1);
    expect(replica.cluster.status).toMatchObject({ role: 'owning', generation: 2 });
  });

  it('ignores the answer to a question of its earlier run', async () => {
    const memory = memoryEngine();
    const answers = held();
    answers.on();
    const engine: ClusterEngine = { ...memory, request: (...args) => answers.pass(memory.request(...args)) };
    await overwrite(memory, writeKey(keyOf()));
    await using test = await startTestCluster(memory);
    const replica = test.start('a', { engine, ...times });
    await test.owner(replica);
    const { replica: before } = replica.cluster.status;
    expect(await requestHandOver(memory, 'main')).toBe(true);
    await waitFor(() => replica.cluster.status.replica !== before);
    answers.release();
    await test.owner(replica);
    expect(replica.error()).toBeUndefined();
  });
});

describe('a replica that gives the ownership away for a shutdown', () => {
  it('does not own again because an operator asks for a hand-over at the same time', async () => {
    const engine = memoryEngine();
    await using test = await startTestCluster(engine);
    const replica = test.start('a');
    await test.owner(replica);
    // This standby never accepts.
    engine.publish(names.standby, writeControl({ replica: 'b', since: Date.now() }));
    await nextTurn();
    const leaves = replica.cluster.handOver();
    expect(await requestHandOver(engine, 'main')).toBe(true);
    await leaves;
    expect(replica.cluster.status.role).toBe('left');
  });
});

describe('a replica without subscribers', () => {
  it('ends without an event if the key cannot be read while it gives the ownership away', async () => {
    const engine = memoryEngine();
    await using test = await startTestCluster(engine);
    const replica = test.start('a');
    await test.owner(replica);
    await overwrite(engine, 'nothing');
    const { length } = replica.events;
    replica.unsubscribe();
    await waitFor(async () => (await engine.request(names.owner, Buffer.from('?'), 1)).type === 'no-responders');
    await nextTurn();
    expect(replica.events).toHaveLength(length);
    expect(replica.error()).toBeUndefined();
  });

  it('ends at once if it has stopped', async () => {
    const engine = memoryEngine();
    await overwrite(engine, writeKey(keyOf({ owner: '', phase: 'stopped' })));
    await using test = await startTestCluster(engine);
    const replica = test.start('a');
    await waitFor(() => replica.error());
    replica.unsubscribe();
    expect(replica.cluster.status.role).toBe('stopped');
  });

  it('waits for the engine without an owner', async () => {
    const engine: ClusterEngine = { ...memoryEngine(), connected$: NEVER };
    await using test = await startTestCluster(engine);
    const replica = test.start('a', { engine });
    expect(replica.cluster.status.role).toBe('joining');
    replica.unsubscribe();
    expect(replica.cluster.status.role).toBe('left');
  });
});
