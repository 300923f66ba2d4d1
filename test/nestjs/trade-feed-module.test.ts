import { type DynamicModule, type INestApplication, Inject, Injectable, Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { inspect, types } from 'node:util';
import { Secret, TradeFeedError } from '../../src/index.js';
import {
  getTradeFeedToken,
  InjectTradeFeed,
  TradeFeed,
  type TradeFeedAsyncOptions,
  TradeFeedModule,
  type TradeFeedModuleOptions,
  type TradeFeedOptionsFactory,
} from '../../src/nestjs/index.js';
import { startApp, startService, when } from './support.js';

let local: Awaited<ReturnType<typeof startService>>;

beforeEach(async () => {
  local = await startService();
});

afterEach(async () => {
  await local.service.shutdown();
});

const frameOf = async (feed: TradeFeed, push: () => void) => {
  const frame = firstValueFrom(feed.frames$);
  await when(feed.status$, ({ state }) => state === 'live');
  push();
  return (await frame).text();
};

describe('forRoot', () => {
  it.each<[string, object, string]>([
    ['an unknown option', { conect: 'bootstrap' }, '`conect` must be left out: the options are feed, connect, share'],
    ['an unknown feed', { feed: 'other' }, "`feed` must be 'market' or 'raw'"],
    ['an unknown time to connect', { connect: 'later' }, "`connect` must be 'first-subscriber' or 'bootstrap'"],
    ['an invalid option in `share`', { share: { lingerMs: -1 } }, '`lingerMs`'],
    ['an invalid option in `stats`', { stats: { everyMs: 0 } }, '`everyMs`'],
    ['an invalid option in `freshness`', { freshness: { factor: 0 } }, '`freshness.factor`'],
    ['a word in `telemetry`', { telemetry: 'yes' }, '`telemetry` must be true or false'],
    ['no limit in `freshness`', { freshness: {} }, '`freshness.maxAgeMs`'],
    ['an invalid option in `relay`', { relay: { maxClients: 0 } }, '`relay.maxClients`'],
    ['an option that is not an object', { relay: 1 }, '`relay` must be an object'],
    ['an invalid option of the feed', { baseUrl: 'http://example.com' }, '`baseUrl`'],
    ['an invalid option in `backoff`', { backoff: { factor: 0 } }, '`backoff.factor`'],
    ['options that are not an object', null as unknown as object, '`options` must be an object'],
    ['an empty name', { name: '' }, '`name` must be a string that is not empty'],
    ['a flag that is not a boolean', { isGlobal: 1 }, '`isGlobal` must be true or false'],
  ])('refuses %s at once', (_what, options, message) => {
    expect(() => TradeFeedModule.forRoot(options)).toThrow(TradeFeedError);
    expect(() => TradeFeedModule.forRoot(options)).toThrow(message);
  });

  it('refuses a bad key without showing it', () => {
    expect(() => TradeFeedModule.forRoot({ apiKey: 'planted key' })).toThrow(/^(?!.*planted).*`apiKey`/s);
  });

  it('returns a definition that does not show the key', () => {
    const definition = TradeFeedModule.forRoot({ ...local.options, apiKey: 'planted-key' });
    expect(inspect(definition, { depth: null }) + JSON.stringify(definition)).not.toContain('planted-key');
  });

  it('requires an address and a key when the application starts, from the options or the environment', async () => {
    const start = () => Test.createTestingModule({ imports: [TradeFeedModule.forRoot()] }).compile();
    await expect(start()).rejects.toThrow('`baseUrl` must be set, or be in TRADE_FEED_BASE_URL');
    process.env['TRADE_FEED_BASE_URL'] = local.service.baseUrl;
    process.env['TRADE_FEED_API_KEY'] = local.apiKey;
    try {
      const module = await start();
      expect(await frameOf(module.get(TradeFeed), () => local.service.push('market', 'hello'))).toBe('hello');
      await module.close();
    } finally {
      delete process.env['TRADE_FEED_BASE_URL'];
      delete process.env['TRADE_FEED_API_KEY'];
    }
  });

  it('is global only with `isGlobal`', async () => {
    @Injectable()
    class Reader {
      readonly feed: TradeFeed;
      constructor(feed: TradeFeed) {
        this.feed = feed;
      }
    }
    @Module({ providers: [Reader], exports: [Reader] })
    class FeatureModule {}
    const start = (isGlobal?: boolean) =>
      Test.createTestingModule({
        imports: [TradeFeedModule.forRoot({ ...local.options, isGlobal }), FeatureModule],
      }).compile();
    await expect(start()).rejects.toThrow('TradeFeed');
    const module = await start(true);
    expect(module.get(Reader).feed).toBe(module.get(TradeFeed));
    await module.close();
  });
});

describe('forRootAsync', () => {
  it('uses the options of a factory, with a ConfigService', async () => {
    const imports = [
      TradeFeedModule.forRootAsync({
        imports: [ConfigModule.forRoot({ ignoreEnvFile: true, load: [() => ({ feed: local.options })] })],
        inject: [ConfigService],
        useFactory: (config: ConfigService) => config.getOrThrow<TradeFeedModuleOptions>('feed'),
      }),
    ];
    const { app } = await startApp({ imports });
    expect(await frameOf(app.get(TradeFeed), () => local.service.push('market', 'hello'))).toBe('hello');
    await app.close();
  });

  it('uses the options of a class, with `useClass` and `useExisting`', async () => {
    @Injectable()
    class Factory implements TradeFeedOptionsFactory {
      createTradeFeedOptions = () => Promise.resolve(local.options);
    }
    @Module({ providers: [Factory], exports: [Factory] })
    class FactoryModule {}
    for (const options of [{ useClass: Factory }, { useExisting: Factory, imports: [FactoryModule] }]) {
      const module = await Test.createTestingModule({ imports: [TradeFeedModule.forRootAsync(options)] }).compile();
      expect(module.get(TradeFeed).status.state).toBe('idle');
      await module.close();
    }
  });

  it.each<[string, object, string]>([
    ['no source of options', {}, '`useFactory` must be set, or `useClass` or `useExisting`'],
    ['an unknown option', { useFactory: () => ({}), baseUrl: 'https://example.com' }, '`baseUrl` must be left out'],
    ['a factory that is not a function', { useFactory: {} }, '`useFactory` must be a function'],
    ['an empty name', { useFactory: () => ({}), name: '' }, '`name`'],
  ])('refuses %s at once', (_what, options, message) => {
    expect(() => TradeFeedModule.forRootAsync(options)).toThrow(message);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, '`options` must be an object'],
    ['an unknown option', { conect: 1 }, '`conect` must be left out'],
    ['a name', { name: 'raw' }, '`name` must be set next to `useFactory`'],
    ['a scope', { isGlobal: true }, '`isGlobal` must be set next to `useFactory`'],
  ])('does not start with a factory that returns %s', async (_what, options, message) => {
    const useFactory = () => options as TradeFeedModuleOptions;
    const starting = Test.createTestingModule({ imports: [TradeFeedModule.forRootAsync({ useFactory })] }).compile();
    await expect(starting).rejects.toThrow(message);
  });
});

