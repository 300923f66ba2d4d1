/**
 * @lane brokers
 * @ci
 */
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { ClusterEngine } from '../../src/cluster/engine.js';
import { type LineStore, lineLimits } from '../../src/log/line-store.js';
import type { Head } from '../../src/protocol/place.js';
import { redisEngine } from '../../src/redis/index.js';
import { append, bytesOf, headsOf, names, read } from '../../src/testing/line-store-tests.js';
import { openStore, received, refusals, runStoreTests } from '../cluster/support/line-stores.js';
import {
  becomes,
  describeInstalled,
  eventually,
  type RealServer,
  startServer,
} from '../cluster/support/real-server.js';
import { waitFor } from '../support/wait-for.js';

const key = 'rtf:line:{main}';

const open = async (server: RealServer, options?: object) => {
  const commands = server.redis(options);
  const engine = redisEngine(commands, server.redis(options));
  await becomes(engine);
  return { commands, ...openStore(engine) };
};

/** Returns the messages that subscribers receive from now on. */
const listen = async (engine: ClusterEngine): Promise<readonly string[]> => {
  const names = received(engine);
  // It comes after the subscription on the same connection.
  await engine.request('listening', Buffer.alloc(0), 20_000);
  return names;
};

const more = { began: 0 };

describeInstalled('redis', 'a line in a stream of Redis', () => {
  let server: RealServer;
  beforeAll(async () => {
    server = await startServer('redis');
  });
  afterAll(() => server.stop());
  afterEach(() => server.redis().flushall());

  const restarts: readonly [string, boolean, number][] = [
    ['stored the messages in a file', false, 100],
    ['lost the messages', true, 0],
  ];
  it.each(restarts)('goes on after a restart that %s, and sends nothing late', async (_, isLost, kept) => {
    const { commands, engine, store, reports } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 100));
    const received = await listen(engine);
    await server.broker.kill();
    await becomes(engine, false);
    expect(await append(store, headsOf(1, 100, 110, more))).toBe('away');
    await expect(store.end()).rejects.toThrow('disconnected');
    await expect(read(store, 0)).rejects.toThrow('disconnected');
    if (isLost) server.broker.wipe();
    await server.broker.start();
    await becomes(engine);
    const [end] = await eventually(() => store.end());
    expect(end?.offset).toBe(isLost ? undefined : 99);
    await waitFor(async () => ((await commands.pubsub('NUMSUB', 'rtf.v2.main.feed'))[1] as number) > 0);
    expect(await append(store, headsOf(1, 110, 120, more))).toBe(120);
    expect(await read(store, 0)).toEqual([...names(1, 0, kept), ...names(1, 110, 120)]);
    await waitFor(() => received.includes('1.119'));
    expect(received).toEqual(names(1, 110, 120));
    expect(refusals(reports)).toHaveLength(1);
  });

  it.each<[string, (commands: Redis) => Promise<unknown>]>([
    ['FLUSHALL', (commands) => commands.flushall()],
    ['its key was evicted', (commands) => commands.del(key)],
    ['its messages were removed', (commands) => commands.xtrim(key, 'MAXLEN', 0)],
  ])('refuses a replaced owner after %s, and goes on', async (_, remove) => {
    const [{ commands, engine, store }, { store: other, reports }] = [await open(server), await open(server)];
    await store.end();
    await append(store, headsOf(1, 0, 10));
    await other.end();
    await append(other, headsOf(2, 10, 12));
    const received = await listen(engine);
    await remove(commands);
    expect(await append(store, headsOf(1, 10, 40, more))).toBe('away');
    expect(await append(other, headsOf(2, 12, 20, { began: 10 }))).toBe('away');
    expect(refusals(reports)).toEqual([expect.stringContaining('instead of 2-11000')]);
    expect(await other.end()).toBeUndefined();
    expect(await append(other, headsOf(2, 20, 30, { began: 10 }))).toBe(30);
    expect(await read(other, 0)).toEqual(names(2, 20, 30));
    // Nothing in the store says that the first one was replaced, so subscribers decide.
    await waitFor(() => received.includes('2.29'));
    const of = (gen: number) => received.filter((name) => name.startsWith(`${gen}.`));
    expect([of(1), of(2)]).toEqual([names(1, 10, 40), names(2, 12, 30)]);
  });

  it('publishes nothing of a replaced owner', async () => {
    const [{ engine, store }, { store: other }] = [await open(server), await open(server)];
    await store.end();
    await append(store, headsOf(1, 0, 10));
    await other.end();
    await append(other, headsOf(2, 10, 20));
    const received = await listen(engine);
    expect(await append(store, headsOf(1, 10, 30, more))).toBe('fenced');
    for (const head of headsOf(1, 30, 40, more)) store.append(head, bytesOf(head));
    await append(other, headsOf(2, 20, 30, { began: 10 }));
    await waitFor(() => received.includes('2.29'));
    expect(received).toEqual(names(2, 20, 30));
  });

  it('publishes what follows messages that the stream has lost, and stores again once it has asked', async () => {
    const { commands, engine, store } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 10));
    const received = await listen(engine);
    const [[newest] = []] = await commands.xrevrange(key, '+', '-', 'COUNT', 1);
    await commands.xdel(key, newest!);
    expect(await append(store, headsOf(1, 10, 20, more))).toBe('away');
    for (const head of headsOf(1, 20, 30, more)) store.append(head, bytesOf(head));
    await waitFor(() => received.includes('1.29'));
    expect(received).toEqual(names(1, 10, 30));
    expect((await store.end())?.offset).toBe(8);
    expect(await append(store, headsOf(1, 30, 40, more))).toBe(40);
  });

  it('publishes what there is no memory for, and stores again once there is', async () => {
    const { commands, engine, store, reports } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 10));
    const received = await listen(engine);
    const { used_memory: used } = Object.fromEntries(
      (await commands.info('memory')).split('\r\n').map((line) => line.split(':')),
    ) as { used_memory: string };
    await commands.config('SET', 'maxmemory', Number(used) - 10_000);
    try {
      expect(await append(store, headsOf(1, 10, 20, more))).toBe('full');
      expect(refusals(reports)[0]).toMatch(/full: .*OOM/);
      for (const head of headsOf(1, 20, 30, more)) store.append(head, bytesOf(head));
      await waitFor(() => received.length === 20);
      expect(received).toEqual(names(1, 10, 30));
      expect(await store.end()).toMatchObject({ offset: 9 });
    } finally {
      await commands.config('SET', 'maxmemory', 0);
    }
    expect(await append(store, headsOf(1, 10, 30, more), true)).toBe(30);
    expect(await read(store, 0)).toEqual(names(1, 0, 30));
    expect(received).toHaveLength(20);
  });

  it('publishes what a server refuses that has forgotten the script', async () => {
    const { commands, engine, store, reports } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 10));
    const received = await listen(engine);
    await commands.script('FLUSH');
    expect(await append(store, headsOf(1, 10, 30, more))).toBe('away');
    expect(refusals(reports)).toEqual([expect.stringContaining('away: NOSCRIPT')]);
    await waitFor(() => received.length === 20);
    expect(await store.end()).toMatchObject({ offset: 9 });
    expect(await append(store, headsOf(1, 10, 30, more), true)).toBe(30);
    expect(received).toEqual(names(1, 10, 30));
  });

  it('says that it is away when the server hangs, and has what was sent once it goes on', async () => {
    const { store, reports } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 10));
    process.kill(server.broker.pid!, 'SIGSTOP');
    try {
      for (const head of headsOf(1, 10, 50, more)) store.append(head, bytesOf(head));
      expect(await waitFor(() => refusals(reports)[0])).toMatch(/^away: .*1000 ms/);
      await expect(store.end()).rejects.toThrow("Redis hasn't answered for 2000 ms");
    } finally {
      process.kill(server.broker.pid!, 'SIGCONT');
    }
    expect((await eventually(() => store.end()))[0]).toMatchObject({ gen: 1, offset: 49 });
    expect(await append(store, headsOf(1, 45, 100, more), true)).toBe(100);
    expect([...new Set(await read(store, 0))]).toEqual(names(1, 0, 100));
    expect(refusals(reports)).toHaveLength(1);
  });

  it('reads 30,000 messages, and finds a time among them', async () => {
    const { commands, store } = await open(server);
    await store.end();
    for (let n = 0; n < 30_000; n += 250) {
      expect(await append(store, headsOf(1, n, n + 250, more))).toBe(n + 250);
    }
    const calls = async () => Number(/cmdstat_xrange:calls=(\d+)/.exec(await commands.info('commandstats'))?.[1] ?? 0);
    const before = await calls();
    expect(await store.since(1_000 + 10 * 12_345)).toBe(12_345);
    expect((await calls()) - before).toBeLessThan(20);
    expect(await read(store, 0)).toEqual(names(1, 0, 30_000));
    expect((await calls()) - before).toBeLessThan(20 + 20 + 120);
  });

  it('passes what another program has added only once, and sees what becomes of the messages before it', async () => {
    const [{ commands, store }, { store: other }] = [await open(server), await open(server)];
    const lastOf = async () => (await store.last())?.offset;
    const add = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) await commands.xadd(key, '*', 'b', 'x'.repeat(1_000));
    };
    const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await commands.info('stats'))?.[1]);
    await other.end();
    await append(other, headsOf(1, 0, 10));
    await add(300);
    expect(await lastOf()).toBe(9);
    const before = await sent();
    for (let n = 0; n < 5; n += 1) expect(await lastOf()).toBe(9);
    expect((await sent()) - before).toBeLessThan(50_000);
    await add(1);
    await commands.xdel(key, '1-9000');
    expect([await lastOf(), await lastOf()]).toEqual([8, 8]);
    // It removes the entries, and its messages have lower ids.
    await other.end();
    await append(other, headsOf(1, 9, 12, more));
    expect(await lastOf()).toBe(11);
    await commands.del(key);
    await add(2);
    expect([await lastOf(), await lastOf()]).toEqual([undefined, undefined]);
    await other.end();
    await append(other, headsOf(1, 12, 14, more));
    expect(await lastOf()).toBe(13);
  });

  it('keeps a minute, and at most 64 MiB', async () => {
    const { store } = await open(server);
    const now = jest.spyOn(performance, 'now');
    try {
      const from = performance.now();
      await store.end();
      const firstAt = async (ms: number): Promise<number | undefined> => {
        now.mockReturnValue(from + ms);
        const { to = 0 } = (await store.extent()) ?? {};
        await append(store, headsOf(1, to, to + 1_000, more));
        return (await store.extent())?.from;
      };
      expect([await firstAt(0), await firstAt(30_000), await firstAt(59_000)]).toEqual([0, 0, 0]);
      // Redis removes whole nodes of the stream.
      const second = await firstAt(90_500);
      expect(second).toBeGreaterThan(900);
      expect(second).toBeLessThanOrEqual(1_000);
      const { to = 0 } = (await store.extent()) ?? {};
      for (let n = 0; n < 80; n += 1)
        await append(store, headsOf(1, to + n, to + n + 1, { ...more, ...{ padding: ' '.repeat(1024 * 1024) } }));
      const { from: oldest = 0, bytes = 0 } = (await store.extent()) ?? {};
      expect(oldest).toBeGreaterThan(to + 10);
      expect(bytes).toBeGreaterThan(0.5 * lineLimits.maxBytes);
      expect(bytes).toBeLessThan(1.5 * lineLimits.maxBytes);
    } finally {
      now.mockRestore();
    }
  });

  it('passes the tests of a store with each protocol of Redis', async () => {
    for (const protocol of [2, 3]) {
      const [one, other] = [await open(server, { protocol }), await open(server, { protocol })];
      const settle = () => listen(other.engine);
      await runStoreTests([one.engine, other.engine], settle, () => one.commands.flushall());
    }
  });
});

