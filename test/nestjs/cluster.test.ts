/** @lane brokers */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import { tradeFeed$ } from '../../src/index.js';
import { type ClusterEngine, memoryEngine } from '../../src/cluster/index.js';
import {
  type TradeFeed,
  TradeFeedHealthIndicator,
  TradeFeedModule,
  type TradeFeedModuleOptions,
} from '../../src/nestjs/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { describeInstalled } from '../cluster/support/real-server.js';
import { fencesOf } from '../docs/fences.js';
import { runFences } from '../docs/run-fences.js';
import { startBroker } from '../peers/brokers.mjs';
import { itInCi } from '../support/cases.js';
import { type App, FeedController, live, LocalService, openSse, type SseClient, stopped, when } from './support.js';

interface Replica extends App {
  readonly feed: TradeFeed;
  readonly cluster: NonNullable<TradeFeed['cluster']>;
  readonly texts: readonly string[];
}

let engine: ClusterEngine;
let connected$: BehaviorSubject<boolean>;
const pages: SseClient[] = [];

beforeEach(() => {
  connected$ = new BehaviorSubject(true);
  engine = { ...memoryEngine(), connected$ };
});
afterEach(() => {
  for (const page of pages.splice(0)) page.leave();
  // Cuts off the engine, so that no replica waits for another one that's shutting down.
  connected$.next(false);
});
// Closes the replicas after that.
const local = new LocalService();

const start = async (replica: string, options: TradeFeedModuleOptions = {}): Promise<Replica> => {
  const ofCluster = {
    connect: 'bootstrap',
    relay: { batchMs: 0 },
    cluster: { engine, account: 'main', replica },
  } as const;
  const app = await local.start({ ...ofCluster, ...options }, { controllers: [FeedController] });
  const texts: string[] = [];
  app.feed.frames$.subscribe({ next: (frame) => texts.push(frame.text()), error: () => undefined });
  return { ...app, cluster: app.feed.cluster!, texts };
};

const owns = async ({ cluster }: Replica) => when(cluster.status$, ({ role }) => role === 'owning');
const receives = async ({ feed }: Replica, text: string) => when(feed.frames$, (frame) => frame.text() === text);

/** Starts three replicas, the first of which owns the connection. */
const startThree = async (): Promise<[Replica, Replica, Replica]> => {
  const first = await start('a');
  await owns(first);
  const [second, third] = [await start('b'), await start('c')];
  const all = [first, second, third] as const;
  await Promise.all(all.map(({ feed }) => live(feed)));
  return [...all];
};

const push = async (to: readonly Replica[], ...texts: string[]): Promise<void> => {
  const received = to.map((replica) => receives(replica, texts.at(-1)!));
  for (const text of texts) local.push(text);
  await Promise.all(received);
};

const openPage = async ({ url }: Replica, headers?: Record<string, string>): Promise<SseClient> => {
  const page = await openSse(`${url}/feed`, headers);
  pages.push(page);
  return page;
};
const lastIdOf = ({ messages$ }: SseClient): string => {
  let last = '';
  messages$.subscribe(({ id }) => (last = id ?? last)).unsubscribe();
  return last;
};
const textsOf = ({ events }: SseClient) => events.flatMap(({ type, data }) => (type === 'frame' ? [data] : []));

