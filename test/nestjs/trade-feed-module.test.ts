import {
  type DynamicModule,
  Inject,
  Injectable,
  type INestApplicationContext,
  Module,
  type ModuleMetadata,
  Scope,
} from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { LazyModuleLoader, ModulesContainer, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from '@jest/globals';
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
  TradeFeedTestingModule,
} from '../../src/nestjs/index.js';
import { live, LocalService, Log } from './support.js';

const local = new LocalService();
type Imports = NonNullable<ModuleMetadata['imports']>;
type IdAlgorithm = 'reference' | 'deep-hash';

interface Start {
  readonly log?: Log;
  readonly moduleIdGeneratorAlgorithm?: IdAlgorithm;
  readonly providers?: NonNullable<ModuleMetadata['providers']>;
}

/** Starts an application like a program does. */
const start = async (
  imports: Imports,
  { log = new Log(), moduleIdGeneratorAlgorithm = 'reference', providers = [] }: Start = {},
): Promise<INestApplicationContext> => {
  const options = { logger: log, abortOnError: false, moduleIdGeneratorAlgorithm };
  const app = await NestFactory.createApplicationContext({ module: class {}, imports, providers }, options);
  local.apps.add(app);
  return app;
};

/** A class that creates the options, and the module that provides it. */
class Factory implements TradeFeedOptionsFactory {
  static options: TradeFeedModuleOptions;
  createTradeFeedOptions = () => Promise.resolve(Factory.options);
}
@Module({ providers: [Factory], exports: [Factory] })
class FactoryModule {}

@Injectable()
class Reader {
  @Inject(TradeFeed) readonly feed!: TradeFeed;
}

describe('forRoot', () => {
  it.each<[string, object, string]>([
    ['an unknown option', { conect: 'bootstrap' }, "`conect` doesn't exist: the options are feed, connect, share"],
    ['an unknown feed', { feed: 'other' }, "`feed` must be 'market' or 'raw'"],
    ['an invalid option in `share`', { share: { lingerMs: -1 } }, '`lingerMs`'],
    ['an invalid option in `freshness`', { freshness: { factor: 0 } }, '`freshness.factor`'],
    ['an invalid option in `relay`', { relay: { maxClients: 0 } }, '`relay.maxClients`'],
    ['an invalid option of the feed', { baseUrl: 'http://example.com' }, '`baseUrl`'],
    ['options that are not an object', null as unknown as object, '`options` must be an object'],
    ['an empty name', { name: '' }, "`name` must be a string that isn't empty"],
    ['a flag that is not a boolean', { isGlobal: 1 }, '`isGlobal` must be true or false'],
  ])('refuses %s from the call itself', (_what, options, message) => {
    expect(() => TradeFeedModule.forRoot(options)).toThrow(TradeFeedError);
    expect(() => TradeFeedModule.forRoot(options)).toThrow(message);
  });

  it('returns a definition that does not show the key', () => {
    const definition = TradeFeedModule.forRoot({ ...local.options, apiKey: 'planted-key' });
    expect(inspect(definition, { depth: null }) + JSON.stringify(definition)).not.toContain('planted-key');
  });

  it('requires an address and a key when the application starts, from the options or the environment', async () => {
    const missing = 'Missing `baseUrl` and `apiKey`. Pass them as options, or set TRADE_FEED_BASE_URL';
    await expect(start([TradeFeedModule.forRoot()])).rejects.toThrow(missing);
    process.env['TRADE_FEED_BASE_URL'] = local.service.baseUrl;
    process.env['TRADE_FEED_API_KEY'] = local.options.apiKey;
    try {
      expect(await local.receive((await start([TradeFeedModule.forRoot()])).get(TradeFeed))).toBe('hello');
    } finally {
      delete process.env['TRADE_FEED_BASE_URL'];
      delete process.env['TRADE_FEED_API_KEY'];
    }
  });

  it('is global only if `isGlobal` is set', async () => {
    @Module({ providers: [Reader], exports: [Reader] })
    class FeatureModule {}
    const imports = (isGlobal?: boolean) => [TradeFeedModule.forRoot({ ...local.options, isGlobal }), FeatureModule];
    await expect(start(imports())).rejects.toThrow('TradeFeed');
    const app = await start(imports(true));
    expect(app.get(Reader).feed).toBe(app.get(TradeFeed));
  });
});

