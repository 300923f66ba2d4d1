import { type INestApplicationContext, Injectable, Module, type ModuleMetadata, Scope } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  getTradeFeedToken,
  TradeFeed,
  type TradeFeedAsyncOptions,
  TradeFeedModule,
  TradeFeedTestingModule,
} from '../../src/nestjs/index.js';
import { Log, startService, when } from './support.js';

let local: Awaited<ReturnType<typeof startService>>;

beforeEach(async () => {
  local = await startService();
});

afterEach(async () => {
  await local.service.shutdown();
});

const otherKey = () => local.service.createAccount({ plan: 'developer' }).createApiKey();
const algorithms = ['reference', 'deep-hash'] as const;

@Module({})
class Root {}

type ContextOptions = NonNullable<Parameters<typeof NestFactory.createApplicationContext>[1]>;
type Imports = NonNullable<ModuleMetadata['imports']>;

/** Starts an application like a program does. */
const start = async (
  imports: Imports,
  moduleIdGeneratorAlgorithm: (typeof algorithms)[number] = 'reference',
): Promise<INestApplicationContext> =>
  NestFactory.createApplicationContext({ module: Root, imports }, optionsWith(moduleIdGeneratorAlgorithm));

const optionsWith = (moduleIdGeneratorAlgorithm: (typeof algorithms)[number]): ContextOptions => ({
  logger: new Log(),
  abortOnError: false,
  moduleIdGeneratorAlgorithm,
});

const here = /one-feed-each\.test\.ts:\d+:\d+/g;

describe.each(algorithms)("two modules, with the module ids of '%s'", (algorithm) => {
  it('do not start without a name, with the same or different keys, and the error names both places', async () => {
    const two: Imports[] = [
      [TradeFeedModule.forRoot(local.options), TradeFeedModule.forRoot({ ...local.options, apiKey: otherKey() })],
      [
        TradeFeedModule.forRootAsync({ useFactory: () => local.options }),
        TradeFeedModule.forRootAsync({ useFactory: () => local.options }),
      ],
      [TradeFeedTestingModule.forRoot(), TradeFeedTestingModule.forRoot()],
    ];
    for (const imports of two) {
      const starting = start(imports, algorithm);
      await expect(starting).rejects.toMatchObject({ code: 'invalid-options' });
      const message = await starting.then(String, String);
      expect(message).toContain('`name` must be different for each feed of an application');
      expect(message).toContain('both have none');
      expect(new Set(message.match(here)).size).toBe(2);
    }
  });

  it('do not start with the same name', async () => {
    const named = () => TradeFeedModule.forRoot({ ...local.options, name: 'raw' });
    await expect(start([named(), named()], algorithm)).rejects.toThrow("both have 'raw'");
  });

  it('are two feeds with different names', async () => {
    const module = (name: string, apiKey: string) => TradeFeedModule.forRoot({ ...local.options, apiKey, name });
    const app = await start([module('one', local.apiKey), module('two', otherKey())], algorithm);
    const [one, two] = ['one', 'two'].map((name) => app.get<TradeFeed>(getTradeFeedToken(name)));
    expect(one).not.toBe(two);
    await Promise.all([one, two].map((feed) => when(feed!.status$, ({ state }) => state === 'live')));
    await app.close();
  });

  it('share one feed when both import one definition', async () => {
    const tradeFeed = TradeFeedModule.forRoot(local.options);
    const feature = () => {
      @Injectable()
      class Reader {
        readonly feed: TradeFeed;
        constructor(feed: TradeFeed) {
          this.feed = feed;
        }
      }
      @Module({ imports: [tradeFeed], providers: [Reader] })
      class Feature {}
      return { Feature, Reader };
    };
    const features = [feature(), feature()];
    const app = await start(
      features.map(({ Feature }) => Feature),
      algorithm,
    );
    const [one, two] = features.map(({ Reader }) => app.get(Reader).feed);
    expect(one).toBe(two);
    await app.close();
  });
});

it('two applications of one process can each have a feed without a name', async () => {
  const apps = [
    await start([TradeFeedModule.forRoot(local.options)]),
    await start([TradeFeedModule.forRoot({ ...local.options, apiKey: otherKey() })]),
  ];
  expect(new Set(apps.map((app) => app.get(TradeFeed))).size).toBe(2);
  await Promise.all(apps.map(async (app) => app.close()));
});

