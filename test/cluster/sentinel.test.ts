/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { redisEngine } from '../../src/redis/index.js';
import { type RunningBroker, startBroker } from '../peers/brokers.mjs';
import { startLimitMs, waitFor } from '../support/wait-for.js';
import { cutEngine } from './support/cut-engine.js';
import { becomes, describeInstalled } from './support/real-server.js';
import { startTestCluster, type TestReplica } from './support/replicas.js';

describeInstalled('redis', 'replicas on Redis behind Sentinel', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-sentinel-'));
  const ends: (() => unknown)[] = [];
  let servers: readonly RunningBroker[];
  let sentinel: Redis;

  const connect = (options: object): Redis => {
    const connection = new Redis({ host: '127.0.0.1', retryStrategy: () => 100, ...options });
    connection.on('error', () => undefined);
    ends.push(() => connection.disconnect());
    return connection;
  };
  const signal = ({ pid }: RunningBroker, name: NodeJS.Signals): void => void process.kill(pid!, name);
  const start = async (kind: 'redis' | 'sentinel', name: string, ...args: readonly string[]) => {
    const server = await startBroker(kind, join(folder, name), args);
    ends.push(async () => {
      signal(server, 'SIGCONT');
      await server.kill();
    });
    return server;
  };

  beforeAll(async () => {
    const args = ['--appendonly', 'no', '--repl-diskless-sync-delay', '0'];
    const one = await start('redis', 'one', ...args);
    servers = [one, await start('redis', 'other', ...args, '--replicaof', '127.0.0.1', `${one.port}`)];
    sentinel = connect({ port: (await start('sentinel', 'sentinel')).port });
    const primary = connect({ port: one.port });
    await waitFor(async () => (await primary.info('replication')).includes('state=online'), { limitMs: startLimitMs });
    // It would wait for 30 s if it was starved for 2 s, and for 8 s before it makes a copy of a former primary.
    const periods = ['INFO-PERIOD', '500', 'PUBLISH-PERIOD', '100', 'TILT-PERIOD', '100'];
    await sentinel.call('SENTINEL', 'DEBUG', ...periods);
    await sentinel.call('SENTINEL', 'MONITOR', 'main', '127.0.0.1', `${one.port}`, '1');
    await expectFailover(false);
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A primary that only has to wait for the processor isn't replaced, unless the test expects that. */
  const expectFailover = async (isExpected: boolean): Promise<void> => {
    const [downMs, timeoutMs] = isExpected ? (['500', '2000'] as const) : (['100000', '100000'] as const);
    await sentinel.call('SENTINEL', 'SET', 'main', 'down-after-milliseconds', downMs, 'failover-timeout', timeoutMs);
  };
  const primaryPort = async (): Promise<number> => {
    const [, port] = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main')) as string[];
    return Number(port);
  };
  /** Returns the primary and its copy, once the copy has everything and Sentinel knows it. */
  const settled = () =>
    waitFor(
      async () => {
        const port = await primaryPort();
        const [copy = []] = (await sentinel.call('SENTINEL', 'REPLICAS', 'main')) as string[][];
        const isReady = copy.includes('ok') && copy.includes('slave');
        const [primary, other] = servers.toSorted((server) => (server.port === port ? -1 : 1));
        return isReady ? { primary: primary!, copy: other! } : undefined;
      },
      { limitMs: startLimitMs, what: () => 'a primary with a copy' },
    );
  // It refuses until it knows the copy. If that lasts, `waitFor` fails.
  const failOver = () =>
    waitFor(() => sentinel.call('SENTINEL', 'FAILOVER', 'main').catch(() => undefined), { limitMs: startLimitMs });
  /** From now on, what the primary confirms is lost with it. */
  const stopCopying = async (primary: RunningBroker, copy: RunningBroker): Promise<void> => {
    signal(copy, 'SIGSTOP');
    await connect({ port: primary.port, retryStrategy: undefined }).call('CLIENT', 'KILL', 'TYPE', 'replica');
  };
  const promote = async (copy: RunningBroker, isDown = true): Promise<void> => {
    signal(copy, 'SIGCONT');
    await expectFailover(isDown);
    await waitFor(async () => (await primaryPort()) === copy.port, { limitMs: startLimitMs });
    await expectFailover(false);
  };

  /** Starts three replicas, and counts their connections to the service. */
  const startReplicas = async (account: string) => {
    const sentinels = [{ host: '127.0.0.1', port: sentinel.options.port! }];
    // A primary that hangs closes no connection.
    const open = () => connect({ sentinels, name: 'main', socketTimeout: 2_000 });
    const engines = ['a', 'b', 'c'].map(() => cutEngine(redisEngine(open(), open()), true));
    await Promise.all(engines.map((engine) => becomes(engine)));
    const cluster = await startTestCluster(engines[0], true);
    const handshakes: unknown[] = [];
    cluster.service.events$.subscribe((event) => event.type === 'handshake-accepted' && handshakes.push(event));
    const owner = await cluster.startOwner('a', { account });
    const [b, c] = ['b', 'c'].map((name, n) => cluster.start(name, { account, engine: engines[n + 1]! }));
    const replicas = [owner, b!, c!] as const;
    await cluster.owner(...replicas);
    let sent = 0;
    const push = (count: number): void => {
      for (const until = sent + count; sent < until; sent += 1) cluster.push(`${sent}`);
    };
    const newest = ({ events }: TestReplica): number => {
      const last = events.findLast((event) => event.type === 'frame');
      return last ? Number(last.text()) : -1;
    };
    /** Waits until replicas have the first frames; by default, all that were pushed so far. */
    const have = (which: readonly TestReplica[], count = sent) =>
      waitFor(() => which.every((each) => newest(each) >= count - 1), {
        limitMs: startLimitMs,
        what: () => `${count} frames: ${JSON.stringify(which.map((each) => [newest(each), each.cluster.status]))}`,
      });
    /** Each replica has each frame once and in order, and the first owner has kept its connection. */
    const expectAll = async (): Promise<void> => {
      await have(replicas);
      for (const { events, texts, cluster } of replicas) {
        expect(texts()).toEqual(Array.from({ length: sent }, (_, n) => `${n}`));
        expect(events.filter(({ type }) => type === 'gap')).toEqual([]);
        expect(cluster.status).toMatchObject({ generation: 1, owner: owner.cluster.status.replica });
      }
      expect(handshakes).toHaveLength(1);
    };
    let timer: NodeJS.Timeout | undefined;
    const pushing = (): void => {
      timer ??= setInterval(() => push(1), 4);
    };
    const pause = (): void => clearInterval(timer);
    const stop = async (): Promise<void> => {
      pause();
      await cluster[Symbol.asyncDispose]();
    };
    const { cut, restore } = engines[2]!;
    return {
      ...{ replicas, push, pushing, pause, have, expectAll, cut, restore },
      sent: () => sent,
      [Symbol.asyncDispose]: stop,
    };
  };

  it.each<[string, (primary: RunningBroker) => unknown, (primary: RunningBroker) => unknown]>([
    ['dies, and comes back as a copy', (primary) => primary.kill(), (primary) => primary.start()],
    [
      'hangs, and then goes on as a second primary',
      (primary) => signal(primary, 'SIGSTOP'),
      (primary) => signal(primary, 'SIGCONT'),
    ],
    ['is replaced by an operator', failOver, () => undefined],
  ])('lose nothing, and keep the connection of their owner, if the primary %s', async (name, fail, comeBack) => {
    const { primary, copy } = await settled();
    await using started = await startReplicas(name.replaceAll(/\W/g, '-').slice(0, 20));
    const { replicas, pushing, push, have, expectAll, pause, sent } = started;
    pushing();
    await have(replicas, 100);
    if (fail !== failOver) await stopCopying(primary, copy);
    push(100);
    await have(replicas);
    await fail(primary);
    await promote(copy, fail !== failOver);
    await have(replicas, sent() + 100);
    await comeBack(primary);
    await settled();
    await have(replicas, sent() + 100);
    pause();
    await expectAll();
  });

  it('get what only the lost primary had from the owner, although no frame follows', async () => {
    const { primary, copy } = await settled();
    await using started = await startReplicas('quiet');
    const { replicas, push, have, expectAll, cut, restore } = started;
    const [a, b] = replicas;
    push(100);
    await have(replicas);
    cut();
    await stopCopying(primary, copy);
    push(100);
    await have([a, b]);
    await primary.kill();
    await promote(copy);
    restore();
    await expectAll();
    await primary.start();
    await settled();
  });
});
