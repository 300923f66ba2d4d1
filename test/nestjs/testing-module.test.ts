import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from '@jest/globals';
import { EmptyError, firstValueFrom, map, take, toArray } from 'rxjs';
import { tradeFeed$ } from '../../src/index.js';
import {
  getTradeFeedTestingToken,
  getTradeFeedToken,
  TradeFeed,
  TradeFeedModule,
  TradeFeedTesting,
  TradeFeedTestingModule,
} from '../../src/nestjs/index.js';
import { Log, when } from './support.js';

@Injectable()
class Newest {
  readonly #feed: TradeFeed;
  constructor(feed: TradeFeed) {
    this.#feed = feed;
  }
  text = () => firstValueFrom(this.#feed.frames$.pipe(map((frame) => frame.text())));
}

@Controller()
class NewestController {
  readonly #newest: Newest;
  constructor(newest: Newest) {
    this.#newest = newest;
  }
  @Get()
  async get() {
    return this.#newest.text();
  }
}

// As an application has it: its address does not exist, so that a test which connects to it would fail.
const tradeFeed = TradeFeedModule.forRoot({ baseUrl: 'https://feed.invalid', apiKey: 'real', isGlobal: true });

@Module({ providers: [Newest], controllers: [NewestController], exports: [Newest] })
class NewestModule {}

@Module({ imports: [tradeFeed, NewestModule] })
class AppModule {}

describe('TradeFeedTestingModule', () => {
  it('takes the place of the module of an application', async () => {
    const app = await Test.createTestingModule({ imports: [AppModule] })
      .overrideModule(tradeFeed)
      .useModule(TradeFeedTestingModule.forRoot({ isGlobal: true }))
      .compile();
    const text = app.get(Newest).text();
    await app.get(TradeFeedTesting).push('hello');
    expect(await text).toBe('hello');
    await app.close();
  });

  it('shows the service and the account, for failures on demand', async () => {
    const app = await Test.createTestingModule({ imports: [TradeFeedTestingModule.forRoot()] }).compile();
    const { service, account } = app.get(TradeFeedTesting);
    const feed = app.get(TradeFeed);
    expect(account.plan).toBe('developer');
    const gap = when(feed.events$, ({ type }) => type === 'gap');
    await when(feed.status$, ({ state }) => state === 'live');
    account.expireAccess();
    expect(await gap).toMatchObject({ type: 'gap', failure: { code: 'access-expired' } });
    service.failCredentials(true);
    await app.close();
  });

  it('pushes to the feed of the module, and again after a reconnect', async () => {
    const app = await Test.createTestingModule({
      imports: [TradeFeedTestingModule.forRoot({ feed: 'raw' })],
    }).compile();
    const testing = app.get(TradeFeedTesting);
    const texts = firstValueFrom(
      app.get(TradeFeed).frames$.pipe(
        map((frame) => `${frame.feed} ${frame.connection} ${frame.text()}`),
        take(2),
        toArray(),
      ),
    );
    await testing.push('one');
    testing.account.expireAccess();
    await testing.push('two');
    expect(await texts).toEqual(['raw 1 one', 'raw 2 two']);
    await app.close();
  });

  it('ends the service with the application, and a push that waits', async () => {
    const app = await Test.createTestingModule({ imports: [TradeFeedTestingModule.forRoot()] }).compile();
    const { service, account } = app.get(TradeFeedTesting);
    const push = app.get(TradeFeedTesting).push('to nobody');
    const apiKey = account.createApiKey();
    await app.close();
    await expect(push).rejects.toThrow(EmptyError);
    const options = { baseUrl: service.baseUrl, apiKey, backoff: { maxAttempts: 0 } };
    await expect(firstValueFrom(tradeFeed$('market', options))).rejects.toMatchObject({
      cause: { code: 'ticket-endpoint-unreachable' },
    });
  });

  it('starts the service and the account as it is told, and a service for each name', async () => {
    const app = await Test.createTestingModule({
      imports: [
        TradeFeedTestingModule.forRoot({ account: { entitled: false } }),
        TradeFeedTestingModule.forRoot({ name: 'raw', feed: 'raw', service: { subprotocols: { raw: 'of.test' } } }),
      ],
    })
      .setLogger(new Log())
      .compile();
    await expect(firstValueFrom(app.get(TradeFeed).frames$)).rejects.toMatchObject({ code: 'not-entitled' });
    const raw = app.get<TradeFeed>(getTradeFeedToken('raw'));
    const frame = firstValueFrom(raw.frames$);
    await app.get<TradeFeedTesting>(getTradeFeedTestingToken('raw')).push('hello');
    expect((await frame).feed).toBe('raw');
    expect(app.get(getTradeFeedTestingToken())).toBe(app.get(TradeFeedTesting));
    await app.close();
  });

  it.each<[object, string]>([
    [{ baseUrl: 'http://127.0.0.1:1' }, '`baseUrl` must be left out: the service of the test has its own'],
    [{ apiKey: 'key' }, '`apiKey` must be left out'],
    [{ conect: 1 }, '`conect` must be left out'],
    [{ name: '' }, '`name` must be a text'],
  ])('refuses %j at once', (options, message) => {
    expect(() => TradeFeedTestingModule.forRoot(options)).toThrow(message);
  });
});