describe('forRootAsync', () => {
  it('uses the options of a factory that reads a ConfigService', async () => {
    const module = TradeFeedModule.forRootAsync({
      imports: [ConfigModule.forRoot({ ignoreEnvFile: true, load: [() => ({ feed: local.options })] })],
      inject: [ConfigService],
      useFactory: (config: ConfigService) => config.getOrThrow<TradeFeedModuleOptions>('feed'),
    });
    expect(await local.receive((await start([module])).get(TradeFeed))).toBe('hello');
  });

  it.each<[string, object, string]>([
    ['no source of options', {}, '`useFactory` must be set, or `useClass` or `useExisting`'],
    ['an unknown option', { useFactory: () => ({}), baseUrl: 'https://example.com' }, "`baseUrl` doesn't exist"],
    ['an empty name', { useFactory: () => ({}), name: '' }, '`name`'],
  ])('refuses %s from the call itself', (_what, options, message) => {
    expect(() => TradeFeedModule.forRootAsync(options)).toThrow(message);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, '`options` must be an object'],
    ['an unknown option', { conect: 1 }, "`conect` doesn't exist"],
    ['a name', { name: 'raw' }, '`name` must be set next to `useFactory`'],
  ])('fails to start if the factory returns %s', async (_what, options, message) => {
    const useFactory = () => options as TradeFeedModuleOptions;
    await expect(start([TradeFeedModule.forRootAsync({ useFactory })])).rejects.toThrow(message);
  });
});

describe('the container', () => {
  /** Returns everything that Nest stores: module instances, providers, and their values. */
  const storedIn = (app: INestApplicationContext): readonly unknown[] =>
    Array.from(app.get(ModulesContainer).values()).flatMap(({ instance, providers }) => [
      instance as unknown,
      ...Array.from(providers, ([token, wrapper]): unknown => [token, wrapper.instance, wrapper.inject, wrapper.name]),
    ]);
  /** Returns all strings reachable from values, including non-enumerable properties, maps and sets. */
  const textsIn = (values: readonly unknown[]): readonly string[] => {
    const reachable = new Set<unknown>(values);
    // The set grows during the iteration.
    for (const value of reachable) {
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null) continue;
      if (types.isMap(value) || types.isSet(value)) for (const each of value) reachable.add(each);
      for (const { value: property } of Object.values<PropertyDescriptor>(Object.getOwnPropertyDescriptors(value)))
        reachable.add(property);
    }
    return Array.from(reachable).filter((value) => typeof value === 'string');
  };
  const plain = 'planted-key';

  it.each<[string, (options: TradeFeedModuleOptions) => DynamicModule]>([
    ['forRoot', (options) => TradeFeedModule.forRoot(options)],
    ['useFactory', (options) => TradeFeedModule.forRootAsync({ useFactory: () => options })],
    ['useClass', () => TradeFeedModule.forRootAsync({ useClass: Factory })],
    ['useExisting', () => TradeFeedModule.forRootAsync({ useExisting: Factory, imports: [FactoryModule] })],
  ])('stores the key wrapped, so that no code can print or inject it: %s', async (_way, define) => {
    const given = (): TradeFeedModuleOptions => ({ ...local.options, apiKey: plain });
    // A class creates its own options, and Nest would store this test's along with it.
    Object.defineProperty(Factory, 'options', { configurable: true, get: given });
    const log = new Log();
    const app = await start([define(given())], { log });
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
  });
});