describe('the container', () => {
  /** Returns everything that Nest stores: the instance of each module, the providers, and their values. */
  const storedIn = (app: INestApplication): readonly unknown[] =>
    Array.from(app.get(ModulesContainer).values()).flatMap(({ instance, providers }) => [
      instance as unknown,
      ...Array.from(providers, ([token, wrapper]): unknown => [token, wrapper.instance, wrapper.inject, wrapper.name]),
    ]);
  /** Returns all strings that can be reached from values, also in non-enumerable properties, maps and sets. */
  const textsIn = (values: readonly unknown[]): readonly string[] => {
    const seen = new Set<unknown>(values);
    // The set grows during the iteration.
    for (const value of seen) {
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null) continue;
      if (types.isMap(value) || types.isSet(value)) for (const each of value) seen.add(each);
      for (const { value: own } of Object.values<PropertyDescriptor>(Object.getOwnPropertyDescriptors(value)))
        seen.add(own);
    }
    return Array.from(seen).filter((value) => typeof value === 'string');
  };
  const plain = 'planted-key';

  @Injectable()
  class Factory implements TradeFeedOptionsFactory {
    createTradeFeedOptions = () => ({ ...local.options, apiKey: plain });
  }
  @Module({ providers: [Factory], exports: [Factory] })
  class FactoryModule {}

  it.each<[string, () => DynamicModule]>([
    ['forRoot', () => TradeFeedModule.forRoot({ ...local.options, apiKey: plain })],
    ['useFactory', () => TradeFeedModule.forRootAsync({ useFactory: () => new Factory().createTradeFeedOptions() })],
    [
      'an async useFactory',
      () => TradeFeedModule.forRootAsync({ useFactory: () => Promise.resolve(new Factory().createTradeFeedOptions()) }),
    ],
    ['useClass', () => TradeFeedModule.forRootAsync({ useClass: Factory })],
    ['useExisting', () => TradeFeedModule.forRootAsync({ useExisting: Factory, imports: [FactoryModule] })],
  ])('stores the key wrapped, so that no code can print or inject it: %s', async (_way, define) => {
    const { app, log } = await startApp({ imports: [define()] });
    const stored = storedIn(app);
    expect(stored.length).toBeGreaterThan(10);
    const texts = textsIn(stored);
    expect(texts).toContain(local.service.baseUrl);
    expect(texts.filter((text) => text.includes(plain))).toEqual([]);
    expect(inspect(stored, { depth: 6 })).not.toContain(plain);
    const options = app.get<TradeFeedModuleOptions>('TRADE_FEED_OPTIONS', { strict: false });
    expect(JSON.stringify(options)).toContain('[secret]');
    // A provider of the application receives the same wrapped key.
    expect(options.apiKey).toBeInstanceOf(Secret);
    expect((options.apiKey as Secret).reveal()).toBe(plain);
    expect(log.raw).not.toContain(plain);
    await app.close();
  });
});

