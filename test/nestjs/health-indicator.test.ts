import { Controller, Get, Inject } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { describe, expect, it, jest } from '@jest/globals';
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
import { stoppedBy } from '../../src/operators/connection-status.js';
import { FeedWatch } from '../../src/operators/items/feed-watch.js';
import { issued, opened, requested } from '../operators/stream.js';
import { fakeTimers } from '../support/fake-timers.js';
import { live as isLive, startApp, stopped } from './support.js';

const at = Date.parse('2026-01-02T03:04:05Z');
const since = '2026-01-02T03:04:05.000Z';
const lost = createTradeFeedError({ stage: 'stream', closeCode: 1006 });
const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
const healthOf = (status: FeedStatus, more: object = {}, maxOutageMs?: number) =>
  new TradeFeedHealthIndicator({ status, ...more }).isHealthy('feed', { maxOutageMs }).feed;
const idle: FeedStatus = { state: 'idle', since: at };
const live: FeedStatus = { state: 'live', since: at, connection: 3 };
const outage = (from: number, nextAttemptAt?: number): FeedStatus => ({
  ...{ state: 'reconnecting', since: from, nextAttemptAt, attempt: 1, failure: lost },
});
const stop: FeedStatus = { state: 'stopped', since: at, failure: replaced };

const down = (reason: string, code?: string) => ({ status: 'down', reason, ...(code && { code }) });
const retry = 'Nothing to do: the feed reconnects with a fresh ticket.';
const own = "An error in the app stopped the feed. See the cause, or the server's log.";

describe('isHealthy', () => {
  it.each<[string, FeedStatus, object]>([
    ['up when live', live, { status: 'up', connection: 3 }],
    ['up without a subscriber', idle, { status: 'up' }],
    [
      'down before the first connection',
      { state: 'connecting', since: at },
      down("The first connection isn't open yet."),
    ],
    [
      'down in a long outage, with the reason and the next attempt',
      outage(at, at + 1),
      { ...down(`${lost.meaning} ${retry}`, 'connection-lost'), nextAttemptAt: '2026-01-02T03:04:05.001Z' },
    ],
    ['down after a stop', stop, down(`${replaced.meaning} ${replaced.advice}`, 'connection-replaced')],
    ['down after an error of the app', { ...stoppedBy(new Error()), since: at }, down(own, 'relay-source-failed')],
  ])('is %s', (_, status, expected) => {
    expect(healthOf(status)).toEqual({ state: status.state, since, ...expected });
  });

  it.each<[string, FeedStatus, object, object]>([
    ['down without frames while the engine refuses something', idle, { operation: 'write' }, { status: 'down' }],
    ['up while the engine is away, which may be for a moment', idle, { operation: 'connect' }, { status: 'up' }],
    ['up while an owner receives frames that the engine refuses', live, { operation: 'publish' }, { status: 'up' }],
  ])('is %s', (_, status, refused, expected) => {
    const cluster = { status: { role: 'following', replica: 'a', refused } };
    expect(healthOf(status, { cluster })).toMatchObject({ ...expected, code: 'engine-refused', replica: 'a' });
  });

  it.each(['relay-failed', 'relay-authorize-timeout'])('is up with the reason when pages receive %s', (code) => {
    const relay = { status: () => ({ refused: { code } }) };
    expect(healthOf(live, { relay })).toMatchObject({ status: 'up', code, reason: expect.stringMatching(/^Pages /) });
  });

  it('is up in a short outage: 5 s by default', () => {
    expect(healthOf(outage(Date.now())).status).toBe('up');
    expect(healthOf(outage(Date.now() - 5_000)).status).toBe('down');
    const longer = healthOf(outage(Date.now() - 5_000), {}, 60_000);
    expect(longer).toMatchObject({ status: 'up', code: 'connection-lost' });
    expect(healthOf(outage(Date.now()), {}, 0).status).toBe('down');
    expect(() => healthOf(live, {}, -1)).toThrow('`maxOutageMs`');
  });

  it('says after 5 s what the first attempt is waiting for, and is down if a subscriber gets nothing', () => {
    using _time = fakeTimers();
    const watch = new FeedWatch();
    expect(healthOf(idle, { watch })).toEqual({ status: 'up', state: 'idle', since });
    jest.advanceTimersByTime(5_000);
    const nothing = expect.stringMatching(/^No connection after 5 s, and no attempt has been reported\. Check /);
    expect(healthOf(idle, { watch })).toEqual({ status: 'down', state: 'idle', since, reason: nothing });
    for (const event of [requested(1), issued(2)]) watch.event(event);
    jest.advanceTimersByTime(5_000);
    expect(healthOf({ state: 'connecting', since: at }, { watch })).toMatchObject({
      ...{ status: 'down', code: 'handshake-unreachable' },
      reason: expect.stringMatching(/^No answer to the handshake after 5 s\. Check /),
    });
    watch.event(opened(3));
    jest.advanceTimersByTime(5_000);
    const quiet = { status: 'up', reason: expect.stringMatching(/^No frame for 5 s/) };
    expect(healthOf(live, { watch })).toMatchObject(quiet);
    expect(healthOf(live, { watch })).not.toHaveProperty('code');
    watch.end();
  });

  it('is down in a long outage even if the clock was set back, and up in a short one even if it was set forward', () => {
    using _time = fakeTimers();
    expect(healthOf(outage(Date.now() + 3_600_000)).status).toBe('down');
    const watch = new FeedWatch();
    expect(healthOf(outage(Date.now() - 3_600_000), { watch }).status).toBe('up');
    jest.advanceTimersByTime(5_000);
    expect(healthOf(outage(Date.now() + 3_600_000), { watch }).status).toBe('down');
    watch.end();
  });

  it('is down when the connection is open and the newest frame is too old', () => {
    const stale: Freshness = { state: 'stale', since: at + 1_500, newestAt: at + 500, maxAgeMs: 1_000 };
    const never = { freshness: { ...stale, newestAt: undefined } };
    expect(healthOf(live, { freshness: stale })).toEqual({
      ...{ status: 'down', state: 'live', since, connection: 3, newestFrameAt: '2026-01-02T03:04:05.500Z' },
      reason: 'The connection is open, but the newest frame is older than expected.',
    });
    expect(healthOf(live, never)).not.toHaveProperty('newestFrameAt');
    expect(healthOf(live, never).status).toBe('down');
    // The first frame after an outage doesn't arrive at once.
    const fresh = { freshness: { state: 'fresh', since: at } };
    const ups = [healthOf(live, fresh), healthOf({ ...live, since: Date.now() }, never), healthOf(idle, never)];
    expect(ups.map(({ status }) => status)).toEqual(['up', 'up', 'up']);
  });
});