describe.each<IdAlgorithm>(['reference', 'deep-hash'])("two modules, with the module ids of '%s'", (algorithm) => {
  const startTwo = (imports: Imports) => start(imports, { moduleIdGeneratorAlgorithm: algorithm });

  const { forRoot, forRootAsync } = {
    forRoot: (more: object) => TradeFeedModule.forRoot({ ...local.options, ...more }),
    forRootAsync: () => TradeFeedModule.forRootAsync({ useFactory: () => local.options }),
  };
  it.each<[string, () => DynamicModule, string]>([
    ['without a name, also with different keys', () => forRoot({ apiKey: local.otherKey() }), 'both have none'],
    ['without a name, of factories', forRootAsync, 'both have none'],
    ['without a name, for tests', () => TradeFeedTestingModule.forRoot(), 'both have none'],
    ['with the same name', () => forRoot({ name: 'raw' }), "both have 'raw'"],
  ])('do not start %s, and the error names both places', async (_, define, message) => {
    const starting = startTwo([1, 2].map(define));
    await expect(starting).rejects.toMatchObject({ code: 'invalid-options' });
    const text = await starting.then(String, String);
    expect(text).toContain('`name` must be different for each feed of an application');
    expect(text).toContain(message);
    expect(text.match(/trade-feed-module\.test\.ts:\d+:\d+/g)).toHaveLength(2);
  });

  it('share one feed if they import the same definition', async () => {
    const tradeFeed = TradeFeedModule.forRoot(local.options);
    const features = [1, 2].map(() => {
      class Own extends Reader {}
      return { module: class {}, imports: [tradeFeed], providers: [{ provide: Own, useClass: Own }], Own };
    });
    const app = await startTwo(features);
    const [one, two] = features.map(({ Own }) => app.get(Own).feed);
    expect(one).toBe(two);
  });
});

it('a name allows two feeds of two accounts in one application', async () => {
  @Injectable()
  class Both {
    @InjectTradeFeed('raw') readonly ofProperty!: TradeFeed;
    readonly raw: TradeFeed;
    readonly market: TradeFeed;
    constructor(@InjectTradeFeed('raw') raw: TradeFeed, @InjectTradeFeed() market: TradeFeed) {
      this.raw = raw;
      this.market = market;
    }
  }
  const rawOptions = { ...local.options, apiKey: local.otherKey(), feed: 'raw' } as const;
  const raw = TradeFeedModule.forRootAsync({ name: 'raw', useFactory: () => rawOptions });
  const log = new Log();
  const app = await start([TradeFeedModule.forRoot(local.options), raw], { log, providers: [Both] });
  const feeds = app.get(Both);
  expect(feeds.raw).not.toBe(feeds.market);
  expect([app.get(getTradeFeedToken('raw')), app.get(getTradeFeedToken())]).toEqual([feeds.raw, feeds.market]);
  expect(feeds.ofProperty).toBe(feeds.raw);
  const texts = [local.receive(feeds.raw, 'of raw', 'raw'), local.receive(feeds.market, 'of market')];
  expect(await Promise.all(texts)).toEqual(['of raw', 'of market']);
  expect((await log.line(/^Connected to raw/)).context).toBe('TradeFeed:raw');
  expect((await log.line(/^Connected to market/)).context).toBe('TradeFeed');
});

describe('options that are created for each request', () => {
  @Injectable({ scope: Scope.REQUEST })
  class OfRequest {
    createTradeFeedOptions = () => local.options;
  }
  @Injectable()
  class DependsOnRequest {
    @Inject(OfRequest) readonly of!: OfRequest;
  }
  @Module({ providers: [OfRequest, DependsOnRequest], exports: [OfRequest, DependsOnRequest] })
  class RequestModule {}
  const imports = [RequestModule];
  const useFactory = () => local.options;

  it.each<[string, TradeFeedAsyncOptions]>([
    ['`inject`', { imports, inject: [OfRequest], useFactory }],
    ['a dependency of `inject`', { imports, inject: [DependsOnRequest], useFactory }],
    ['`useClass`', { useClass: OfRequest }],
    ['`useExisting`', { imports, useExisting: OfRequest }],
  ])('are refused at the second request, before a connection opens: %s', async (_what, options) => {
    const app = await start([TradeFeedModule.forRootAsync(options)]);
    await app.resolve(TradeFeed);
    const second = app.resolve(TradeFeed);
    await expect(second).rejects.toMatchObject({ code: 'invalid-options' });
    const message = /`inject` must be providers with the default scope.*trade-feed-module\.test\.ts:/;
    await expect(second).rejects.toThrow(message);
  });

  it('are fine with a transient provider, which Nest creates once', async () => {
    let created = 0;
    @Injectable({ scope: Scope.TRANSIENT })
    class OfEach {
      constructor() {
        created += 1;
      }
      createTradeFeedOptions = () => local.options;
    }
    @Module({ providers: [OfEach], exports: [OfEach] })
    class EachModule {}
    for (const options of [{ imports: [EachModule], inject: [OfEach], useFactory }, { useClass: OfEach }]) {
      created = 0;
      const app = await start([TradeFeedModule.forRootAsync(options)]);
      await live(app.get(TradeFeed));
      expect([app.get(TradeFeed), created]).toEqual([app.get(TradeFeed), 1]);
      await app.close();
    }
  });
});

