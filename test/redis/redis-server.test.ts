import { expect, it } from '@jest/globals';
import { filter, firstValueFrom } from 'rxjs';
import { describeServer } from '../cluster/support/real-server.js';

// What only this engine does is in redis-engine.test.ts, with a server in memory.
describeServer('redis', ({ broker, connect }) => {
  it('has later revisions after its data was deleted', async () => {
    const engine = await connect();
    const becomes = (expected: boolean) =>
      firstValueFrom(engine.connected$.pipe(filter((isConnected) => isConnected === expected)));
    const before = (await engine.compareAndSet('wiped', 'before', undefined)) ?? 0;
    await broker().kill();
    await becomes(false);
    broker().wipe();
    await broker().start();
    await becomes(true);
    expect(await engine.read('wiped')).toBeUndefined();
    expect(await engine.compareAndSet('wiped', 'after', undefined)).toBeGreaterThan(before);
  });
});