describe('options that are created for each request', () => {
  @Injectable({ scope: Scope.REQUEST })
  class OfRequest {
    createTradeFeedOptions = () => local.options;
  }
  @Injectable()
  class DependsOnRequest {
    readonly of: OfRequest;
    constructor(of: OfRequest) {
      this.of = of;
    }
  }
  @Module({ providers: [OfRequest, DependsOnRequest], exports: [OfRequest, DependsOnRequest] })
  class RequestModule {}

  it.each<[string, () => TradeFeedAsyncOptions]>([
    ['`inject`', () => ({ imports: [RequestModule], inject: [OfRequest], useFactory: () => local.options })],
    [
      'a dependency of `inject`',
      () => ({ imports: [RequestModule], inject: [DependsOnRequest], useFactory: () => local.options }),
    ],
    ['`useClass`', () => ({ useClass: OfRequest })],
    ['`useExisting`', () => ({ imports: [RequestModule], useExisting: OfRequest })],
  ])('do not start: %s', async (_what, options) => {
    const starting = start([TradeFeedModule.forRootAsync(options())]);
    await expect(starting).rejects.toMatchObject({ code: 'invalid-options' });
    await expect(starting).rejects.toThrow(
      /`inject` must be providers with the default scope.*one-feed-each\.test\.ts:/,
    );
  });

  it('are refused at the second request if Nest has called no hook', async () => {
    const options = { imports: [RequestModule], inject: [OfRequest], useFactory: () => local.options };
    const module = await Test.createTestingModule({ imports: [TradeFeedModule.forRootAsync(options)] }).compile();
    await module.resolve(TradeFeed);
    await expect(module.resolve(TradeFeed)).rejects.toThrow('`inject` must be');
  });

  it('start with a transient provider, which is created once', async () => {
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
    for (const options of [
      { imports: [EachModule], inject: [OfEach], useFactory: () => local.options },
      { useClass: OfEach },
    ] satisfies TradeFeedAsyncOptions[]) {
      created = 0;
      const app = await start([TradeFeedModule.forRootAsync(options)]);
      await when(app.get(TradeFeed).status$, ({ state }) => state === 'live');
      expect(app.get(TradeFeed)).toBe(app.get(TradeFeed));
      expect(created).toBe(1);
      await app.close();
    }
  });

  it('start when a test replaces the feed', async () => {
    const feed = {};
    const module = await Test.createTestingModule({ imports: [TradeFeedModule.forRoot(local.options)] })
      .overrideProvider(TradeFeed)
      .useValue(feed)
      .compile();
    await module.init();
    expect(module.get(TradeFeed)).toBe(feed);
    await module.close();
  });
});

describe('a module that is loaded lazily', () => {
  const lazy = (connect: 'bootstrap' | 'first-subscriber', isGlobal = false, name?: string) => {
    @Module({ imports: [TradeFeedModule.forRoot({ ...local.options, connect, isGlobal, name })] })
    class Lazy {}
    return Lazy;
  };

  it.each([false, true])("is refused with connect: 'bootstrap', global: %s", async (isGlobal) => {
    const app = await start([]);
    const Lazy = lazy('bootstrap', isGlobal);
    const loading = app.get(LazyModuleLoader).load(() => Lazy);
    await expect(loading).rejects.toMatchObject({ code: 'invalid-options' });
    await expect(loading).rejects.toThrow(/`connect` must be 'first-subscriber'.*one-feed-each\.test\.ts:/);
    await app.close();
  });

  it('is refused in addition to a feed of the application', async () => {
    const app = await start([TradeFeedModule.forRoot({ ...local.options, connect: 'bootstrap' })]);
    const Lazy = lazy('bootstrap', false, 'lazy');
    await expect(app.get(LazyModuleLoader).load(() => Lazy)).rejects.toThrow("`connect` must be 'first-subscriber'");
    await when(app.get(TradeFeed).status$, ({ state }) => state === 'live');
    await app.close();
  });

  it('connects with its first subscriber', async () => {
    const app = await start([]);
    const Lazy = lazy('first-subscriber');
    const module = await app.get(LazyModuleLoader).load(() => Lazy);
    const feed = module.get(TradeFeed, { strict: false });
    await when(feed.status$, ({ state }) => state === 'live');
    await feed.beforeApplicationShutdown();
    await app.close();
  });

  it('cannot have the name of another feed', async () => {
    const app = await start([TradeFeedModule.forRoot(local.options)]);
    const Lazy = lazy('first-subscriber');
    await expect(app.get(LazyModuleLoader).load(() => Lazy)).rejects.toThrow('`name` must be different');
    await app.close();
  });
});
