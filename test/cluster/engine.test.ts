/** @lane clock */
import { describe, expect, it, jest } from '@jest/globals';
import { BehaviorSubject, Observable, type Subscriber } from 'rxjs';
import { EngineFaults } from '../../src/cluster/engine-faults.js';
import type { ClusterEngine } from '../../src/cluster/engine.js';
import { memoryEngine } from '../../src/cluster/index.js';
import { readClusterState } from '../../src/cluster/operate.js';
import type { EngineOperation, EngineRecovered, EngineRefused } from '../../src/index.js';
import { clusterEngineTests } from '../../src/testing/index.js';
import { fakeTimers } from '../support/fake-timers.js';
import { waitFor } from '../support/wait-for.js';
import { shortTimes, startTestCluster } from './support/replicas.js';

describe('the engine in memory', () => {
  const engine = memoryEngine();
  it.each(clusterEngineTests(() => [engine, engine]).map(({ name, run }) => [name, run] as const))('%s', (_, run) =>
    run(),
  );
});

describe('what an engine refuses', () => {
  const faultsOf = () => {
    const events: (EngineRefused | EngineRecovered)[] = [];
    const startedAt = Date.now();
    const faults = new EngineFaults((event) => events.push(event));
    const times = () =>
      events.map(({ type, at }) => `${type === 'engine-refused' ? 'refused' : 'recovered'} ${at - startedAt}`);
    return { faults, events, times };
  };
  const fail = (faults: EngineFaults, operation: EngineOperation, forMs: number, message = 'READONLY') => {
    for (let ms = 0; ms < forMs; ms += 100) {
      faults.failed(operation, new Error(message));
      jest.advanceTimersByTime(100);
    }
  };

  it('is reported after a second, then with a backoff of up to a minute, and its end once', () => {
    using _timers = fakeTimers();
    const { faults, events, times } = faultsOf();
    fail(faults, 'write', 140_000);
    const after = [1, 3, 7, 15, 31, 63, 123];
    expect(times()).toEqual(after.map((seconds) => `refused ${seconds * 1_000}`));
    expect(faults.current).toBe(events.at(-1));
    faults.worked('write');
    faults.worked('write');
    expect(times().slice(after.length)).toEqual(['recovered 140000']);
    expect(events.at(-1)).toMatchObject({ durationMs: 140_000 });
    expect(faults.current).toBeUndefined();
  });

  it('is not reported if it was a single failure, or is over within a second', () => {
    using _timers = fakeTimers();
    const { faults, times } = faultsOf();
    faults.failed('read', new Error('timeout'));
    jest.advanceTimersByTime(60_000);
    fail(faults, 'read', 900);
    faults.worked('read');
    jest.advanceTimersByTime(60_000);
    expect(times()).toEqual([]);
  });

  it('is over once it stops recurring, and nothing else follows', () => {
    using _timers = fakeTimers();
    const { faults, times } = faultsOf();
    fail(faults, 'publish', 2_000);
    jest.advanceTimersByTime(600_000);
    expect(times()).toEqual(['refused 1000', 'refused 3000', 'recovered 6900']);
  });

  it('is reported for each operation, and recovers when all of them work', () => {
    using _timers = fakeTimers();
    const { faults, events } = faultsOf();
    faults.failed('subscribe', new Error('NOPERM'), 3_000);
    fail(faults, 'write', 1_500);
    faults.worked('subscribe');
    expect(faults.current).toMatchObject({ operation: 'write' });
    faults.worked('write');
    expect(events.map((event) => (event.type === 'engine-refused' ? event.operation : event.durationMs))).toEqual([
      ...['subscribe', 'write', 4_500],
    ]);
  });

  it('says why there is no connection as soon as the client knows, and nothing else meanwhile', () => {
    using _timers = fakeTimers();
    const { faults, events } = faultsOf();
    faults.failed('connect', undefined);
    fail(faults, 'read', 2_000);
    faults.failed('connect', new Error('WRONGPASS'));
    jest.advanceTimersByTime(1_000);
    expect(events).toMatchObject([
      { operation: 'connect', message: "it doesn't answer" },
      { operation: 'connect', message: 'WRONGPASS', advice: 'Check the user and the password of the connection.' },
    ]);
    faults.worked('connect');
    expect(events).toHaveLength(3);
    expect(events[2]).toMatchObject({ type: 'engine-recovered', durationMs: 3_000 });
  });

  it('shows one line of the message of the engine, and reports nothing after its end', () => {
    using _timers = fakeTimers();
    const { faults, events } = faultsOf();
    faults.failed('read', new Error(`one\ntwo\u001b ${'x'.repeat(1_000)}`), 0);
    faults.close();
    fail(faults, 'read', 10_000);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ message: expect.stringMatching(/^one two\u241b x{290,}$/) });
    expect((events[0] as EngineRefused).message).toHaveLength(300);
  });
});

