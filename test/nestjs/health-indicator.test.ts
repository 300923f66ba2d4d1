import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createTradeFeedError, type Freshness } from '../../src/index.js';
import {
  type FeedStatus,
  InjectTradeFeed,
  TradeFeed,
  TradeFeedHealthIndicator,
  TradeFeedTesting,
  TradeFeedTestingModule,
  getTradeFeedToken,
} from '../../src/nestjs/index.js';
import { stoppedBy } from '../../src/nestjs/feed-status.js';
import { type App, startApp, when } from './support.js';

const at = Date.parse('2026-01-02T03:04:05Z');
const since = '2026-01-02T03:04:05.000Z';
const lost = createTradeFeedError({ stage: 'stream', closeCode: 1006 });
const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
const healthOf = (status: FeedStatus, maxOutageMs?: number) =>
  new TradeFeedHealthIndicator({ status }).isHealthy('feed', { maxOutageMs }).feed;

describe('isHealthy', () => {
  it('is up when live, and without a subscriber', () => {
    expect(healthOf({ state: 'live', since: at, connection: 3 })).toEqual({
      status: 'up',
      state: 'live',
      since,
      connection: 3,
    });
    expect(healthOf({ state: 'idle', since: at })).toEqual({ status: 'up', state: 'idle', since });
  });

  it('is down before the first connection is open', () => {
    const reason = 'The first connection is not open yet.';
    expect(healthOf({ state: 'connecting', since: at })).toEqual({
      status: 'down',
      state: 'connecting',
      since,
      reason,
    });
  });

  it('is down in a long outage, with the reason, the start time, and the next attempt', () => {
    const status: FeedStatus = { state: 'reconnecting', since: at, nextAttemptAt: at + 1, attempt: 2, failure: lost };
    expect(healthOf(status)).toEqual({
      status: 'down',
      state: 'reconnecting',
      since,
      code: 'connection-lost',
      reason: 'The connection broke off without a close frame. Nothing to do: the feed reconnects with a fresh ticket.',
      nextAttemptAt: '2026-01-02T03:04:05.001Z',
    });
  });

  it('is up in a short outage: 5 s by default', () => {
    const outage = (ms: number): FeedStatus => ({
      state: 'reconnecting',
      since: Date.now() - ms,
      nextAttemptAt: undefined,
      attempt: 1,
      failure: lost,
    });
    expect(healthOf(outage(0)).status).toBe('up');
    expect(healthOf(outage(5_000)).status).toBe('down');
    expect(healthOf(outage(5_000), 60_000)).toMatchObject({ status: 'up', code: 'connection-lost' });
    expect(healthOf(outage(0), 0).status).toBe('down');
  });

  it('is down after a stop', () => {
    expect(healthOf({ state: 'stopped', since: at, failure: replaced })).toEqual({
      status: 'down',
      state: 'stopped',
      since,
      code: 'connection-replaced',
      reason: `${replaced.meaning} ${replaced.advice}`,
    });
    expect(replaced.meaning).toMatch(/^Another connection .*feeds\.$/);
    expect(healthOf({ ...stoppedBy(new Error('own')), since: at })).toEqual({
      status: 'down',
      state: 'stopped',
      since,
      code: 'relay-source-failed',
      reason: 'An error of the application stopped the feed. See the cause, or the log of the server.',
    });
  });

  it('is down when the connection is open and the newest frame is too old', () => {
    const live: FeedStatus = { state: 'live', since: at, connection: 3 };
    const health = (freshness: Freshness | undefined, status: FeedStatus = live) =>
      new TradeFeedHealthIndicator({ status, freshness }).isHealthy('feed').feed;
    const stale: Freshness = { state: 'stale', since: at + 1_500, newestAt: at + 500, maxAgeMs: 1_000 };
    expect(health(stale)).toEqual({
      ...{ status: 'down', state: 'live', since, connection: 3, newestFrameAt: '2026-01-02T03:04:05.500Z' },
      reason: 'The connection is open, but the newest frame is older than expected.',
    });
    expect(health({ ...stale, newestAt: undefined })).not.toHaveProperty('newestFrameAt');
    expect(health({ ...stale, newestAt: undefined }).status).toBe('down');
    expect(health({ state: 'fresh', since: at }).status).toBe('up');
    expect(health(undefined).status).toBe('up');
    // After an outage the first frame is not there at once.
    expect(health(stale, { ...live, since: Date.now() }).status).toBe('up');
    expect(health(stale, { state: 'idle', since: at }).status).toBe('up');
  });

  it('has the key trade-feed by default, and refuses bad options', () => {
    const indicator = new TradeFeedHealthIndicator({ status: { state: 'idle', since: at } });
    expect(Object.keys(indicator.isHealthy())).toEqual(['trade-feed']);
    expect(() => indicator.isHealthy('feed', { maxOutageMs: -1 })).toThrow('`maxOutageMs`');
    expect(() => indicator.isHealthy('feed', { feed: 1 as never })).toThrow('`feed` must be a TradeFeed');
  });
});

describe('with @nestjs/terminus', () => {
  let started: App;
  afterEach(() => started.app.close());

  @Controller('health')
  class HealthController {
    readonly #health: HealthCheckService;
    readonly #tradeFeed: TradeFeedHealthIndicator;
    readonly #raw: TradeFeed;
    constructor(
      health: HealthCheckService,
      tradeFeed: TradeFeedHealthIndicator,
      @InjectTradeFeed('raw') raw: TradeFeed,
    ) {
      this.#health = health;
      this.#tradeFeed = tradeFeed;
      this.#raw = raw;
    }
    @Get()
    @HealthCheck()
    check() {
      return this.#health.check([
        () => this.#tradeFeed.isHealthy(),
        () => this.#tradeFeed.isHealthy('raw', { feed: this.#raw }),
      ]);
    }
  }

  it('answers 200 or 503, for the feed of the module and for another feed', async () => {
    started = await startApp({
      imports: [
        TerminusModule,
        // The module without a name provides the indicator, although it is not the first one.
        TradeFeedTestingModule.forRoot({ name: 'raw', feed: 'raw' }),
        TradeFeedTestingModule.forRoot(),
      ],
      controllers: [HealthController],
    });
    const { app, url } = started;
    const health = async () => {
      const response = await fetch(`${url}/health`);
      return { code: response.status, ...((await response.json()) as { status: string; details: object }) };
    };
    expect(await health()).toMatchObject({
      code: 200,
      status: 'ok',
      details: { 'trade-feed': { status: 'up', state: 'idle' }, raw: { status: 'up', state: 'idle' } },
    });
    await when(app.get<TradeFeed>(getTradeFeedToken('raw')).status$, ({ state }) => state === 'live');
    expect(await health()).toMatchObject({
      code: 200,
      details: { raw: { status: 'up', state: 'live', connection: 1 } },
    });
    app.get(TradeFeedTesting).account.revokeAccess();
    await when(app.get(TradeFeed).status$, ({ state }) => state === 'stopped');
    expect(await health()).toMatchObject({
      code: 503,
      status: 'error',
      error: { 'trade-feed': { status: 'down', state: 'stopped', code: 'not-entitled' } },
      info: { raw: { status: 'up' } },
    });
  });
});