describeInstalled('redis', 'the permissions of a line in a stream of Redis', () => {
  const commandsOf = [
    ...['+evalsha', '+script|load', '+publish', '+xadd', '+xrange', '+xrevrange', '+xtrim', '+del', '+memory|usage'],
  ];
  const others = ['+ping', '+info', '+hello', '+client', '+select', '+subscribe', '+unsubscribe', '+hmget', '+eval'];
  const allow = async (server: RealServer, rules: readonly string[]) => {
    const acl = ['reset', 'on', '>secret', '~rtf:line:{main}', '&rtf.v2.main.feed', '&test.*', '&listening*'];
    await server.redis().call('ACL', 'SETUSER', 'app', ...acl, ...others, ...rules);
    return open(server, { username: 'app', password: 'secret' });
  };
  const use = async (store: LineStore): Promise<void> => {
    const now = jest.spyOn(performance, 'now');
    const add = async (heads: readonly Head[]): Promise<void> => {
      const stored = await append(store, heads);
      if (typeof stored === 'string') throw new Error(stored);
      // What follows removes this.
      now.mockReturnValue(performance.now() + 2 * lineLimits.maxAgeMs);
    };
    try {
      await store.end();
      await add(headsOf(1, 0, 10));
      await read(store, 0);
      await store.extent();
      for (const from of [10, 11]) await add(headsOf(1, from, from + 1, more));
      await store.end();
      await add(headsOf(1, 0, 1, { line: 'other' }));
    } finally {
      now.mockRestore();
    }
  };

  it('are those of the guide', async () => {
    await using server = await startServer('redis');
    const [one, other] = [await allow(server, commandsOf), await allow(server, commandsOf)];
    const settle = () => listen(other.engine);
    await runStoreTests([one.engine, other.engine], settle, () => server.redis().flushall());
  });

  it('are named by the error if one is missing', async () => {
    await using server = await startServer('redis');
    for (const missing of commandsOf) {
      const { store, reports } = await allow(
        server,
        commandsOf.filter((each) => each !== missing),
      );
      const problem = await use(store).catch((error: unknown) => String(error));
      await server.redis().flushall();
      expect([missing, [problem, ...refusals(reports)].join()]).toEqual([
        missing,
        expect.stringMatching(/NOPERM|can't run this command/),
      ]);
    }
  });
});
