import { Controller, Req, Sse } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import { tradeFeed$ } from '../../src/index.js';
import { type ClusterEngine, memoryEngine } from '../../src/cluster/index.js';
import {
  type SseRequest,
  TradeFeed,
  TradeFeedHealthIndicator,
  TradeFeedModule,
  type TradeFeedModuleOptions,
} from '../../src/nestjs/index.js';
import type { ServiceEvent } from '../../src/testing/index.js';
import { type App, openSse, type SseClient, startApp, startService, when } from './support.js';

@Controller()
class FeedController {
  readonly #tradeFeed: TradeFeed;
  constructor(tradeFeed: TradeFeed) {
    this.#tradeFeed = tradeFeed;
  }

  @Sse('feed')
  feed(@Req() request: SseRequest) {
    return this.#tradeFeed.sse(request, { authorize: 'everybody' });
  }
}

interface Replica extends App {
  readonly feed: TradeFeed;
  readonly cluster: NonNullable<TradeFeed['cluster']>;
  readonly texts: readonly string[];
}

let local: Awaited<ReturnType<typeof startService>>;
let engine: ClusterEngine;
let connected$: BehaviorSubject<boolean>;
let handshakes: ServiceEvent[];
const replicas = new Set<Replica>();
const pages: SseClient[] = [];

beforeEach(async () => {
  local = await startService();
  connected$ = new BehaviorSubject(true);
  engine = { ...memoryEngine(), connected$ };
  handshakes = [];
  local.service.events$
    .pipe(filter(({ type }) => type === 'handshake-accepted'))
    .subscribe((event) => handshakes.push(event));
});

afterEach(async () => {
  for (const page of pages.splice(0)) page.leave();
  // Without the engine no replica waits for another one that ends, too.
  connected$.next(false);
  await Promise.all([...replicas].map(close));
  await local.service.shutdown();
});

const start = async (replica: string, options: TradeFeedModuleOptions = {}): Promise<Replica> => {
  const module = TradeFeedModule.forRoot({
    ...{ ...local.options, connect: 'bootstrap', relay: { batchMs: 0 } },
    cluster: { engine, account: 'main', replica },
    ...options,
  });
  const app = await startApp({ imports: [module], controllers: [FeedController] });
  const feed = app.app.get(TradeFeed);
  const texts: string[] = [];
  feed.frames$.subscribe({ next: (frame) => texts.push(frame.text()), error: () => undefined });
  const started = { ...app, feed, cluster: feed.cluster!, texts };
  replicas.add(started);
  return started;
};

const close = async (replica: Replica): Promise<void> => {
  replicas.delete(replica);
  await replica.app.close();
};

const live = async ({ feed }: Replica) => when(feed.status$, ({ state }) => state === 'live');
const stopped = async ({ feed }: Replica) => when(feed.status$, ({ state }) => state === 'stopped');
const owns = async ({ cluster }: Replica) => when(cluster.status$, ({ role }) => role === 'owning');
const receives = async ({ feed }: Replica, text: string) => when(feed.frames$, (frame) => frame.text() === text);

/** Three replicas, the first of which owns the connection. */
const startThree = async (): Promise<[Replica, Replica, Replica]> => {
  const first = await start('a');
  await owns(first);
  const [second, third] = [await start('b'), await start('c')];
  const all = [first, second, third] as const;
  await Promise.all(all.map(live));
  return [...all];
};

const push = async (to: readonly Replica[], ...texts: string[]): Promise<void> => {
  const received = to.map((replica) => receives(replica, texts.at(-1)!));
  for (const text of texts) local.service.push('market', text);
  await Promise.all(received);
};

const openPage = async ({ url }: Replica, headers?: Record<string, string>): Promise<SseClient> => {
  const page = await openSse(`${url}/feed`, headers);
  pages.push(page);
  return page;
};
const lastIdOf = async ({ messages$ }: SseClient): Promise<string> => {
  let last = '';
  messages$.subscribe(({ id }) => (last = id ?? last)).unsubscribe();
  return Promise.resolve(last);
};
const textsOf = ({ events }: SseClient) => events.flatMap(({ type, data }) => (type === 'frame' ? [data] : []));
const typesOf = ({ events }: SseClient) => events.map(({ type }) => type);

