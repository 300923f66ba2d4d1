/** @lane processes */
import { type DynamicModule, Inject, Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterEach, describe, expect, it } from '@jest/globals';
import { EmptyError, firstValueFrom, map, of, take, toArray } from 'rxjs';
import { tradeFeed$ } from '../../src/index.js';
import {
  getTradeFeedTestingToken,
  getTradeFeedToken,
  TradeFeed,
  TradeFeedModule,
  TradeFeedTesting,
  TradeFeedTestingModule,
  type TradeFeedTestingOptions,
} from '../../src/nestjs/index.js';
import { itInCi } from '../support/cases.js';
import { Log } from './support.js';
import { runProgram } from '../support/run-program.js';
import { startTestLimitMs } from '../support/wait-for.js';

@Injectable()
class Newest {
  @Inject(TradeFeed) readonly feed!: TradeFeed;
  text = () => firstValueFrom(this.feed.frames$.pipe(map((frame) => frame.text())));
}

// The module of an application. Its address doesn't exist, so a test that connects to it fails.
const tradeFeed = TradeFeedModule.forRoot({ baseUrl: 'https://feed.invalid', apiKey: 'real', isGlobal: true });

@Module({ imports: [tradeFeed, { module: class {}, providers: [Newest], exports: [Newest] }] })
class AppModule {}

const apps: TestingModule[] = [];
const compile = async (...imports: DynamicModule[]): Promise<TestingModule> => {
  const app = await Test.createTestingModule({ imports }).setLogger(new Log()).compile();
  apps.push(app);
  return app;
};
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

/** Waits for frames. Returns their texts. */
const framesOf = (app: TestingModule, n: number) =>
  firstValueFrom(
    app.get(TradeFeed).frames$.pipe(
      map((frame) => `${frame.feed} ${frame.connection} ${frame.text()}`),
      take(n),
      toArray(),
    ),
  );

describe('TradeFeedTestingModule', () => {
  it('replaces the module of an application', async () => {
    const app = await Test.createTestingModule({ imports: [AppModule] })
      .overrideModule(tradeFeed)
      .useModule(TradeFeedTestingModule.forRoot({ isGlobal: true }))
      .compile();
    const text = app.get(Newest).text();
    await app.get(TradeFeedTesting).push('hello');
    expect(await text).toBe('hello');
    await app.close();
  });

  it.each<[string, (testing: TradeFeedTesting) => unknown]>([
    ['the access expired', ({ account }) => account.expireAccess()],
    ['the network dropped the connection', ({ service }) => service.dropConnections()],
    ['the service restarted', ({ service }) => service.restart({ connections: 'drop' })],
  ])('pushes to the feed of the module, even after %s', async (_, cause) => {
    const app = await compile(TradeFeedTestingModule.forRoot({ feed: 'raw' }));
    const testing = app.get(TradeFeedTesting);
    expect(testing.account.plan).toBe('developer');
    const texts = framesOf(app, 2);
    await testing.push('one');
    await cause(testing);
    await testing.push('two');
    expect(await texts).toEqual(['raw 1 one', 'raw 2 two']);
  });

  it('stops the service with the application, and rejects a pending push', async () => {
    const app = await compile(TradeFeedTestingModule.forRoot());
    const { service, account } = app.get(TradeFeedTesting);
    const push = app.get(TradeFeedTesting).push('unsent');
    const apiKey = account.createApiKey();
    await app.close();
    await expect(push).rejects.toThrow(EmptyError);
    const options = { baseUrl: service.baseUrl, apiKey, backoff: { maxAttempts: 0 } };
    await expect(firstValueFrom(tradeFeed$('market', options))).rejects.toMatchObject({
      cause: { code: 'ticket-endpoint-unreachable' },
    });
  });

  it('passes its options to the service and the account, and starts a service for each name', async () => {
    const app = await compile(
      TradeFeedTestingModule.forRoot({ account: { entitled: false } }),
      TradeFeedTestingModule.forRoot({ name: 'raw', feed: 'raw', service: { subprotocols: { raw: 'of.test' } } }),
    );
    await expect(firstValueFrom(app.get(TradeFeed).frames$)).rejects.toMatchObject({ code: 'not-entitled' });
    const raw = app.get<TradeFeed>(getTradeFeedToken('raw'));
    const frame = firstValueFrom(raw.frames$);
    await app.get<TradeFeedTesting>(getTradeFeedTestingToken('raw')).push('hello');
    expect((await frame).feed).toBe('raw');
    expect(app.get(getTradeFeedTestingToken())).toBe(app.get(TradeFeedTesting));
  });

  it('starts its sources with the first connection', async () => {
    const service = { sources: { market: of('first', 'second') } };
    const app = await compile(TradeFeedTestingModule.forRoot({ service }));
    expect(await framesOf(app, 2)).toEqual(['market 1 first', 'market 1 second']);
  });

  it.each([{ sources: 5 }, { sources: { market: 5 } }])('refuses a service with %j', async (service) => {
    const options = { service } as unknown as TradeFeedTestingOptions;
    await expect(compile(TradeFeedTestingModule.forRoot(options))).rejects.toThrow('`sources');
  });

  itInCi(
    'does not keep the process running when compile() rejects, even with a source',
    async () => {
      const { code, stdout } = await runProgram('../../nestjs/programs/failing-start.mjs', [], {});
      expect([code, stdout]).toEqual([0, 'no database\n']);
    },
    startTestLimitMs,
  );

  it.each<[object, string]>([
    [{ baseUrl: 'http://127.0.0.1:1' }, '`baseUrl` must be left out: the local service provides it'],
    [{ apiKey: 'key' }, '`apiKey` must be left out'],
    [{ conect: 1 }, "`conect` doesn't exist"],
    [{ name: '' }, '`name` must be a string'],
  ])('refuses %j from the call itself', (options, message) => {
    expect(() => TradeFeedTestingModule.forRoot(options)).toThrow(message);
  });
});
