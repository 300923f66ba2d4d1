import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, take, toArray } from 'rxjs';
import { redisEngine } from '../../src/redis/index.js';
import { clusterEngineTests } from '../../src/testing/index.js';
import { stubServer } from './stub-redis.js';

const engineOf = (server = stubServer(), options = {}) => redisEngine(server.connect(), server.connect(), options);

const connected = async (server = stubServer(), options = {}) => {
  const engine = engineOf(server, options);
  await Promise.resolve();
  return engine;
};

const refusal = Object.assign(new Error('NOPERM'), { name: 'ReplyError' });

// The same tests run with a real server in test/peers.
describe('the engine over Redis', () => {
  const server = stubServer();
  const tests = clusterEngineTests(async () => [await connected(server), await connected(server)]);
  it.each(tests.map(({ name, run }) => [name, run] as const))('%s', (_, run) => run());

  it('is connected while both connections are ready', async () => {
    const own = stubServer();
    const statuses = firstValueFrom(engineOf(own).connected$.pipe(take(4), toArray()));
    await Promise.resolve();
    own.kill();
    own.restart();
    expect(await statuses).toEqual([false, true, false, true]);
  });

  it('sends nothing while it is not connected', async () => {
    const own = stubServer();
    const engine = engineOf(own);
    engine.publish('subject', Buffer.from('early'));
    await Promise.resolve();
    own.kill();
    engine.publish('subject', Buffer.from('late'));
    await expect(engine.request('subject', Buffer.from('?'), 10)).rejects.toThrow();
    expect(own.commands).not.toContain('publish');
  });

  it('ignores the failure of a message', async () => {
    const own = stubServer();
    const engine = await connected(own);
    engine.publish('subject', Buffer.from('x'));
    own.kill();
    await new Promise(setImmediate);
    expect(own.commands).toEqual([]);
  });

  it('subscribes again after a reconnect', async () => {
    const own = stubServer();
    const engine = await connected(own);
    const next = firstValueFrom(engine.subscribe('subject'));
    own.kill();
    own.restart();
    await new Promise(setImmediate);
    engine.publish('subject', Buffer.from('after'));
    expect(Buffer.from(await next).toString()).toBe('after');
  });

  it('reports a refused subscription', async () => {
    const own = stubServer();
    const engine = await connected(own);
    own.refusal = refusal;
    await expect(firstValueFrom(engine.subscribe('subject'))).rejects.toBe(refusal);
    await expect(firstValueFrom(engine.respond('subject', (data) => data))).rejects.toBe(refusal);
    await expect(engine.request('subject', Buffer.from('?'), 1_000)).rejects.toBe(refusal);
  });

  it('puts the prefix before keys and channels', async () => {
    const own = stubServer();
    const [one, other] = [await connected(own, { prefix: 'a.' }), await connected(own, { prefix: 'b.' })];
    await one.compareAndSet('key', 'one', undefined);
    expect(await other.read('key')).toBeUndefined();
    expect(await connected(own).then((engine) => engine.read('a.key'))).toMatchObject({ value: 'one' });
  });

  it('reads a request without the name of a channel', async () => {
    const own = stubServer();
    const engine = await connected(own);
    const asked = new Promise<string>((resolve) => {
      engine
        .respond('owner', (data) => {
          resolve(Buffer.from(data).toString());
          return data;
        })
        .subscribe();
    });
    await new Promise(setImmediate);
    engine.publish('owner', Buffer.from(''));
    expect(await asked).toBe('');
  });
});
