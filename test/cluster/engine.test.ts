import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Kvm } from '@nats-io/kv';
import { Logger } from '@nestjs/common';
import { metrics } from '@opentelemetry/api';
import type { Redis } from 'ioredis';
import {
  BehaviorSubject,
  exhaustMap,
  filter,
  firstValueFrom,
  interval,
  Observable,
  share,
  type Subscriber,
  tap,
} from 'rxjs';
import { EngineFaults } from '../../src/cluster/engine-faults.js';
import type { ClusterEngine } from '../../src/cluster/engine.js';
import { createFeedCluster, memoryEngine } from '../../src/cluster/index.js';
import { readClusterState } from '../../src/cluster/operate.js';
import type { EngineOperation, EngineRecovered, EngineRefused, FailureCode } from '../../src/index.js';
import { natsEngine } from '../../src/nats/index.js';
import { TradeFeed, TradeFeedHealthIndicator } from '../../src/nestjs/index.js';
import { redisEngine } from '../../src/redis/index.js';
import { clusterEngineTests, startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { Log } from '../nestjs/support.js';
import { startSdk } from '../otel/sdk.js';
import { fakeTimers } from '../support/fake-timers.js';
import { waitFor } from '../support/wait-for.js';
import { describeInstalled, type RealServer, startServer } from './support/real-server.js';
import { shortTimes, startTestCluster } from './support/replicas.js';

describe('the engine in memory', () => {
  const engine = memoryEngine();
  it.each(clusterEngineTests(() => [engine, engine]).map(({ name, run }) => [name, run] as const))('%s', (_, run) =>
    run(),
  );
});

/** Real servers with one fault each. Every output alone must show it within this time, in ms. */
const limitMs = 5_000;
const tickMs = 50;

/** A replica, and the fault that begins once it runs. If `fail` is missing, the fault was there before. */
interface Faulty {
  readonly engine: ClusterEngine;
  /** Another replica, which owns the connection. */
  readonly owner?: ClusterEngine;
  readonly fail?: () => unknown;
}

interface Row {
  readonly kind: RealServer['broker']['kind'];
  readonly args?: readonly string[];
  readonly config?: string;
  readonly start: (server: RealServer) => Faulty | Promise<Faulty>;
  /** A log line: what the replica can't do, the engine's message, what to do. */
  readonly log: RegExp;
  /** @defaultValue `engine-refused` */
  readonly code?: FailureCode;
  /** `live`: the owner still receives frames, so a load balancer should keep it. @defaultValue `down` */
  readonly health?: 'live';
}

const redis = (server: RealServer, options?: object) => redisEngine(server.redis(options), server.redis(options));

const passwords = (password: string): string => `authorization { users = [{ user: app, password: ${password} }] }`;

/** Starts a server again with another password. */
const changePassword = async ({ broker, configure }: RealServer): Promise<void> => {
  await broker.kill();
  configure(passwords('other'));
  await broker.start();
};

const user = { user: 'app', pass: 'secret-of-app' };
const permissions = `authorization { users = [{
  user: app, password: ${user.pass}, permissions: { publish: ["rtf.>"], subscribe: ["rtf.>", "_INBOX.>"] }
}] }`;
const noAccess = ['ACL', 'SETUSER', 'app', 'on', '>secret-of-app', '~*', '&*', '+@all', '-hmget', '-eval'] as const;

const rows: Readonly<Record<string, Row>> = {
  'NATS without JetStream': {
    kind: 'nats-core',
    start: async (server) => ({ engine: natsEngine(await server.nats()) }),
    log: /can't read the cluster's key: jetstream is not enabled\. JetStream is not enabled: start nats-server with -js\.$/i,
  },
  'NATS with a full bucket': {
    kind: 'nats',
    start: async (server) => {
      const connection = await server.nats();
      await new Kvm(connection).create('rx-trade-feed', { max_bytes: 100, allow_direct: false });
      return { engine: natsEngine(connection) };
    },
    log: /can't write the cluster's key: maximum bytes exceeded\. The store is full: raise its limit/i,
  },
  'NATS without the permissions of the guide': {
    kind: 'nats',
    config: permissions,
    start: async (server) => ({ engine: natsEngine(await server.nats(user)) }),
    log: /can't read the cluster's key: Permissions Violation for Publish to "\$JS.API.INFO"\. Give the user/i,
  },
  'NATS that is down': {
    kind: 'nats',
    start: async (server) => ({ engine: natsEngine(await server.nats()), fail: () => server.broker.kill() }),
    log: /can't reach the cluster's engine: it doesn't answer\. Check that the engine runs/i,
    health: 'live',
  },
  'NATS with a wrong password, and a client that tries again': {
    kind: 'nats',
    config: passwords(user.pass),
    start: async (server) => ({
      engine: natsEngine(await server.nats({ ...user, ignoreAuthErrorAbort: true })),
      fail: () => changePassword(server),
    }),
    log: /can't reach the cluster's engine: Authorization Violation\. Check the user and the password/i,
    health: 'live',
  },
  'NATS with a wrong password, and a client that gives up': {
    kind: 'nats',
    config: passwords(user.pass),
    start: async (server) => ({ engine: natsEngine(await server.nats(user)), fail: () => changePassword(server) }),
    log: /Stopped, engine-closed: The connection to the cluster's engine was closed.*\(Authorization Violation\)\. Restart the process/i,
    code: 'engine-closed',
  },
  'Redis that is read-only': {
    kind: 'redis',
    args: ['--replicaof', '127.0.0.1', '1'],
    start: (server) => ({ engine: redis(server) }),
    log: /can't write the cluster's key: READONLY .+\. Connect to the primary server/i,
  },
  'Redis without permissions': {
    kind: 'redis',
    start: async (server) => {
      await server.redis().call(...noAccess);
      return { engine: redis(server, { username: 'app', password: user.pass }) };
    },
    log: /can't read the cluster's key: NOPERM .+ 'hmget' command\. Give the user/i,
  },
  'Redis without memory': {
    kind: 'redis',
    args: ['--maxmemory', '1'],
    start: (server) => ({ engine: redis(server) }),
    log: /can't write the cluster's key: OOM .+\. The store is full/i,
  },
  'Redis that is down': {
    kind: 'redis',
    start: (server) => ({ engine: redis(server), fail: () => server.broker.kill() }),
    log: /can't reach the cluster's engine: .*ECONNREFUSED.*\. Check that the engine runs/i,
    health: 'live',
  },
  'Redis whose subscriptions of a follower are gone': {
    kind: 'redis',
    start: (server) => {
      const subscriber = server.redis();
      const subscribe = subscriber.subscribe.bind(subscriber);
      let isDead = false;
      // Redis confirms new subscriptions but delivers nothing, like a proxy that has lost them.
      subscriber.subscribe = (async (...channels: string[]) =>
        isDead ? 1 : subscribe(...channels)) as Redis['subscribe'];
      const fail = () => {
        isDead = true;
        return subscriber.unsubscribe();
      };
      return { engine: redisEngine(server.redis(), subscriber), owner: redis(server), fail };
    },
    log: /can't receive messages from the other replicas: no message of an owner has arrived for 3 s\. Run/i,
  },
  'Redis whose client gives up': {
    kind: 'redis',
    start: (server) => {
      const commands = server.redis();
      return { engine: redisEngine(commands, server.redis()), fail: () => commands.disconnect() };
    },
    log: /Stopped, engine-closed: The connection to the cluster's engine was closed.*\. Restart the process/i,
    code: 'engine-closed',
  },
};

/** What a row showed: how long after the fault each output showed it, in ms, and the texts. */
interface Shown {
  readonly log: number;
  readonly health: number;
  readonly metrics: number;
  readonly last: ReturnType<TradeFeedHealthIndicator['isHealthy']>['trade-feed'];
}

const log = new Log();
let sdk: ReturnType<typeof startSdk>;
let service: TradeFeedService;
let apiKey: string;
const closing: (() => unknown)[] = [];
/** The time this process got to run, in ms: a busy machine delays its timers as well as the replicas'. */
let ownMs = 0;
const ticks$ = interval(tickMs).pipe(
  tap(() => (ownMs += tickMs)),
  share(),
);
/** The meter's last collection. All rows share it, because collecting for one would reset the others. */
let collected: Awaited<ReturnType<typeof sdk.collect>> = {};

beforeAll(async () => {
  sdk = startSdk();
  metrics.setGlobalMeterProvider(sdk.providers.meters);
  Logger.overrideLogger(log);
  service = await startTradeFeedService();
  const collections$ = interval(100).pipe(exhaustMap(() => sdk.collect()));
  const collecting = collections$.subscribe((metrics) => (collected = metrics));
  closing.push(() => collecting.unsubscribe());
  const ticking = ticks$.subscribe();
  closing.push(() => ticking.unsubscribe());
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  Logger.overrideLogger(false);
  metrics.disable();
  await sdk[Symbol.asyncDispose]();
  await service.shutdown();
});

/** Runs a replica with a fault, and waits until each output shows it. */
const show = async (name: string, { code = 'engine-refused', ...row }: Row): Promise<Shown> => {
  const server = await startServer(row.kind, row.config, row.args);
  closing.push(server.stop);
  const { engine, owner, fail } = await row.start(server);
  const account = 'main';
  apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const options = { baseUrl: service.baseUrl, apiKey };

  if (owner) {
    const first = createFeedCluster('market', { ...options, engine: owner, account, replica: 'first' });
    const running = first.events$.subscribe();
    closing.push(() => running.unsubscribe());
    await waitFor(() => first.status.role === 'owning');
  }
  const feed = new TradeFeed({ feed: 'market', ...options, telemetry: true, cluster: { engine, account } }, name);
  const running = feed.events$.subscribe({ error: () => undefined });
  closing.push(() => running.unsubscribe());
  if (fail) await waitFor(() => feed.status.state === 'live');
  const health = new TradeFeedHealthIndicator(feed);

  const startedAt = ownMs;
  await fail?.();
  // Looks at each tick: all rows wait at the same time.
  const after = async (isShown: () => boolean): Promise<number> => {
    await firstValueFrom(ticks$.pipe(filter(isShown)));
    return ownMs - startedAt;
  };
  const lines = () => log.lines.filter(({ context }) => context === `TradeFeed:${name}`).map(({ text }) => text);
  const [logged, unhealthy, measured] = await Promise.all([
    after(() => lines().some((line) => row.log.test(line))),
    after(() => {
      const shown = health.isHealthy()['trade-feed'];
      return shown.code === code && (row.health === 'live' || shown.status === 'down');
    }),
    after(() => isMeasured(name, code)),
  ]);
  return { log: logged, health: unhealthy, metrics: measured, last: health.isHealthy()['trade-feed'] };
};

const isMeasured = (name: string, code: FailureCode): boolean => {
  const metric = code === 'engine-closed' ? 'trade_feed.connection.state' : 'trade_feed.cluster.refused';
  const series = (collected[metric]?.series ?? []).filter(({ attributes }) => attributes['trade_feed.name'] === name);
  const { value } = series.find(({ attributes }) => (attributes['trade_feed.state'] ?? 'stopped') === 'stopped') ?? {};
  return value === 1;
};

describe.each(['nats', 'redis'] as const)('a replica over a real %s-server', (kind) => {
  describeInstalled(kind, 'with a fault', () => {
    const faults = Object.entries(rows).filter(([, row]) => row.kind.startsWith(kind));
    const shown = new Map<string, Promise<Shown>>();
    // In parallel: most of the time is waiting.
    beforeAll(() => {
      for (const [name, row] of faults) {
        const result = show(name, row);
        shown.set(name, result);
        result.catch(() => undefined);
      }
    });

    it.each(faults)(
      '%s: the log alone, the health alone and the metrics alone show it within five seconds',
      async (name) => {
        const { last, ...times } = await shown.get(name)!;
        for (const ms of Object.values(times)) expect(ms).toBeLessThan(limitMs);
        // The text of an engine may name servers and users.
        expect(JSON.stringify(last)).not.toMatch(/NOPERM|READONLY|OOM|Violation|ECONNREFUSED|jetstream|127\.0\.0\.1/i);
      },
    );

    it('prints no password', async () => {
      await Promise.allSettled(shown.values());
      expect(log.raw).not.toContain(user.pass);
    });
  });
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
