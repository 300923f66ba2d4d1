/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Kvm } from '@nats-io/kv';
import { Logger } from '@nestjs/common';
import { metrics } from '@opentelemetry/api';
import type { Redis } from 'ioredis';
import { exhaustMap, filter, firstValueFrom, interval, share, tap } from 'rxjs';
import type { ClusterEngine } from '../../src/cluster/engine.js';
import { createFeedCluster } from '../../src/cluster/index.js';
import type { FailureCode } from '../../src/index.js';
import { natsEngine } from '../../src/nats/index.js';
import { TradeFeed, TradeFeedHealthIndicator } from '../../src/nestjs/index.js';
import { redisEngine } from '../../src/redis/index.js';
import { startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { Log } from '../nestjs/support.js';
import { startSdk } from '../otel/sdk.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';
import { describeInstalled, type RealServer, startServer } from './support/real-server.js';

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

/** Runs a replica with a fault, and waits until the log, the health and the metrics each show it. Returns how long that took, in ms, and the health. */
const show = async (name: string, { code = 'engine-refused', ...row }: Row) => {
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
    await waitFor(() => first.status.role === 'owning', { limitMs: startLimitMs });
  }
  const feed = new TradeFeed({ feed: 'market', ...options, telemetry: true, cluster: { engine, account } }, name);
  const running = feed.events$.subscribe({ error: () => undefined });
  closing.push(() => running.unsubscribe());
  const what = () => `a live feed: ${JSON.stringify(feed.status)}`;
  if (fail) await waitFor(() => feed.status.state === 'live', { what, limitMs: startLimitMs });
  const health = new TradeFeedHealthIndicator(feed);

  const startedAt = ownMs;
  await fail?.();
  const lines = () => log.lines.filter(({ context }) => context === `TradeFeed:${name}`).map(({ text }) => text);
  const isUnhealthy = () => {
    const shown = health.isHealthy()['trade-feed'];
    return shown.code === code && (row.health === 'live' || shown.status === 'down');
  };
  const isShown = () => lines().some((line) => row.log.test(line)) && isUnhealthy() && isMeasured(name, code);
  // Looks at each tick: all rows wait at the same time.
  await firstValueFrom(ticks$.pipe(filter(isShown)));
  return { ms: ownMs - startedAt, last: health.isHealthy()['trade-feed'] };
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
    const shown = new Map<string, ReturnType<typeof show>>();
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
        const { last, ms } = await shown.get(name)!;
        expect(ms).toBeLessThan(limitMs);
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
