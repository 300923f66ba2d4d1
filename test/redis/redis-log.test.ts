/**
 * @lane brokers
 * @ci
 */
import { expect, it } from '@jest/globals';
import { lastValueFrom, Subject, take } from 'rxjs';
import type { LogError } from '../../src/log/index.js';
import { redisLog } from '../../src/redis/index.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { all, append, done, follow, frame, frames, opened, texts, textsOf } from '../log/support.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';

const limitMs = startLimitMs;
const { stringMatching } = expect;

describeInstalled('redis', 'a log on Redis', () => {
  it('is a stream, with a hash for each cursor', async () => {
    await using server = await startServer('redis');
    const connection = server.redis();
    const log = redisLog(connection, { name: 'market' });
    await append(log, [opened(), ...frames(1, 11)]);
    await lastValueFrom(log.consume$('db', done).pipe(take(1)));
    expect((await connection.keys('*')).sort()).toEqual(['rtf:log:{market}', 'rtf:log:{market}:cursor:db']);
    expect(await connection.type('rtf:log:{market}')).toBe('stream');
    await connection.del('rtf:log:{market}:cursor:db');
    expect(await log.committed('db')).toBeUndefined();
  });

  it('goes on in a stream to which another program has added entries before its first writer', async () => {
    await using server = await startServer('redis');
    const connection = server.redis();
    for (let n = 0; n < 300; n += 1) await connection.xadd('rtf:log:{market}', '*', 'field', 'value');
    const log = redisLog(connection, { name: 'market' });
    await append(log, [opened(), frame(1)]);
    for (let n = 0; n < 300; n += 1) await connection.xadd('rtf:log:{market}', '*', 'field', 'value');
    expect(textsOf(await all(log))).toEqual(texts(1, 2));
    expect(textsOf(await all(log, { from: { offset: 1 } }))).toEqual(texts(1, 2));
    await append(log, [opened(5_000), frame(2, 5_001)]);
    expect(textsOf(await all(log))).toEqual(texts(1, 3));
  });

  it('names the permission that a user lacks, at once, and never says that the writer has gone', async () => {
    await using server = await startServer('redis');
    const [admin, writer] = [server.redis(), redisLog(server.redis(), { name: 'market' })];
    await append(writer, [opened(), frame(1)]);
    await admin.acl('SETUSER', 'deaf', 'on', '>log', '~*', '+@all', 'resetchannels');
    await admin.acl('SETUSER', 'blind', 'on', '>log', '~*', '&*', '+@all', '-@stream');
    const at = performance.now();
    for (const username of ['deaf', 'blind']) {
      const log = redisLog(server.redis({ username, password: 'log' }), { name: 'market' });
      const reader = follow(log);
      await waitFor(() => reader.errors.length > 0, { limitMs });
      const failure = { name: 'LogError', message: stringMatching(/NOPERM.* Give the user/) };
      expect(reader.errors).toEqual([expect.objectContaining({ ...failure, code: 'log-corrupt' })]);
      expect(reader.records.filter(({ type }) => type === 'disconnected')).toEqual([]);
      await expect(append(log, [])).rejects.toMatchObject({ name: 'LogError', code: 'log-write-failed' });
    }
    expect(performance.now() - at).toBeLessThan(4_000);
  });

  it('says where a consumer is or that the server is away, even if the client waits without a limit', async () => {
    await using server = await startServer('redis');
    const log = redisLog(server.redis({ maxRetriesPerRequest: null }), { name: 'market' });
    expect(await log.committed('db')).toBeUndefined();
    await server.broker.kill();
    const failure = { name: 'LogError', message: stringMatching("hasn't answered for 2000 ms") };
    await expect(log.committed('db')).rejects.toMatchObject(failure);
  });

  it('ends its second connection with yours, also in an outage', async () => {
    await using server = await startServer('redis');
    const connection = server.redis();
    const log = redisLog(connection, { name: 'market' });
    const source = new Subject<unknown>();
    const errors: LogError[] = [];
    source.pipe(log.append()).subscribe({ error: (error: LogError) => errors.push(error) });
    await waitFor(() => source.observed, { limitMs });
    await server.broker.kill();
    await waitFor(() => connection.status === 'reconnecting', { limitMs });
    connection.disconnect();
    await waitFor(() => errors.length > 0, { limitMs });
    expect(errors).toEqual([expect.objectContaining({ code: 'log-write-failed' })]);
  });

  it.each<[string, (server: RealServer) => object]>([
    ['no connection', () => ({})],
    ['a connection of NATS', () => ({ status: done, subscribe: done, publish: done })],
    ['a connection with a prefix of keys', (server) => server.redis({ keyPrefix: 'a:' })],
  ])('refuses %s', async (_, connect) => {
    await using server = await startServer('redis');
    expect(() => redisLog(connect(server) as never, { name: 'a' })).toThrow(
      expect.objectContaining({ code: 'invalid-options' }),
    );
  });
});
