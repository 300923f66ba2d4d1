/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { connect, PermissionViolationError } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { filter, firstValueFrom, lastValueFrom, take } from 'rxjs';
import { subjectsOf } from '../../src/cluster/control.js';
import type { ClusterEngine } from '../../src/cluster/index.js';
import { readClusterState, requestHandOver } from '../../src/cluster/operate.js';
import { natsEngine } from '../../src/nats/index.js';
import { type FeedLog, redisEngine, redisLog } from '../../src/redis/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { describeInstalled } from '../cluster/support/real-server.js';
import { startTestCluster } from '../cluster/support/replicas.js';
import { all, append, done, frame, frames, opened, texts, textsOf } from '../log/support.js';
import { type RunningBroker, startBroker } from '../peers/brokers.mjs';
import { waitFor } from '../support/wait-for.js';
import { fencesOf } from './fences.js';

// Servers take long to start on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);

/** The fence of a guide that contains this text. */
const fenceWith = (text: string, guide = 'docs/replicas.md'): string => {
  const found = fencesOf(guide).filter(({ code }) => code.includes(text));
  expect(found).toHaveLength(1);
  return found[0]!.code;
};

const folder = tempFolder();
const subjects = subjectsOf('main');
const bytes = (text: string): Buffer => Buffer.from(text);

