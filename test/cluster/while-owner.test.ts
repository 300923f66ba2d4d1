/** @lane clock */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { defer, map, type Observable, retry, Subscription, tap, throwError } from 'rxjs';
import { type FeedLog, LogError } from '../../src/log/index.js';
import type { ClusterEvent, FeedEvent } from '../../src/protocol/event.js';
import { waitFor } from '../support/wait-for.js';
import { startTestCluster, type TestReplica } from './support/replicas.js';

/** A log that many machines share: each writer takes it over from the one before. */
const sharedLog = () => {
  const records: string[] = [];
  let last = 0;
  const append: FeedLog['append'] = () => (source) =>
    defer(() => {
      const writer = (last += 1);
      return source.pipe(
        tap((event) => {
          if (writer < last) throw new LogError('log-fenced', `Writer ${last} operators.`, { path: 'market' });
          const { type, text } = event as { readonly type: string; readonly text?: () => string };
          records.push(`${writer} ${text?.call(event) ?? type}`);
        }),
      );
    });
  const has = (record: string) =>
    waitFor(() => records.includes(record), { what: () => `${record}: ${records.join()}` });
  return { append, records, has, texts: () => records.filter((each) => /\d \d/.test(each)) };
};

let operators = new Subscription();
beforeEach(() => {
  operators = new Subscription();
});
afterEach(() => operators.unsubscribe());

/** Appends in a replica. Collects the codes of its errors, and goes on after each. */
const appending = ({ cluster }: TestReplica, log: Pick<FeedLog, 'append'>) => {
  const codes: string[] = [];
  const failed = ({ code }: LogError): unknown => codes.push(code);
  operators.add(
    cluster
      .whileOwner(log.append())
      .pipe(tap({ error: failed }), retry({ delay: 1 }))
      .subscribe(),
  );
  return codes;
};

describe('the owner of a cluster', () => {
  it('alone appends, and the next one continues after a hand-over, without a frame lost or twice', async () => {
    await using test = await startTestCluster();
    const [first, second] = [test.start('a'), test.start('b', { canOwn: false })];
    await test.owner(first, second);
    const third = test.start('c');
    await test.owner(first, second, third);
    const log = sharedLog();
    const codes = [first, second, third].map((replica) => appending(replica, log));
    test.push('1', '2');
    await log.has('1 2');
    await first.cluster.handOver();
    await log.has('2 gap');
    test.push('3');
    await log.has('2 3');
    expect(log.records.filter((each) => !/watermark|ticket/.test(each))).toEqual([
      ...['1 1', '1 2', '2 owner-changed', '2 opened', '2 gap', '2 3'],
    ]);
    expect(codes).toEqual([[], [], []]);
  });

  it('runs any operator from its first event on, and ends it with the ownership', async () => {
    await using test = await startTestCluster();
    const [first, second] = [test.start('a'), test.start('b')];
    const owner = await test.owner(first, second);
    const other = owner === first ? second : first;
    const types = (events$: Observable<FeedEvent | ClusterEvent>) => events$.pipe(map(({ type }) => type));
    const before: string[] = [];
    const after: string[] = [];
    operators.add(owner.cluster.whileOwner(types).subscribe((type) => before.push(type)));
    operators.add(other.cluster.whileOwner(types).subscribe((type) => after.push(type)));
    test.push('1');
    await waitFor(() => before.includes('frame'), { what: () => before.join() });
    await owner.cluster.handOver();
    await waitFor(() => after.includes('opened'), { what: () => after.join() });
    test.push('2');
    await waitFor(() => after.includes('frame'), { what: () => after.join() });
    expect(after[0]).toBe('owner-changed');
    expect(before.filter((type) => type === 'frame')).toEqual(['frame']);
    expect(after.filter((type) => type === 'frame')).toEqual(['frame']);
  });

  it('refuses what is no operator at once', async () => {
    await using test = await startTestCluster();
    const { cluster } = test.start('a');
    expect(() => cluster.whileOwner(undefined as never)).toThrow('`operator` must be a function');
  });

  it('keeps its events while the writer of the previous owner still closes', async () => {
    await using test = await startTestCluster();
    const replica = await test.startOwner('a');
    const log = sharedLog();
    let refusals = 0;
    const append: FeedLog['append'] = () => (source) =>
      defer(() => {
        if (refusals === 3) return source.pipe(log.append());
        test.push(String((refusals += 1)));
        return throwError(() => new LogError('log-in-use', 'The previous owner appends.', { path: 'market' }));
      });
    const codes = appending(replica, { append });
    test.push('0');
    await log.has('1 3');
    expect(log.texts()).toEqual(['1 0', '1 1', '1 2', '1 3']);
    expect(codes).toEqual([]);
  });

  it('opens a log only after its first messages have left', async () => {
    await using test = await startTestCluster();
    const [first, second] = [test.start('a'), test.start('b')];
    const owner = await test.owner(first, second);
    const { cluster } = owner === first ? second : first;
    const order: string[] = [];
    const append: FeedLog['append'] = () => (source) =>
      defer(() => {
        order.push('log');
        return source;
      });
    operators.add(cluster.whileOwner(append()).subscribe());
    operators.add(cluster.events$.subscribe(({ type }) => order.push(type)));
    await owner.cluster.handOver();
    await waitFor(() => order.includes('log'), { what: () => order.join() });
    const seen = order.filter((each) => ['owner-changed', 'opened', 'log'].includes(each));
    expect(seen.slice(seen.indexOf('owner-changed'))).toEqual(['owner-changed', 'opened', 'log']);
  });

  it('ends with the error of the log once another writer has it', async () => {
    await using test = await startTestCluster();
    const replica = await test.startOwner('a');
    const log = sharedLog();
    const codes = appending(replica, log);
    test.push('1');
    await log.has('1 1');
    log
      .append()(defer(() => []))
      .subscribe();
    test.push('2');
    await waitFor(() => codes.length > 0);
    expect(codes).toEqual(['log-fenced']);
    expect(log.texts()).toEqual(['1 1']);
  });

  it('appends nothing once another client has replaced its connection', async () => {
    await using test = await startTestCluster();
    const [first, second] = [test.start('a'), test.start('b')];
    const owner = await test.owner(first, second);
    const other = owner === first ? second : first;
    const log = sharedLog();
    appending(owner, log);
    owner.engine.cut();
    await waitFor(() => other.cluster.status.role === 'owning' && owner.cluster.status.role === 'isolated');
    appending(other, log);
    await waitFor(() => other.events.some(({ type }) => type === 'gap'));
    test.push('1');
    await log.has('2 1');
    owner.engine.restore();
    await waitFor(() => owner.cluster.status.generation === 2);
    test.push('2');
    await log.has('2 2');
    expect(log.texts()).toEqual(['2 1', '2 2']);
  });

  it('is fenced after it stood still for so long that another one may own, and appends again if it still owns', async () => {
    await using test = await startTestCluster();
    const replica = await test.startOwner('a');
    const log = sharedLog();
    const codes = appending(replica, log);
    test.push('1');
    await log.has('1 1');
    const now = performance.now.bind(performance);
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 10_000);
    try {
      await waitFor(() => codes.length > 0);
      await waitFor(() => {
        test.push('2');
        return log.records.includes('2 2');
      });
      expect(codes).toEqual(['log-fenced']);
    } finally {
      clock.mockRestore();
    }
  });
});
