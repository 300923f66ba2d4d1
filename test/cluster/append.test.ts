import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defer, lastValueFrom, retry, Subscription, tap, toArray } from 'rxjs';
import { type FeedLog, feedLog, LogError } from '../../src/log/index.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { startTradeFeedService } from '../../src/testing/index.js';
import { bundledPrograms } from '../support/bundled-programs.js';
import { waitFor } from '../support/wait-for.js';
import { describeInstalled, type RealServer, startServer } from './support/real-server.js';
import { shortTimes, startTestCluster, type TestReplica } from './support/replicas.js';

/** A log that many machines share: it compares the generation of the writer with the last one, at each append. */
const sharedLog = () => {
  const records: string[] = [];
  let last = 0;
  const fence = (generation: number): void => {
    if (generation < last) throw new LogError('log-fenced', `Generation ${last} appends.`, { path: 'market' });
    last = generation;
  };
  const append: FeedLog['append'] =
    ({ generation = 0 } = {}) =>
    (source) =>
      defer(() => {
        fence(generation);
        return source.pipe(
          tap((event) => {
            fence(generation);
            const { type, text } = event as { readonly type: string; readonly text?: () => string };
            records.push(`${generation} ${text?.call(event) ?? type}`);
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

  it('is refused by the log once a later generation appends', async () => {
    await using test = await startTestCluster();
    const replica = await test.startOwner('a');
    const log = sharedLog();
    const codes = appending(replica, log);
    test.push('1');
    await log.has('1 1');
    log
      .append({ generation: 2 })(defer(() => []))
      .subscribe();
    test.push('2');
    await waitFor(() => codes.length > 0);
    expect(new Set(codes)).toEqual(new Set(['log-fenced']));
    expect(log.texts()).toEqual(['1 1']);
  });

  it('appends nothing once another client has replaced its connection', async () => {
    await using test = await startTestCluster();
    const [first, second] = [test.start('a'), test.start('b')];
    const owner = await test.owner(first, second);
    const other = owner === first ? second : first;
    const log = sharedLog();
    appending(owner, log);
    owner.engine.cut('refused');
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
        return log.records.includes('1 2');
      });
      expect(codes).toEqual(['log-fenced']);
    } finally {
      clock.mockRestore();
    }
  });
});

const logs: readonly (readonly [string, 'redis' | 'nats'])[] = [
  ['a folder', 'redis'],
  ['JetStream', 'nats'],
];
describe.each(logs)('the owner of a cluster that appends to %s', (_, kind) => {
  describeInstalled(kind, `over a real ${kind}-server`, () => {
    const program = bundledPrograms('test/cluster/programs', ['append.mjs']);

    it('appends nothing after it was stopped: the next owner continues, with a gap in place of what is missing', async () => {
      await using server = await startServer(kind);
      await using service = await startTradeFeedService();
      const folder = mkdtempSync(join(tmpdir(), 'cluster-log-'));
      const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
      const { port } = server.broker;
      const children: ChildProcess[] = [];

      const start = (replica: string) => {
        const options = { kind, port, folder, replica, apiKey, baseUrl: service.baseUrl, ...shortTimes };
        const child = fork(program('append.mjs'), [JSON.stringify(options)]);
        children.push(child);
        const seen = { child, role: '', texts: [] as string[], codes: [] as string[] };
        child.on('message', ({ role = seen.role, text, code }: Readonly<Record<string, string>>) => {
          seen.role = role;
          if (text !== undefined) seen.texts.push(text);
          if (code !== undefined) seen.codes.push(code);
        });
        return seen;
      };
      let pushed = 0;
      const push = (): void => service.push('market', String((pushed += 1)));
      /** Pushes frames until a replica appends the last one. */
      const append = (to: ReturnType<typeof start>) =>
        waitFor(() => {
          const isLast = to.texts.includes(String(pushed));
          if (!isLast) push();
          return isLast;
        });
      /** Waits until the log has the last frame. Returns its frames as numbers, and the types of the other records. */
      const stored = (log: FeedLog) =>
        waitFor(async () => {
          const records = await lastValueFrom(log.read$({ follow: false }).pipe(toArray()));
          const words = records.map((each) => (each.type === 'frame' ? Number(each.text()) : each.type));
          return words.includes(pushed) ? words : undefined;
        });

      try {
        const log = await logOf(kind, server, folder);
        const first = start('first');
        await waitFor(() => first.role === 'owning');
        const second = start('second');
        await waitFor(() => second.role === 'following');
        await append(first);
        await stored(log);
        const before = pushed;
        first.child.kill('SIGSTOP');
        // They arrive at the stopped process: its connection is still the newest.
        for (let n = 0; n < 3; n += 1) push();
        await waitFor(() => second.role === 'owning');
        // A stopped process keeps the lock of a folder.
        if (kind === 'redis') await waitFor(() => second.codes.includes('log-in-use'));
        else await append(second);
        const { length } = first.codes;
        first.child.kill('SIGCONT');
        await waitFor(() => first.codes.length > length && first.role === 'following');
        expect(first.codes[length]).toBe('log-fenced');
        await append(second);
        const records = await stored(log);

        const frames = records.filter((each) => typeof each === 'number');
        expect(frames).toEqual([...new Set(frames)].toSorted((one, other) => one - other));
        expect(frames).toContain(before);
        expect(frames).not.toContain(before + 1);
        for (const [n, frame] of frames.slice(1).entries()) {
          const between = records.slice(records.indexOf(frames[n]!), records.indexOf(frame));
          if (frame !== frames[n]! + 1) expect(between).toContain('gap');
        }
      } finally {
        for (const child of children) child.kill('SIGKILL');
        rmSync(folder, { recursive: true, force: true });
      }
    }, 60_000);
  });
});

const logOf = async (kind: 'redis' | 'nats', server: RealServer, folder: string): Promise<FeedLog> => {
  if (kind === 'redis') return feedLog(folder);
  return jetStreamLog(await server.nats(), { name: 'market' });
};
