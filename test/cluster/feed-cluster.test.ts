import { describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { concatMap, filter, from, type Observable, Subscription, throwError } from 'rxjs';
import { type ClusterEngine, createFeedCluster, memoryEngine } from '../../src/cluster/index.js';
import { kinds } from '../../src/cluster/messages/layout.js';
import { tradeFeedEvents$ } from '../../src/index.js';
import { waitFor } from '../support/wait-for.js';
import { startTestCluster, type TestReplica } from './support/replicas.js';

const codesOf = ({ events }: TestReplica): readonly string[] =>
  events.flatMap((event) => (event.type === 'gap' ? [event.failure.code] : []));

const numbers = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => String(from + n));

const received = (replica: TestReplica, text: string): Promise<unknown> =>
  waitFor(() => replica.texts().includes(text), {
    what: () => `${text} in ${replica.name}: ${replica.texts().join()}`,
  });

describe('three replicas of an account', () => {
  it('share one connection: all of them emit all frames', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b', 'c'].map((name) => test.start(name));
    await test.owner(...replicas);
    test.push(...numbers(1, 50));
    for (const replica of replicas) {
      await received(replica, '50');
      expect(replica.texts()).toEqual(numbers(1, 50));
      expect(replica.events[0]).toMatchObject({ type: expect.stringMatching(/opened|ticket-requested/) });
    }
    expect(replicas.filter(({ cluster }) => cluster.status.role === 'owning')).toHaveLength(1);
  });

  it('have a new owner after the owner was killed, and report the change as a gap', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b', 'c'].map((name) => test.start(name));
    const first = await test.owner(...replicas);
    test.push('before');
    for (const replica of replicas) await received(replica, 'before');
    const published: unknown[] = [];
    const publish = (message: unknown) => void published.push(message);
    subscribe('rx-trade-feed:owner', publish);
    first.kill();
    const others = replicas.filter((replica) => replica !== first);
    const second = await waitFor(() => others.find(({ cluster }) => cluster.status.role === 'owning'));
    const third = others.find((replica) => replica !== second)!;
    await waitFor(() => codesOf(third).includes('owner-changed'));
    test.push('after');
    for (const replica of others) await received(replica, 'after');
    unsubscribe('rx-trade-feed:owner', publish);
    const message = {
      origin: { feed: 'market', where: expect.stringContaining('createFeedCluster') },
      event: { type: 'owner-changed', owner: second.cluster.status.replica },
    };
    expect(published).toMatchObject([message, message]);
    for (const replica of others) {
      expect(replica.texts()).toEqual(['before', 'after']);
      expect(codesOf(replica)).toEqual(['owner-changed']);
      expect(replica.events).toContainEqual(
        expect.objectContaining({ type: 'owner-changed', owner: second.cluster.status.replica }),
      );
    }
  });

  it('lose no frame in a hand-over', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b', 'c'].map((name) => test.start(name));
    const first = await test.owner(...replicas);
    let pushed = 0;
    const timer = setInterval(() => test.push(String((pushed += 1))), 1);
    try {
      await received(first, '20');
      await first.cluster.handOver();
      expect(first.cluster.status.role).toBe('left');
      const last = pushed + 50;
      for (const replica of replicas) await received(replica, String(last));
      for (const replica of replicas) {
        expect(replica.texts().slice(0, last)).toEqual(numbers(1, last));
        expect(codesOf(replica)).toEqual(['owner-changed']);
      }
    } finally {
      clearInterval(timer);
    }
  });

  it('all stop after a client outside the cluster has connected, until an operator resumes', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b', 'c'].map((name) => test.start(name));
    await test.owner(...replicas);
    const foreign = tradeFeedEvents$('market', { baseUrl: test.service.baseUrl, apiKey: test.apiKey }).subscribe();
    for (const replica of replicas) {
      const error = await waitFor(() => replica.error());
      expect(error).toMatchObject({ code: 'connection-replaced', closeCode: 4001 });
      expect(replica.cluster.status.role).toBe('stopped');
    }
    const late = test.start('late');
    expect(await waitFor(() => late.error())).toMatchObject({ code: 'connection-replaced' });
    foreign.unsubscribe();
    await late.cluster.resume();
    const again = test.start('again');
    await test.owner(again);
    test.push('again');
    await received(again, 'again');
  });

  it('carry frames that are larger than a message', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b'].map((name) => test.start(name, { batchBytes: 1_024 }));
    await test.owner(...replicas);
    const large = 'x'.repeat(100_000);
    test.push('1', large, '2');
    for (const replica of replicas) {
      await received(replica, '2');
      expect(replica.texts()).toEqual(['1', large, '2']);
    }
  });

  it('have a new owner when the old one gives the ownership away by unsubscribing', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b'].map((name) => test.start(name));
    const first = await test.owner(...replicas);
    const second = replicas.find((replica) => replica !== first)!;
    test.push('before');
    for (const replica of replicas) await received(replica, 'before');
    first.unsubscribe();
    expect(first.cluster.status.role).toBe('left');
    await waitFor(() => codesOf(second).includes('owner-changed'));
    test.push('after');
    await received(second, 'after');
    expect(second.texts()).toEqual(['before', 'after']);
  });

  it('keep the owner while the engine is away: it receives frames, and the others report the gap', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b', 'c'].map((name) => test.start(name));
    const owner = await test.owner(...replicas);
    const others = replicas.filter((replica) => replica !== owner);
    test.push('before');
    for (const replica of replicas) await received(replica, 'before');
    for (const { engine } of replicas) engine.cut('refused');
    test.push('1', '2', '3');
    await received(owner, '3');
    // The owner sends the frames of a turn at its end, which must be before the engine is back.
    await nextTurn();
    for (const { cluster, events } of others) {
      expect(cluster.status.role).toBe('isolated');
      expect(events.at(-1)).toMatchObject({ type: 'disconnected', failure: { code: 'cluster-away' } });
    }
    for (const { engine } of replicas) engine.restore();
    test.push('after');
    for (const replica of others) {
      await received(replica, 'after');
      expect(replica.texts()).toEqual(['before', 'after']);
      const gap = replica.events.find(({ type }) => type === 'gap');
      expect(gap).toMatchObject({ missed: 3, failure: { code: 'cluster-away' } });
    }
    expect(owner.cluster.status).toMatchObject({ role: 'owning', generation: 1 });
    expect(owner.texts()).toEqual(['before', '1', '2', '3', 'after']);
  });

  it('replace an owner that is cut off, which follows when its engine is back', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b', 'c'].map((name) => test.start(name));
    const first = await test.owner(...replicas);
    const others = replicas.filter((replica) => replica !== first);
    first.engine.cut('black-hole');
    const second = await waitFor(() => others.find(({ cluster }) => cluster.status.role === 'owning'));
    await waitFor(() => first.cluster.status.role !== 'owning');
    first.engine.restore();
    await test.owner(second, ...others.filter((replica) => replica !== second));
    await waitFor(() => codesOf(first).includes('owner-changed'));
    test.push('after');
    for (const replica of replicas) await received(replica, 'after');
    expect(first.error()).toBeUndefined();
  });

  it('work with a replica whose API key is refused: it follows the others', async () => {
    await using test = await startTestCluster(memoryEngine());
    const wrong = test.start('wrong', { apiKey: 'not-a-key' });
    await waitFor(() => wrong.cluster.status.role === 'owning');
    const right = test.start('right');
    await waitFor(() => right.cluster.status.role === 'owning');
    await waitFor(() => wrong.events.some(({ type }) => type === 'opened'));
    test.push('frame');
    for (const replica of [wrong, right]) await received(replica, 'frame');
    expect(wrong.error()).toBeUndefined();
  });

  it('report the reconnects of the owner to all, with the gap of the service', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replicas = ['a', 'b'].map((name) => test.start(name, { backoff: { initialDelayMs: 1, maxDelayMs: 5 } }));
    await test.owner(...replicas);
    test.push('before');
    for (const replica of replicas) await received(replica, 'before');
    test.account.expireAccess();
    for (const replica of replicas) await waitFor(() => codesOf(replica).includes('access-expired'));
    test.push('after');
    for (const replica of replicas) {
      await received(replica, 'after');
      const types = replica.events.filter(({ type }) => type !== 'watermark').map(({ type }) => type);
      expect(types).toEqual([
        ...['opened', 'frame', 'disconnected', 'reconnecting', 'ticket-requested', 'ticket-issued'],
        ...['opened', 'gap', 'frame'],
      ]);
      expect(codesOf(replica)).toEqual(['access-expired']);
    }
  });

  it('say what they do', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replica = test.start('a');
    const roles: string[] = [];
    const statuses = replica.cluster.status$.subscribe(({ role }) => roles.push(role));
    await test.owner(replica);
    statuses.unsubscribe();
    expect(roles).toEqual(['joining', 'following', 'claiming', 'owning']);
    expect(replica.cluster.status).toMatchObject({
      owner: replica.cluster.status.replica,
      replica: expect.stringMatching(/^a-[0-9a-f]{12}$/),
      generation: 1,
      since: expect.any(Number),
    });
  });

  it('send no frames while their messages do not come back, and send them again afterwards', async () => {
    const memory = memoryEngine();
    let hears = true;
    let batches = 0;
    const engine: ClusterEngine = {
      ...memory,
      subscribe: (subject) => memory.subscribe(subject).pipe(filter(() => hears)),
      publish: (subject, data) => {
        if (data[1] === kinds.batch) batches += 1;
        memory.publish(subject, data);
      },
    };
    await using test = await startTestCluster(memory);
    const times = { leaseMs: 300, renewMs: 50, marginMs: 50, suspectMs: 260 };
    const replica = test.start('a', { engine, ...times });
    await test.owner(replica);
    let pushed = 0;
    const isPublished = async (): Promise<boolean> => {
      const before = batches;
      pushed += 1;
      test.push(String(pushed));
      await received(replica, String(pushed));
      await nextTurn();
      return batches > before;
    };
    expect(await isPublished()).toBe(true);
    hears = false;
    while (await isPublished());
    hears = true;
    while (!(await isPublished()));
    expect(replica.texts()).toEqual(numbers(1, pushed));
  });

  it('end with the error of an engine that refuses a subscription', async () => {
    const memory = memoryEngine();
    const refused = new Error('no permission');
    const engine: ClusterEngine = {
      ...memory,
      subscribe: (subject) => (subject.endsWith('.standby') ? throwError(() => refused) : memory.subscribe(subject)),
    };
    await using test = await startTestCluster(memory);
    const replica = test.start('a', { engine });
    expect(await waitFor(() => replica.error())).toBe(refused);
  });

  it.each<[string, Observable<never>]>([
    ['at once', throwError(() => new Error('no permission'))],
    ['later', from(Promise.resolve()).pipe(concatMap(() => throwError(() => new Error('no permission'))))],
  ])('give the ownership away after a subscriber has subscribed again because of an error: %s', async (_, refusal) => {
    const memory = memoryEngine();
    let isRefused = true;
    const engine: ClusterEngine = {
      ...memory,
      subscribe: (subject) => (isRefused ? refusal : memory.subscribe(subject)),
    };
    await using test = await startTestCluster(memory);
    const cluster = createFeedCluster('market', {
      ...{ baseUrl: test.service.baseUrl, apiKey: test.apiKey, engine, account: 'main', replica: 'a' },
    });
    const subscriptions = new Subscription();
    const subscribeAgain = (): void => {
      isRefused = false;
      subscriptions.add(cluster.events$.subscribe());
    };
    cluster.events$.subscribe({ error: subscribeAgain });
    await waitFor(() => cluster.position !== undefined);
    await cluster.handOver();
    expect(cluster.status.role).toBe('left');
    subscriptions.unsubscribe();
  });

  it('resolve a hand-over without a subscriber, and a resume without a stop', async () => {
    await using test = await startTestCluster(memoryEngine());
    const replica = test.start('a');
    await test.owner(replica);
    await replica.cluster.resume();
    expect(replica.cluster.status.role).toBe('owning');
    replica.unsubscribe();
    await replica.cluster.handOver();
  });
});