describe('TradeFeedModule with the option cluster', () => {
  it('injects the same feed into all replicas, over one connection', async () => {
    const three = await startThree();
    await push(three, 'a', 'b');
    expect(three.map(({ texts }) => texts)).toEqual([
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'b'],
    ]);
    expect(handshakes.length).toBe(1);
    expect(three.flatMap(({ log }) => log.ofFeeds.filter((line) => line.startsWith('warn')))).toEqual([]);
  });

  it('reports the role, the replica and the owner in the health', async () => {
    const [first, second] = await startThree();
    const [health, other] = [first, second].map(({ app }) => app.get(TradeFeedHealthIndicator).isHealthy());
    const owner = first.cluster.status.replica;
    expect(owner).toMatch(/^a-[\da-f]{12}$/);
    expect(health).toMatchObject({
      'trade-feed': { status: 'up', state: 'live', role: 'owning', replica: owner, owner },
    });
    expect(other).toMatchObject({ 'trade-feed': { status: 'up', state: 'live', role: 'following', owner } });
  });

  it('has no role in the health while nobody subscribes to it, or without an owner', async () => {
    const idle = await start('idle', {
      connect: 'first-subscriber',
      cluster: { engine, account: 'idle', canOwn: false },
    });
    const health = idle.app.get(TradeFeedHealthIndicator).isHealthy();
    expect(health['trade-feed']).not.toHaveProperty('owner');
  });

  it('gives the ownership away when the application shuts down', async () => {
    const [first, second, third] = await startThree();
    await push([first, second, third], 'a');
    const gap = firstValueFrom(second.feed.events$.pipe(filter(({ type }) => type === 'gap')));
    await close(first);
    const owner = [second, third].find(({ cluster }) => cluster.status.role === 'owning');
    expect(owner?.cluster.status.generation).toBe(2);
    expect(await gap).toMatchObject({ failure: { code: 'owner-changed' } });
    await push([second, third], 'b');
    expect([second.texts, third.texts]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
    expect(handshakes.length).toBe(2);
    // Nest has one logger for the process: the one of the last application.
    expect(third.log.ofFeeds).toContainEqual(
      `log The replica ${owner?.cluster.status.replica} owns the connection (generation 2)`,
    );
  });

  it('stops all replicas after a foreign client has replaced the connection, and restart resumes them', async () => {
    const three = await startThree();
    const foreign = tradeFeed$('market', local.options).subscribe({ error: () => undefined });
    await Promise.all(three.map(stopped));
    expect(three.map(({ feed }) => feed.status)).toMatchObject(
      three.map(() => ({ failure: { code: 'connection-replaced' } })),
    );
    const accepted = handshakes.length;
    foreign.unsubscribe();
    for (const { feed } of three) feed.restart();
    await Promise.all(three.map(live));
    await push(three, 'again');
    expect(handshakes.length).toBe(accepted + 1);
  });

  it('logs that it cannot restart without the engine', async () => {
    let isAway = false;
    const shaky: ClusterEngine = {
      ...engine,
      read: async (key) => (isAway ? Promise.reject(new Error('no answer')) : engine.read(key)),
    };
    const replica = await start('a', { cluster: { engine: shaky, account: 'main' } });
    await live(replica);
    const foreign = tradeFeed$('market', local.options).subscribe({ error: () => undefined });
    await stopped(replica);
    isAway = true;
    replica.feed.restart();
    expect((await replica.log.line(/Cannot restart/)).text).toContain('no answer');
    expect(replica.feed.status.state).toBe('stopped');
    foreign.unsubscribe();
  });

  it('continues a page at another replica: no frame twice, and no gap while the owner stays', async () => {
    const [first, second, third] = await startThree();
    const page = await openPage(second);
    await push([first, second, third], '1', '2', '3');
    await page.frame('3');
    const id = await lastIdOf(page);
    page.leave();
    await push([first, second, third], '4', '5');
    const moved = await openPage(third, { 'last-event-id': id });
    await push([first, second, third], '6');
    await moved.frame('6');
    expect([...textsOf(page), ...textsOf(moved)]).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(typesOf(moved)).not.toContain('gap');
  });

  it('continues the pages of the owner that shuts down, with one gap', async () => {
    const [first, second, third] = await startThree();
    const [page, stays] = [await openPage(first), await openPage(third)];
    await push([first, second, third], '1', '2');
    await page.frame('2');
    await close(first);
    const id = await lastIdOf(page);
    const moved = await openPage(second, { 'last-event-id': id });
    await push([second, third], '3');
    await Promise.all([moved, stays].map((each) => each.frame('3')));
    expect([...textsOf(page), ...textsOf(moved)]).toEqual(['1', '2', '3']);
    expect(textsOf(stays)).toEqual(['1', '2', '3']);
    const gaps = [stays, moved].map(typesOf).map((types) => types.filter((type) => type === 'gap').length);
    expect(gaps).toEqual([1, 1]);
  });

  it.each([
    [{}, 'cluster.engine'],
    [{ engine: {} }, 'cluster.engine'],
    [{ account: 'a b' }, 'cluster.account'],
    [{ account: 'main', leaseMs: 100 }, 'cluster.renewMs'],
    [{ account: 'main', renew: 1 }, 'cluster.renew'],
  ])('rejects invalid options: %j', (options, name) => {
    const cluster = { ...('account' in options ? { engine } : {}), ...options } as never;
    expect(() => TradeFeedModule.forRoot({ ...local.options, cluster })).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(name) }),
    );
  });
});