describe('TradeFeedModule with the option cluster', () => {
  it('reports in its health that the service refuses the key of this replica, without details', async () => {
    const second = await start('b');
    await owns(second);
    await live(second.feed);
    const first = await start('a', { apiKey: 'another-key' });
    await live(first.feed);
    const health = () => first.app.get(TradeFeedHealthIndicator).isHealthy()['trade-feed'];
    expect(health()).not.toHaveProperty('cannotOwn');
    await second.cluster.handOver();
    await when(first.cluster.status$, ({ cannotOwn }) => cannotOwn !== undefined);
    expect(health()).toMatchObject({
      cannotOwn: { code: 'invalid-api-key', reason: expect.stringMatching(/API key/) },
    });
    expect(health().cannotOwn!.reason).not.toContain('HTTP');
  });

  it('refuses one name for two feeds', async () => {
    const market = await start('a');
    await live(market.feed);
    const other = await start('c', { feed: 'raw', apiKey: local.otherKey() });
    expect(await stopped(other.feed)).toMatchObject({ failure: { code: 'invalid-options', option: 'account' } });
    expect(market.feed.status.state).toBe('live');
  });

  it('reports the role, the replica and the owner in the health', async () => {
    const [first, second, third] = await startThree();
    // Replicas share an account on purpose.
    expect([first, second, third].flatMap(({ log }) => log.ofFeeds.filter((line) => line.startsWith('warn')))).toEqual(
      [],
    );
    const [health, other] = [first, second].map(({ app }) => app.get(TradeFeedHealthIndicator).isHealthy());
    const owner = first.cluster.status.replica;
    expect(owner).toMatch(/^a-[\da-f]{20}$/);
    expect(health).toMatchObject({
      'trade-feed': { status: 'up', state: 'live', role: 'owning', replica: owner, owner },
    });
    expect(other).toMatchObject({ 'trade-feed': { status: 'up', state: 'live', role: 'following', owner } });
    const cluster = { engine, account: 'idle', canOwn: false };
    const idle = await start('idle', { connect: 'first-subscriber', cluster });
    expect(idle.app.get(TradeFeedHealthIndicator).isHealthy()['trade-feed']).not.toHaveProperty('owner');
  });

  it('hands over the ownership when the application shuts down, and pages continue with one gap', async () => {
    const [first, second, third] = await startThree();
    const [page, stays] = [await openPage(first), await openPage(third)];
    await push([first, second, third], '1', '2');
    await page.frame('2');
    const gap = firstValueFrom(second.feed.events$.pipe(filter(({ type }) => type === 'gap')));
    await first.app.close();
    const owner = [second, third].find(({ cluster }) => cluster.status.role === 'owning');
    expect(owner?.cluster.status.generation).toBe(2);
    expect(await gap).toMatchObject({ failure: { code: 'owner-changed' } });
    const moved = await openPage(second, { 'last-event-id': lastIdOf(page) });
    await push([second, third], '3');
    await Promise.all([moved, stays].map((each) => each.frame('3')));
    expect([second, third].map(({ texts }) => texts.join())).toEqual(['1,2,3', '1,2,3']);
    expect([...textsOf(page), ...textsOf(moved)]).toEqual(['1', '2', '3']);
    expect(textsOf(stays)).toEqual(['1', '2', '3']);
    const gaps = [stays, moved].map(({ events }) => events.filter(({ type }) => type === 'gap').length);
    expect([gaps, local.handshakes]).toEqual([[1, 1], 2]);
    // A process has only one Nest logger: that of the last application.
    expect(third.log.ofFeeds).toContainEqual(
      `log ${owner?.cluster.status.replica} owns the connection now (generation 2)`,
    );
  });

  it('stops all replicas after another client took over the connection, and restart resumes them', async () => {
    const three = await startThree();
    const foreign = tradeFeed$('market', local.options).subscribe({ error: () => undefined });
    await Promise.all(three.map(({ feed }) => stopped(feed)));
    const warning = await three.at(-1)?.log.line(/use the same account/);
    expect(warning?.text).toMatch(
      /: the feed market \(.* at test\/nestjs\/[^ ]+\), and tradeFeed\$\('market'\) at test\/nestjs/,
    );
    expect(three.map(({ feed }) => feed.status)).toMatchObject(
      three.map(() => ({ failure: { code: 'connection-replaced' } })),
    );
    const accepted = local.handshakes;
    foreign.unsubscribe();
    for (const { feed } of three) feed.restart();
    await Promise.all(three.map(({ feed }) => live(feed)));
    await push(three, 'again');
    expect(local.handshakes).toBe(accepted + 1);
  });

  it('logs that it cannot restart without the engine', async () => {
    let isAway = false;
    const shaky: ClusterEngine = {
      ...engine,
      read: async (key) => (isAway ? Promise.reject(new Error('no answer')) : engine.read(key)),
    };
    const replica = await start('a', { cluster: { engine: shaky, account: 'main' } });
    await live(replica.feed);
    const foreign = tradeFeed$('market', local.options).subscribe({ error: () => undefined });
    await stopped(replica.feed);
    isAway = true;
    replica.feed.restart();
    expect((await replica.log.line(/Can't restart/)).text).toContain('no answer');
    expect(replica.feed.status.state).toBe('stopped');
    foreign.unsubscribe();
  });

  it.each([
    [{}, 'cluster.engine'],
    [{ account: 'a b' }, 'cluster.account'],
    [{ account: 'main', renew: 1 }, 'cluster.renew'],
  ])('rejects invalid options: %j', (options, name) => {
    const cluster = { ...('account' in options ? { engine } : {}), ...options } as never;
    expect(() => TradeFeedModule.forRoot({ ...local.options, cluster })).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(name) }),
    );
  });
});

describeInstalled('nats', 'two feeds with replicas', () => {
  const folder = tempFolder();
  itInCi(
    'run as docs/nestjs.md prints them',
    async () => {
      const broker = await startBroker('nats', folder.path('nats'));
      const { code } = fencesOf('docs/nestjs.md').find((fence) => fence.code.includes("account: 'raw'"))!;
      const program = `${code}
      import { NestFactory } from '@nestjs/core';
      import { getTradeFeedToken, TradeFeed } from 'rx-trade-feed/nestjs';
      class AppModule {}
      const app = await NestFactory.createApplicationContext({ module: AppModule, imports: feeds }, { logger: false });
      const texts: string[] = [];
      for (const name of [undefined, 'raw'])
        app.get<TradeFeed>(getTradeFeedToken(name)).frames$.subscribe((frame) => {
          texts.push(\`\${frame.feed} \${frame.text()}\`);
          if (texts.length === 2) console.log(texts.sort().join(', '));
        });`;
      const opened = new Set<string>();
      local.service.events$.subscribe((event) => {
        if (event.type !== 'handshake-accepted') return;
        opened.add(event.feed);
        if (opened.size === 2) for (const feed of ['market', 'raw'] as const) local.service.push(feed, `of ${feed}`);
      });
      const env = {
        ...{ NATS_URL: `127.0.0.1:${broker.port}`, TRADE_FEED_BASE_URL: local.service.baseUrl },
        ...{ MARKET_API_KEY: local.otherKey(), RAW_API_KEY: local.otherKey() },
      };
      const running = await runFences([{ code: program, expected: /^market of market, raw of raw$/, env }]);
      try {
        await running.printed(0);
      } finally {
        await running.end();
        await broker.kill();
      }
    },
    120_000,
  );
});