it('answers 200 or 503 with @nestjs/terminus, for the feed of the module and for another feed', async () => {
  @Controller('health')
  class HealthController {
    @Inject(HealthCheckService) readonly service!: HealthCheckService;
    @Inject(TradeFeedHealthIndicator) readonly tradeFeed!: TradeFeedHealthIndicator;
    @InjectTradeFeed('raw') readonly raw!: TradeFeed;
    @Get()
    @HealthCheck()
    check() {
      return this.service.check([
        () => this.tradeFeed.isHealthy(),
        () => this.tradeFeed.isHealthy('raw', { feed: this.raw }),
      ]);
    }
  }
  // The module without a name provides the indicator, although it isn't the first one.
  const feeds = [TradeFeedTestingModule.forRoot({ name: 'raw', feed: 'raw' }), TradeFeedTestingModule.forRoot()];
  const { app, url } = await startApp({ imports: [TerminusModule, ...feeds], controllers: [HealthController] });
  const health = async () => {
    const response = await fetch(`${url}/health`);
    return { code: response.status, ...((await response.json()) as object) };
  };
  const up = { status: 'up', state: 'idle' };
  expect(await health()).toMatchObject({ code: 200, status: 'ok', details: { 'trade-feed': up, raw: up } });
  await isLive(app.get<TradeFeed>(getTradeFeedToken('raw')));
  const raw = { status: 'up', state: 'live', connection: 1 };
  expect(await health()).toMatchObject({ code: 200, details: { raw } });
  app.get(TradeFeedTesting).account.revokeAccess();
  await stopped(app.get(TradeFeed));
  const down = { status: 'down', state: 'stopped', code: 'not-entitled' };
  expect(await health()).toMatchObject({ code: 503, status: 'error', error: { 'trade-feed': down }, info: { raw } });
  await app.close();
});
