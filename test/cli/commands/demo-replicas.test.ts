import { afterEach, describe, expect, it } from '@jest/globals';
import { demoReplicas } from '../../../src/cli/commands/demo-replicas.js';
import type { Broker } from '../../../src/cli/replicas/broker.js';
import { localCluster } from '../../../src/cli/replicas/local-cluster.js';
import { run } from '../../../src/cli/run.js';
import { startTradeFeedService } from '../../../src/testing/index.js';
import { waitFor } from '../../support/wait-for.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';

const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$ } of contexts.splice(0)) interrupt$.next('SIGTERM');
});

const demo = (
  given: Parameters<typeof fakeContext>[0] = {},
  { broker, duration }: { readonly broker?: Broker; readonly duration?: number } = {},
) => {
  const context = fakeContext(given);
  contexts.push(context);
  const options = { replicas: 2, rate: 200, ...(duration !== undefined && { duration }) };
  const command = { command: 'demo', feed: 'market', options } as const;
  return { context, exit: demoReplicas(command, context, () => Promise.resolve(broker)) };
};

describe('demo --replicas', () => {
  it('draws a panel for each replica, and says where they run', async () => {
    const stdout = new FakeOutput({ columns: 100, rows: 24 });
    const { context, exit } = demo({ stdout });
    await stdout.until(/2 replicas, one connection: in one process/);
    await stdout.until(/replica-\d owns the connection \(generation 1\)/);
    await stdout.until(/replica-1 .*follows|replica-2 .*follows/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(stdout.text).toMatch(/\x1b\[\?1049lreplica-1: \d+ frames?.*\nreplica-2: .*\n$/);
  });

  it('writes log lines to a pipe', async () => {
    const { context, exit } = demo();
    await context.stdout.until(/Z replicas: in one process/);
    await context.stdout.until(/Z replica-\d owns the connection \(generation 1\)\n/);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
    expect(context.stdout.text).not.toContain('\x1b');
  });

  it('runs in one process if it cannot connect to the server that it has started', async () => {
    let isClosed = false;
    const close = async () => {
      isClosed = true;
      return Promise.resolve();
    };
    const { context, exit } = demo({}, { broker: { name: 'a server', url: 'redis://127.0.0.1:1', close } });
    await context.stdout.until(/Z replicas: in one process/);
    expect(isClosed).toBe(true);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
  });

  it('ends with the exit code of its duration, or of an output that cannot be written', async () => {
    const timed = demo({}, { duration: 1 });
    expect(await timed.exit).toBe(124);
    const { context, exit } = demo();
    const failed = expect(exit).rejects.toMatchObject({ exitCode: 8 });
    await context.stdout.until(/Z replicas: in one process/);
    context.stdout.destroy(Object.assign(new Error('full'), { code: 'ENOSPC' }));
    await failed;
  });

  it('refuses another service', async () => {
    const context = fakeContext({ env: { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1' } });
    expect(await run(['demo', '--replicas', '3'], context)).toBe(2);
    expect(context.stderr.text).toContain('--replicas applies only to the local service');
  });
});

describe('replicas of one process', () => {
  it('continue after one of them was killed, stopped or gave the ownership away', async () => {
    const service = await startTradeFeedService();
    const account = service.createAccount({ plan: 'developer' });
    const cluster = localCluster('market', { baseUrl: service.baseUrl, apiKey: account.createApiKey() });
    const owner = async () => (await cluster.state()).key?.owner.slice(0, 1) || undefined;
    const started = new Map(['a', 'b', 'c'].map((name) => [name, cluster.start(name)]));
    const ended = new Set<string>();
    for (const [name, { events$ }] of started) events$.subscribe({ complete: () => ended.add(name) });
    const isOpen = async () => (await cluster.state()).key?.phase === 'open';
    const cause = async () => (await cluster.state()).key?.changes.at(-1)?.cause;
    await waitFor(isOpen);

    const first = (await owner())!;
    started.get(first)!.kill();
    expect(ended).toEqual(new Set([first]));
    await waitFor(async () => (await isOpen()) && (await owner()) !== first);
    expect(await cause()).toBe('silence');

    const second = (await owner())!;
    started.get(second)!.stop();
    await waitFor(() => ended.has(second));
    await waitFor(async () => (await isOpen()) && (await owner()) !== second);
    // An owner that has not heard of another replica for 3 s, on a slow machine, releases the ownership.
    expect(await cause()).toMatch(/^(hand-over|released)$/);

    expect(await cluster.handOver()).toBe(true);
    await waitFor(async () => ((await cluster.state()).key?.gen ?? 0) > 3 && (await isOpen()));
    await cluster.close();
    expect(ended.size).toBe(3);
    await service.shutdown();
  });
});