describe('a name', () => {
  it('allows two feeds of two accounts in one application', async () => {
    const other = local.service.createAccount({ plan: 'developer' });
    @Injectable()
    class Reader {
      readonly raw: TradeFeed;
      readonly market: TradeFeed;
      constructor(@InjectTradeFeed('raw') raw: TradeFeed, @InjectTradeFeed() market: TradeFeed) {
        this.raw = raw;
        this.market = market;
      }
    }
    @Injectable()
    class ByProperty {
      @InjectTradeFeed('raw') readonly raw!: TradeFeed;
      @Inject(TradeFeed) readonly market!: TradeFeed;
    }
    const named: TradeFeedAsyncOptions = {
      name: 'raw',
      useFactory: () => ({ ...local.options, apiKey: other.createApiKey(), feed: 'raw' }),
    };
    const { app, log } = await startApp({
      imports: [TradeFeedModule.forRoot(local.options), TradeFeedModule.forRootAsync(named)],
      providers: [Reader, ByProperty],
    });
    const { raw, market } = app.get(Reader);
    expect(app.get(ByProperty)).toEqual({ raw, market });
    expect([app.get(getTradeFeedToken('raw')), app.get(getTradeFeedToken())]).toEqual([raw, market]);
    expect(raw).not.toBe(market);
    const texts = [
      frameOf(raw, () => local.service.push('raw', 'of raw')),
      frameOf(market, () => local.service.push('market', 'of market')),
    ];
    expect(await Promise.all(texts)).toEqual(['of raw', 'of market']);
    expect([raw.status.state, market.status.state]).toEqual(['live', 'live']);
    const { context } = await log.line(/^Connected to raw/);
    expect(context).toBe('TradeFeed:raw');
    expect((await log.line(/^Connected to market/)).context).toBe('TradeFeed');
    await app.close();
  });
});
