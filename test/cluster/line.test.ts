import { describe, expect, it } from '@jest/globals';
import { memoryEngine } from '../../src/cluster/index.js';
import { waitFor } from '../support/wait-for.js';
import { shortTimes, startTestCluster, type TestReplica, windowsOf } from './support/replicas.js';

describe('a replica that was cut off', () => {
  it('fetches what it missed: no frame is lost, none comes twice, and there is no gap', async () => {
    await using test = await startTestCluster(memoryEngine(), true);
    const owner = await test.startOwner('a', shortTimes);
    const other = test.start('b', shortTimes);
    await test.owner(owner, other);
    const sent: string[] = [];
    const push = (count: number): void => {
      for (let n = 0; n < count; n += 1) {
        sent.push(`${sent.length}`);
        test.push(sent.at(-1)!);
      }
    };
    push(10);
    await waitFor(() => other.texts().length === 10, { what: () => `10: ${other.texts().length}` });
    other.engine.cut();
    push(1_000);
    await waitFor(() => owner.texts().length === 1_010, { what: () => `${owner.texts().length}` });
    other.engine.restore();
    push(10);
    await waitFor(() => other.texts().length >= 1_020, { what: () => `${other.texts().length}` });
    expect(other.texts()).toEqual(sent);
    expect(other.events.map(({ type }) => type).filter((type) => type !== 'frame' && type !== 'watermark')).toEqual([
      'opened',
    ]);
  });

  it('an owner that hands over loses nothing', async () => {
    await using test = await startTestCluster(memoryEngine(), true);
    const owner = await test.startOwner('a', shortTimes);
    const other = test.start('b', shortTimes);
    const third = test.start('c', shortTimes);
    await test.owner(owner, other, third);
    test.push('1', '2');
    await owner.cluster.handOver();
    await waitFor(
      () =>
        [other, third].some(({ cluster }) => cluster.status.role === 'owning') &&
        third.events.filter(({ type }) => type === 'gap').length === 1,
    );
    test.push('3');
    await waitFor(() => [other, third, owner].every((each) => each.texts().length === 3), {
      what: () => JSON.stringify([other, third, owner].map((each) => each.texts())),
    });
    for (const each of [other, third, owner]) expect(each.texts()).toEqual(['1', '2', '3']);
  });
});

const timesOf = ({ events }: TestReplica) =>
  events.flatMap((event) => (event.type === 'frame' ? [event.receivedAt] : []));
const types = ({ events }: TestReplica) => events.map(({ type }) => type).filter((type) => type !== 'watermark');

/** Starts an owner, and a replica that follows it. */
const startTwo = async () => {
  const test = await startTestCluster(memoryEngine(), true);
  const owner = await test.startOwner('a', shortTimes);
  const follower = test.start('b', shortTimes);
  await test.owner(owner, follower);
  let count = 0;
  /** Pushes frames until the follower has them all. */
  const push = async (more: number): Promise<void> => {
    for (const until = count + more; count < until; count += 1) test.push(`${count}`);
    await has(follower, count);
  };
  const has = (replica: TestReplica, all = count) =>
    waitFor(() => replica.texts().length === all && replica.events.at(-1)?.type === 'watermark', {
      what: () => `${all} frames: ${JSON.stringify(types(replica))}`,
    });
  const close = () => test[Symbol.asyncDispose]();
  return { test, owner, follower, push, has, [Symbol.asyncDispose]: close };
};

describe('a replica that starts late', () => {
  it('begins with the next message, unless it has the option `sinceMs`', async () => {
    await using started = await startTwo();
    await started.push(1);
    const late = started.test.start('c', shortTimes);
    await started.test.owner(started.owner, late);
    await started.push(1);
    await started.has(late, 1);
    expect(late.texts()).toEqual(['1']);
  });

  it('first emits what the store has, as the others did: no frame is missing, none comes twice, and each window is the same', async () => {
    await using started = await startTwo();
    const { test, follower, push, has } = started;
    for (let n = 0; n < 5; n += 1) await push(100);
    const late = test.start('c', { ...shortTimes, sinceMs: 60_000 });
    await push(200);
    await has(late);
    expect(late.texts()).toEqual(follower.texts());
    expect(types(late).filter((type) => type !== 'frame')).toEqual(['opened']);
    expect(timesOf(late)).toEqual(timesOf(follower));
    const complete = (await windowsOf(late)).filter((window) => window.complete);
    expect(complete.flatMap(({ value }) => value).length).toBeGreaterThan(100);
    expect(await windowsOf(follower)).toEqual(expect.arrayContaining(complete.slice(0, -1)));
  });

  it('emits nothing that is older than it asks for', async () => {
    await using started = await startTwo();
    await started.push(1);
    const late = started.test.start('c', { ...shortTimes, sinceMs: 1 });
    await started.test.owner(started.owner, late);
    expect(late.texts()).toEqual([]);
  });

  it('and owns, because the previous owner was killed, first emits the line, and then continues it', async () => {
    await using started = await startTwo();
    const { test, owner, follower, push } = started;
    await push(2);
    follower.unsubscribe();
    owner.kill();
    const next = test.start('c', { ...shortTimes, sinceMs: 60_000 });
    await waitFor(() => types(next).includes('gap'), { what: () => JSON.stringify(types(next)) });
    const sentAt = Date.now();
    test.push('3');
    await waitFor(() => next.texts().length === 3, { what: () => JSON.stringify(types(next)) });
    const [, , receivedAt] = timesOf(next);
    expect(types(next)).toEqual(['opened', 'frame', 'frame', 'owner-changed', 'opened', 'gap', 'frame']);
    expect(timesOf(next).slice(0, 2)).toEqual(timesOf(follower));
    // What it read doesn't move its time by the minute.
    expect(receivedAt).toBeGreaterThan(sentAt - 1_000);
    expect(receivedAt).toBeLessThan(Date.now() + 1_000);
    expect(next.cluster.position).toMatchObject({ frames: 3 });
  });
});

describe('the status of a replica', () => {
  it('has what the store holds, and counts what was fetched', async () => {
    await using started = await startTwo();
    const { test, owner, follower, push } = started;
    const other = test.start('c', shortTimes);
    await test.owner(owner, other);
    await push(1);
    await started.has(other);
    expect(other.cluster.status).toMatchObject({ fetched: 0, surplus: 0 });
    other.engine.cut();
    await push(3);
    other.engine.restore();
    await started.has(other);
    expect(other.cluster.status).toMatchObject({ fetched: 3, surplus: 0 });
    for (const { cluster } of [owner, follower]) expect(cluster.status.fetched).toBe(0);
    const line = await waitFor(() => other.cluster.status.line);
    const { offset: to } = follower.cluster.position!;
    expect(line).toEqual({ from: 0, to, bytes: expect.any(Number), durationMs: expect.any(Number) });
    other.unsubscribe();
    await waitFor(() => other.cluster.status.role === 'left');
    expect(other.cluster.status).toMatchObject({ line: undefined, fetched: 3 });
  });
});
