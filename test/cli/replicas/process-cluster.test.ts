import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filter, firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import type { DemoReplica } from '../../../src/cli/replicas/demo-replica.js';
import { processCluster } from '../../../src/cli/replicas/process-cluster.js';
import { startTradeFeedService, type TradeFeedService } from '../../../src/testing/index.js';
import { describeInstalled } from '../../cluster/support/real-server.js';
import { type RunningBroker, startBroker } from '../../peers/brokers.mjs';

const opened = ({ events$ }: DemoReplica) => firstValueFrom(events$.pipe(filter(({ type }) => type === 'opened')));
const ended = ({ events$ }: DemoReplica) => lastValueFrom(events$.pipe(toArray()));

describeInstalled('redis', 'replicas that are processes', () => {
  let folder: string;
  let service: TradeFeedService;
  let broker: RunningBroker;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-processes-'));
    service = await startTradeFeedService();
    broker = await startBroker('redis', folder);
  });
  afterAll(async () => {
    await service.shutdown();
    await broker.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  it('report their events until they are killed or stopped, or until the demo ends', async () => {
    let isClosed = false;
    const close = async () => {
      isClosed = true;
      return Promise.resolve();
    };
    const env = {
      PATH: process.env['PATH'],
      TRADE_FEED_BASE_URL: service.baseUrl,
      TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
    };
    const url = `redis://127.0.0.1:${broker.port}`;
    const cluster = await processCluster('market', { name: 'redis-server', url, close }, env);
    expect(cluster.description).toBe('one process each, over redis-server');
    const [one, other] = [cluster.start('one'), cluster.start('other')];
    await Promise.all([opened(one), opened(other)]);
    const { key } = await cluster.state();
    const [owner, follower] = key?.owner.startsWith('one-') ? [one, other] : [other, one];
    owner.kill();
    expect((await ended(owner)).some(({ type }) => type === 'owner-changed')).toBe(false);
    await firstValueFrom(follower.events$.pipe(filter(({ type }) => type === 'gap')));
    follower.stop();
    expect((await ended(follower)).map(({ type }) => type)).toEqual(expect.arrayContaining(['owner-changed', 'gap']));
    expect((await cluster.state()).key).toMatchObject({ phase: 'free', owner: '' });
    const last = cluster.start('last');
    await cluster.close();
    await ended(last);
    expect(isClosed).toBe(true);
  }, 60_000);
});
