/** @lane clock */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { defer, retry, Subscription, tap } from 'rxjs';
import { feedLog, type FeedLog, LogError } from '../../src/log/index.js';
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
          if (writer < last) throw new LogError('log-fenced', `Writer ${last} appends.`, { path: 'market' });
          const { type, text } = event as { readonly type: string; readonly text?: () => string };
          records.push(`${writer} ${text?.call(event) ?? type}`);
        }),
      );
    });
  const has = (record: string) =>
    waitFor(() => records.includes(record), { what: () => `${record}: ${records.join()}` });
  return { append, records, has, texts: () => records.filter((each) => /\d \d/.test(each)) };
};

let appends = new Subscription();
beforeEach(() => {
  appends = new Subscription();
});
afterEach(() => appends.unsubscribe());

/** Appends in a replica. Collects the codes of its errors, and goes on after each. */
const appending = ({ cluster }: TestReplica, log: Pick<FeedLog, 'append'>) => {
  const codes: string[] = [];
  const failed = ({ code }: LogError): unknown => codes.push(code);
  appends.add(
    cluster
      .append(log)
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

  it('learns at once that an option is wrong, although it does not own yet', async () => {
    await using test = await startTestCluster();
    const { cluster } = test.start('a', { canOwn: false });
    const wrong = () => cluster.append(feedLog('market'), { onError: 5 as never });
    expect(wrong).toThrow(expect.objectContaining({ code: 'invalid-options', option: 'onError' }));
  });

  it('opens the log only after its first messages have left', async () => {
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
    appends.add(cluster.append({ append }).subscribe());
    appends.add(cluster.events$.subscribe(({ type }) => order.push(type)));
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