describe('a replica', () => {
  it('reports to an operator why it cannot claim', async () => {
    const memory = memoryEngine();
    const engine: ClusterEngine = {
      ...memory,
      compareAndSet: () => Promise.reject(new Error('maximum bytes exceeded')),
    };
    await using test = await startTestCluster(memory);
    const replica = test.start('a', { engine });
    await waitFor(() => replica.cluster.status.refused);
    const { key, standbys } = await readClusterState(memory, 'main', 1_500);
    expect(key).toBeUndefined();
    expect(standbys).toMatchObject([
      { refused: expect.stringMatching(/^Can't write .+ exceeded\. The store is full/) },
    ]);
  });

  it.each<[string, Partial<Record<'error', Error>>, RegExp]>([
    ['closed by the application', {}, /won't connect again\. Restart/],
    ['given up', { error: new Error('Authorization Violation') }, /\(Authorization Violation\)\. Restart/],
  ])('ends at once with engine-closed when the connection to its engine was %s', async (_, { error }, message) => {
    const connected$ = new BehaviorSubject(true);
    await using test = await startTestCluster();
    const engine = { ...memoryEngine(), connected$ };
    const replica = await test.startOwner('a', { engine });
    if (error) connected$.error(error);
    else connected$.complete();
    expect(replica.error()).toMatchObject({
      code: 'engine-closed',
      verdict: 'stop',
      message: expect.stringMatching(message),
    });
    expect(replica.events.at(-1)).toMatchObject({ type: 'stopped', failure: replica.error() });
    expect(replica.cluster.status.role).toBe('left');
  });

  it('ignores a closed connection after it has left: applications close it when they shut down', async () => {
    const connected$ = new BehaviorSubject(true);
    await using test = await startTestCluster();
    const replica = await test.startOwner('a', { engine: { ...memoryEngine(), connected$ } });
    await replica.cluster.handOver();
    connected$.complete();
    expect(replica.error()).toBeUndefined();
  });

  it('emits `disconnected` when no messages arrive, subscribes again, and emits a gap with the exact number of frames', async () => {
    const memory = memoryEngine();
    const [live, dead] = [new Set<Subscriber<Uint8Array>>(), new Set<Subscriber<Uint8Array>>()];
    // Subscriptions die silently, while requests are still answered.
    const engine: ClusterEngine = {
      ...memory,
      subscribe: (subject) =>
        new Observable((subscriber) => {
          live.add(subscriber);
          return memory.subscribe(subject).subscribe((data) => {
            if (!dead.has(subscriber)) subscriber.next(data);
          });
        }),
    };
    await using test = await startTestCluster(memory);
    const owner = await test.startOwner('owner');
    const follower = test.start('follower', { engine, ...shortTimes });
    await test.owner(owner, follower);
    // The connection is complete from its first frame on.
    test.push('first');
    await waitFor(() => follower.texts().includes('first'));
    for (const each of live) dead.add(each);
    test.push('a', 'b', 'c');
    const disconnected = await waitFor(() => follower.events.find(({ type }) => type === 'disconnected'));
    expect(disconnected).toMatchObject({ failure: { code: 'cluster-behind' } });
    await waitFor(() => follower.events.some(({ type }) => type === 'gap'));
    test.push('d');
    await waitFor(() => follower.texts().includes('d'));
    const words = follower.events.map((event) => (event.type === 'gap' ? `gap ${event.missed}` : event.type));
    const order = words.slice(words.indexOf('disconnected')).filter((word) => word !== 'watermark');
    expect(order.filter((word) => !word.startsWith('engine'))).toEqual(['disconnected', 'opened', 'gap 3', 'frame']);
    expect(order.filter((word) => word.startsWith('engine'))).toEqual(['engine-refused', 'engine-recovered']);
    expect(follower.cluster.status).toMatchObject({ role: 'following', refused: undefined });
  });
});
