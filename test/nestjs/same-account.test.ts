import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { noop } from 'rxjs';
import { tradeFeed$, tradeFeedEvents$ } from '../../src/index.js';
import { TradeFeed, TradeFeedModule } from '../../src/nestjs/index.js';
import { Log, startService } from './support.js';

let local: Awaited<ReturnType<typeof startService>>;
let log: Log;
const apps: INestApplicationContext[] = [];

beforeEach(async () => {
  [local, log] = [await startService(), new Log()];
});

afterEach(async () => {
  await Promise.all(apps.splice(0).map(async (app) => app.close()));
  await local.service.shutdown();
});

/** Starts an application that writes to the log of the test. */
const start = async (...imports: DynamicModule[]) => {
  const module = await Test.createTestingModule({ imports }).setLogger(log).compile();
  apps.push(module);
  return module.init();
};

const warnings = () => log.lines.filter(({ text }) => text.includes('use the same account'));
const place = String.raw`test/nestjs/same-account\.test\.ts:\d+:\d+`;
const otherKey = () => local.service.createAccount({ plan: 'developer' }).createApiKey();

describe('two feeds of one account', () => {
  it('cause a warning at the start that names both places, and does not show the key', async () => {
    await start(
      TradeFeedModule.forRoot(local.options),
      TradeFeedModule.forRootAsync({ name: 'raw', useFactory: () => ({ ...local.options, feed: 'raw' }) }),
    );
    const [warning, ...others] = warnings();
    expect(others).toEqual([]);
    expect(warning).toMatchObject({ level: 'warn', context: expect.stringMatching(/^TradeFeed/) });
    expect(warning?.text).toMatch(new RegExp(String.raw`the feed market \(TradeFeedModule\.forRoot at ${place}\)`));
    expect(warning?.text).toMatch(new RegExp(String.raw`the feed raw \(TradeFeedModule\.forRootAsync at ${place}\)`));
    expect(new Set(warning?.text.match(new RegExp(place, 'g'))).size).toBe(2);
    expect(log.raw).not.toContain(local.apiKey);
  });

  it('cause no warning with keys of two accounts, with two services, or with functions, which cannot be compared', async () => {
    const other = await startService();
    const named = (name: string, options: object) => TradeFeedModule.forRoot({ ...local.options, name, ...options });
    await start(
      named('one', {}),
      named('two', { apiKey: otherKey() }),
      named('three', { baseUrl: other.service.baseUrl }),
      named('four', { apiKey: () => local.apiKey }),
      named('five', { apiKey: () => local.apiKey }),
    );
    expect(warnings()).toEqual([]);
    await other.service.shutdown();
  });

  it('are found in two applications while both run', async () => {
    const module = () => TradeFeedModule.forRoot({ ...local.options, baseUrl: `${local.service.baseUrl}/` });
    await (await start(TradeFeedModule.forRoot(local.options))).close();
    const first = await start(module());
    expect(warnings()).toEqual([]);
    await start(TradeFeedModule.forRoot(local.options));
    expect(warnings()).toHaveLength(1);
    await first.close();
  });

  it('are not found in an application that failed to start', async () => {
    const failing = {
      module: class {},
      providers: [{ provide: 'other', useFactory: () => Promise.reject(new Error()) }],
    };
    await expect(start(TradeFeedModule.forRoot(local.options), failing)).rejects.toThrow();
    await start(TradeFeedModule.forRoot(local.options));
    expect(warnings()).toEqual([]);
  });

  it('are found for `new TradeFeed()` while it is subscribed to', async () => {
    const created = new TradeFeed(local.options);
    await start(TradeFeedModule.forRoot(local.options));
    expect(warnings()).toEqual([]);
    created.frames$.subscribe({ error: noop }).unsubscribe();
    expect(warnings().map(({ text }) => text)).toEqual([
      expect.stringMatching(new RegExp(String.raw`the feed market \(new TradeFeed at ${place}\)`)),
    ]);
    await created.beforeApplicationShutdown();
    await start(TradeFeedModule.forRoot({ ...local.options, name: 'second' }));
    expect(warnings()).toHaveLength(2);
    expect(warnings()[1]?.text).not.toContain('new TradeFeed');
  });

  it.each([
    ['tradeFeed$', tradeFeed$],
    ['tradeFeedEvents$', tradeFeedEvents$],
  ])('are found for %s before and after the module, while it is subscribed to', async (name, createFeed) => {
    const { backoff: _, ...options } = local.options;
    const feed$ = createFeed('raw', options);
    const before = feed$.subscribe({ error: noop });
    const app = await start(TradeFeedModule.forRoot(local.options));
    const text = new RegExp(String.raw`${name.replace('$', String.raw`\$`)}\('raw'\) at ${place}`);
    expect(warnings().map(({ text }) => text)).toEqual([expect.stringMatching(text)]);
    before.unsubscribe();
    await app.close();
    await start(TradeFeedModule.forRoot(local.options));
    expect(warnings()).toHaveLength(1);
    feed$.subscribe({ error: noop }).unsubscribe();
    expect(warnings()).toHaveLength(2);
    expect(warnings()[1]?.text).toMatch(text);
  });
});
