import { describe, expect, it } from '@jest/globals';
import { memoryEngine } from '../../src/cluster/index.js';
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
    first.kill();
    const others = replicas.filter((replica) => replica !== first);
    const second = await waitFor(() => others.find(({ cluster }) => cluster.status.role === 'owning'));
    const third = others.find((replica) => replica !== second)!;
    await waitFor(() => codesOf(third).includes('owner-changed'));
    test.push('after');
    for (const replica of others) {
      await received(replica, 'after');
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
});
