// The engines of a cluster with a real nats-server and a real redis-server.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { filter, firstValueFrom } from 'rxjs';
import { clusterEngineTests } from 'rx-trade-feed/testing';
import { connectEngine, startBroker } from './brokers.mjs';
import { install } from './packages.mjs';

install();

/** Repeats a call until it succeeds, as a replica does. */
const eventually = async (call) => {
  for (;;) {
    try {
      return await call();
    } catch {
      await delay(20);
    }
  }
};

for (const kind of ['nats', 'redis']) {
  test(`${kind}-server`, { timeout: 110_000 }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-broker-'));
    const broker = await startBroker(kind, folder);
    const open = new Set();
    const connect = async () => {
      const connected = await connectEngine(kind, broker.port);
      open.add(connected);
      await firstValueFrom(connected.engine.connected$.pipe(filter(Boolean)));
      return connected.engine;
    };
    t.after(async () => {
      for (const { close } of open) await close();
      await broker.kill();
      rmSync(folder, { recursive: true, force: true });
    });

    const [one, other] = [await connect(), await connect()];
    for (const { name, run } of clusterEngineTests(() => [one, other])) await t.test(name, run);

    const becomes = (expected) =>
      firstValueFrom(one.connected$.pipe(filter((isConnected) => isConnected === expected)));

    await t.test(
      'is away after a kill, publishes nothing meanwhile, and is back with its key after a restart',
      async () => {
        const id = `restart.${randomUUID()}`;
        const revision = await one.compareAndSet(id, 'before', undefined);
        const texts = [];
        const subscription = other.subscribe(id).subscribe((data) => texts.push(Buffer.from(data).toString()));
        await broker.kill();
        await becomes(false);
        one.publish(id, Buffer.from('lost'));
        await broker.start();
        await becomes(true);
        assert.deepEqual(await eventually(() => one.read(id)), { value: 'before', revision });
        // The other connection may need longer.
        while (texts.length === 0) {
          one.publish(id, Buffer.from('after'));
          await delay(10);
        }
        subscription.unsubscribe();
        assert.equal(texts[0], 'after');
        assert.ok((await eventually(() => one.compareAndSet(id, 'after', revision))) > revision);
      },
    );

    await t.test('has no key after its data was deleted, and creates it again', async () => {
      const id = `wiped.${randomUUID()}`;
      await one.compareAndSet(id, 'before', undefined);
      await broker.kill();
      await becomes(false);
      broker.wipe();
      await broker.start();
      await becomes(true);
      assert.equal(await eventually(() => one.read(id)), undefined);
      const revision = await eventually(() => one.compareAndSet(id, 'after', undefined));
      assert.deepEqual(await one.read(id), { value: 'after', revision });
    });

    await t.test('rejects while it does not answer, and does not end the process', async () => {
      await broker.kill();
      await becomes(false);
      one.publish('away', Buffer.from('x'));
      const results = await Promise.allSettled([one.request('away', Buffer.from('?'), 50)]);
      assert.equal(results[0].status, 'rejected');
      await broker.start();
      await becomes(true);
    });

    await t.test('is away after its connection was closed', async () => {
      const engine = await connect();
      const closed = [...open].find((each) => each.engine === engine);
      const subscription = engine.subscribe('closed').subscribe();
      await closed.close();
      await firstValueFrom(engine.connected$.pipe(filter((isConnected) => !isConnected)));
      engine.publish('closed', Buffer.from('x'));
      subscription.unsubscribe();
    });
  });
}