/** Runs two replicas: one owns and publishes, the other follows, and each becomes the owner through a hand-over. */
const shareTheConnection = async (
  connectMain: () => Promise<ClusterEngine>,
  intrude: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> => {
  const engines = [await connectMain(), await connectMain()] as const;
  await using test = await startTestCluster(engines[0], true);
  const replicas = engines.map((engine, n) => test.start(`r${n}`, { engine, line: { maxBytes: 10_000 } }));
  let owner = await test.owner(...replicas);
  for (const text of ['first', 'second', 'third']) {
    // The service sends a frame once, and it's lost if a busy machine makes the connection move at that moment.
    await waitFor(async () => {
      test.push(text);
      await delay(20);
      return replicas.every((replica) => replica.texts().includes(text));
    });
    const other = replicas.find((replica) => replica !== owner)!;
    // An owner that doesn't know of a standby only releases the connection.
    await waitFor(async () => (await readClusterState(engines[0], 'main', 300)).standbys.length > 0);
    await intrude();
    await requestHandOver(engines[0], 'main');
    await waitFor(() => other.cluster.status.role === 'owning');
    owner = await test.owner(...replicas);
  }
  expect(replicas.flatMap(({ events }) => events.filter(({ type }) => type === 'engine-refused'))).toEqual([]);
  expect(replicas.map((replica) => [...new Set(replica.texts())])).toEqual(
    replicas.map(() => ['first', 'second', 'third']),
  );
};

describeInstalled('redis', 'the Redis permissions of the guide', () => {
  const users: Redis[] = [];
  let broker: RunningBroker;
  let admin: Redis;

  const connectAs = (username: string): Redis => {
    const user = new Redis(broker.port, '127.0.0.1', { username, password: 'password', retryStrategy: () => 100 });
    users.push(user);
    return user;
  };
  const open = (account: string): Redis => connectAs(`app_${account}`);
  const allow = async (admin: Redis, commands: string): Promise<void> => {
    for (const line of commands.split('\n')) {
      const [command, ...args] = line.split(' ');
      await admin.call(command!, ...args);
    }
  };

  beforeAll(async () => {
    broker = await startBroker('redis', folder.path('redis'));
    admin = new Redis(broker.port, '127.0.0.1');
    users.push(admin);
    for (const account of ['main', 'other']) await allow(admin, fenceWith('ACL SETUSER').replaceAll('main', account));
    await allow(admin, fenceWith('ACL SETUSER', 'docs/log.md'));
  });
  afterAll(async () => {
    for (const user of users) user.disconnect();
    await broker.kill();
  });

  /** The commands and keys that the server has refused a user. */
  const refusedTo = async (user: string): Promise<readonly unknown[]> => {
    const refused = (await admin.call('ACL', 'LOG')) as readonly (readonly unknown[])[];
    return refused.filter((entry) => entry.includes(user));
  };

  it('let replicas own, publish, follow and hand over, also after what another program has added to the stream', async () => {
    const connectMain = async () => {
      const engine = redisEngine(open('main'), open('main'));
      await firstValueFrom(engine.connected$.pipe(filter(Boolean)));
      return engine;
    };
    await shareTheConnection(connectMain, () => admin.xadd('rtf:line:{main}', '*', 'b', 'not a message'));
    expect(await refusedTo('app_main')).toEqual([]);
  });

  it('let a log be written, limited, read and consumed', async () => {
    const logs = [1, 2].map(() => redisLog(connectAs('log'), { name: 'market', maxBytes: 10_000, maxAgeMs: 60_000 }));
    const [log, other] = logs as [FeedLog, FeedLog];
    await expect(all(log)).rejects.toMatchObject({ code: 'log-missing' });
    await append(log, [opened(), ...frames(1, 501)]);
    await admin.xadd('rtf:log:{market}', '*', 'b', 'not a message');
    await append(other, [opened(2_000), frame(501)]);
    expect(textsOf(await all(log)).at(-1)).toBe(texts(501, 502)[0]);
    await lastValueFrom(other.consume$('db', done).pipe(take(1)));
    expect((await log.committed('db'))!.frames).toBeGreaterThan(0);
    expect(await refusedTo('log')).toEqual([]);
  });

  it('refuse the user of another account, and every other command', async () => {
    const other = open('other');
    const engine = redisEngine(other, open('other'));
    await firstValueFrom(engine.connected$.pipe(filter(Boolean)));
    const noPermission = /NOPERM|can't access/;
    await expect(engine.read(subjects.key)).rejects.toThrow(noPermission);
    await expect(engine.compareAndSet(subjects.key, 'x', undefined)).rejects.toThrow(noPermission);
    await expect(other.publish(subjects.feed, 'forged')).rejects.toThrow(noPermission);
    await expect(firstValueFrom(engine.subscribe(subjects.feed))).rejects.toThrow(noPermission);
    for (const command of ['get x', 'del rtf.v1.main', 'config get *', 'keys *', 'client list', 'client pause 1']) {
      const [name, ...args] = command.split(' ');
      await expect(other.call(name!, ...args)).rejects.toThrow(noPermission);
    }
  });
});

describeInstalled('nats', 'the NATS permissions of the guide', () => {
  const closing: (() => Promise<void>)[] = [];
  let broker: RunningBroker;

  const open = async (account: string) => {
    const connection = await connect({ servers: `127.0.0.1:${broker.port}`, user: `app_${account}`, pass: account });
    closing.push(() => connection.close());
    return connection;
  };

  beforeAll(async () => {
    const config = fenceWith('authorization {').replace('$APP_MAIN_PASSWORD', 'main');
    const [user] = /^ {4}\{\n[\s\S]*?^ {4}\}\n/m.exec(config) ?? [];
    expect(user).toContain('user: app_main');
    // `$` is special in the replacement of a regular expression.
    const both = config.replace(user!, () => user! + user!.replaceAll('main', 'other'));
    broker = await startBroker('nats', folder.path('nats'), ['-c', await folder.file('server.conf', both)]);
  });
  afterAll(async () => {
    for (const close of closing) await close();
    await broker.kill();
  });

  it('let replicas own, publish, follow and hand over', async () => {
    await shareTheConnection(async () => natsEngine(await open('main')));
  });

  it('refuse the user of another account', async () => {
    const connection = await open('other');
    const errors: unknown[] = [];
    void (async () => {
      for await (const status of connection.status()) if (status.type === 'error') errors.push(status.error);
    })();
    const engine = natsEngine(connection);
    const violations = (): readonly string[] =>
      errors.flatMap((error) =>
        error instanceof PermissionViolationError ? [`${error.operation} ${error.subject}`] : [],
      );
    await expect(firstValueFrom(engine.subscribe(subjects.feed))).rejects.toThrow(/permission/i);
    engine.publish(subjects.feed, bytes('forged'));
    await waitFor(() => violations().includes(`publish ${subjects.feed}`));
    await expect(engine.compareAndSet(subjects.key, 'x', undefined)).rejects.toThrow();
    expect(violations()).toContain(`publish $KV.rx-trade-feed.${subjects.key}`);
    await expect(engine.compareAndSet(subjectsOf('other').key, 'x', undefined)).resolves.toBeGreaterThan(0);
  });
});