it('an application starts when a test replaces the feed', async () => {
  const feed = {};
  const module = await Test.createTestingModule({ imports: [TradeFeedModule.forRoot(local.options)] })
    .overrideProvider(TradeFeed)
    .useValue(feed)
    .compile();
  local.apps.add(await module.init());
  expect(module.get(TradeFeed)).toBe(feed);
});

describe('a module that is loaded lazily', () => {
  const load = async (app: INestApplicationContext, connect: 'bootstrap' | 'first-subscriber') => {
    const module = TradeFeedModule.forRoot({ ...local.options, connect });
    return app.get(LazyModuleLoader).load(() => ({ module: class {}, imports: [module] }));
  };

  it('connects with its first subscriber', async () => {
    const feed = (await load(await start([]), 'bootstrap')).get(TradeFeed, { strict: false });
    await live(feed);
    await feed.beforeApplicationShutdown();
  });

  it('is refused if it has the name of another feed', async () => {
    const app = await start([TradeFeedModule.forRoot(local.options)]);
    await expect(load(app, 'first-subscriber')).rejects.toThrow('`name` must be different');
  });
});

describe('two feeds of one account', () => {
  const log = new Log();
  const warnings = () => log.lines.splice(0).filter(({ text }) => text.includes('use the same account'));
  const place = String.raw`test/nestjs/trade-feed-module\.test\.ts:\d+:\d+`;
  const matching = (text: string) => new RegExp(text.replaceAll(/[$()]/g, String.raw`\$&`).replaceAll('PLACE', place));
  const startLogged = (...imports: Imports) => start(imports, { log });

  it('log a warning at the start that names both places without showing the key', async () => {
    const raw = { name: 'raw', useFactory: () => ({ ...local.options, feed: 'raw' }) as const };
    await startLogged(TradeFeedModule.forRoot(local.options), TradeFeedModule.forRootAsync(raw));
    const [warning, ...others] = warnings();
    expect(others).toEqual([]);
    expect(warning).toMatchObject({ level: 'warn', context: expect.stringMatching(/^TradeFeed/) });
    expect(warning?.text).toMatch(matching('the feed market (TradeFeedModule.forRoot at PLACE)'));
    expect(warning?.text).toMatch(matching('the feed raw (TradeFeedModule.forRootAsync at PLACE)'));
    expect(log.raw).not.toContain(local.options.apiKey);
  });

  // test/feed/accounts.test.ts has the keys that functions return.
  it('log no warning for two accounts, two services, or after a failed start', async () => {
    const useFactory = () => Promise.reject(new Error());
    const failing = { module: class {}, providers: [{ provide: 'other', useFactory }] };
    await expect(startLogged(TradeFeedModule.forRoot(local.options), failing)).rejects.toThrow();
    const each = [{}, { apiKey: local.otherKey() }, { baseUrl: 'http://127.0.0.1:9' }];
    await startLogged(...each.map((more, n) => TradeFeedModule.forRoot({ ...local.options, ...more, name: `${n}` })));
    expect(warnings()).toEqual([]);
  });

  it('are detected in two applications while both run', async () => {
    const module = () => TradeFeedModule.forRoot({ ...local.options, baseUrl: `${local.service.baseUrl}/` });
    await (await startLogged(module())).close();
    await startLogged(module());
    expect(warnings()).toEqual([]);
    await startLogged(TradeFeedModule.forRoot(local.options));
    expect(warnings()).toHaveLength(1);
  });
});
