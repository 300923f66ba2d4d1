/** @lane clock */
import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { metrics, trace } from '@opentelemetry/api';
import { firstValueFrom, lastValueFrom, map, Subject, take, toArray } from 'rxjs';
import { memoryEngine } from '../../src/cluster/index.js';
import { TradeFeed, TradeFeedHealthIndicator, type TradeFeedModuleOptions } from '../../src/nestjs/index.js';
import { FeedMemory, telemetry } from '../../src/nestjs/observers.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { relayHandler } from '../../src/relay/index.js';
import { disconnected, frameOf, joined, opened, watermark } from '../operators/stream.js';
import { startSdk } from '../otel/sdk.js';
import { Web } from '../relay/support.js';
import { plantedKey } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, issue, refuse, refuseHandshake, startWire, text } from '../support/wire.js';
import type { Wire, WireScript } from '../support/wire.js';
import { fast, live, LocalService, serviceEvent, stopped, when } from './support.js';

const local = new LocalService();
const typesOf = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type);
const endOf = (feed$: TradeFeed['events$' | 'frames$' | 'stats$' | 'status$']) =>
  lastValueFrom(feed$ as TradeFeed['events$'], { defaultValue: undefined });

describe('the connection', () => {
  it('is shared by all subscribers of all Observables, and emits all events unchanged', async () => {
    const { feed } = await local.start({ stats: { everyMs: 5 }, freshness: { factor: 20 } });
    const events = lastValueFrom(feed.events$.pipe(take(4), toArray()));
    const frames = [feed.frames$, feed.frames$].map((frames$) => firstValueFrom(frames$));
    const counting = feed.stats$.subscribe();
    await live(feed);
    local.push('hello');
    expect((await Promise.all(frames)).map((frame) => frame.text())).toEqual(['hello', 'hello']);
    const stats = await when(feed.stats$, ({ totalFrames }) => totalFrames > 0);
    expect(stats).toMatchObject({ totalFrames: 1, totalBytes: 5 });
    // Later subscribers get the latest figures at once.
    expect((await firstValueFrom(feed.stats$)).totalFrames).toBe(1);
    expect(typesOf(await events)).toEqual(['ticket-requested', 'ticket-issued', 'opened', 'frame']);
    expect(typesOf(local.events)).toEqual(['ticket-issued', 'handshake-accepted']);
    counting.unsubscribe();
  });

  it('opens with the first subscriber, closes after the last one, and opens again for the next one', async () => {
    const { feed, log } = await local.start({ share: { lingerMs: 0 } });
    expect([feed.status.state, local.events]).toEqual(['idle', []]);
    const closed = serviceEvent(local.service, 'connection-closed');
    await live(feed);
    expect(await closed).toMatchObject({ by: 'client', code: 1000 });
    expect(feed.status.state).toBe('idle');
    expect(log.ofFeeds).toEqual(['log Connected to market (connection 1)', 'log Closed: there is no subscriber']);
    await live(feed);
    expect(local.handshakes).toBe(2);
  });

  it('opens at once with `bootstrap`, and then stays open', async () => {
    const { feed } = await local.start({ connect: 'bootstrap', share: { lingerMs: 0 } });
    await live(feed);
    expect([feed.status, local.handshakes]).toMatchObject([{ state: 'live', connection: 1 }, 1]);
  });
});

describe('status$', () => {
  it('emits connecting first, then an outage, and the current status to late subscribers at once', async () => {
    const { feed } = await local.start();
    const statuses = lastValueFrom(feed.status$.pipe(take(4), toArray()));
    await live(feed);
    expect(await firstValueFrom(feed.status$)).toBe(feed.status);
    expect(feed.status).toMatchObject({ state: 'live', connection: 1 });
    expect(local.handshakes).toBe(1);
    local.account.expireAccess();
    expect((await statuses).map(({ state }) => state)).toEqual(['connecting', 'live', 'reconnecting', 'reconnecting']);
    await live(feed);
  });

  it('opens no connection after the feed has stopped, and emits `stopped` instead of an error', async () => {
    const { feed } = await local.start();
    local.account.revokeAccess();
    const status = await stopped(feed);
    expect(status).toMatchObject({ state: 'stopped', failure: { code: 'not-entitled' } });
    expect(await firstValueFrom(feed.status$)).toBe(status);
    await expect(firstValueFrom(feed.stats$)).rejects.toMatchObject({ code: 'not-entitled' });
    expect(typesOf(local.events)).toEqual(['ticket-refused']);
  });
});

it('the option freshness makes the feed log when it goes silent and recovers, and be unhealthy in between', async () => {
  const { feed, log, app } = await local.start({ freshness: { maxAgeMs: 100 }, connect: 'bootstrap' });
  const health = () => app.get(TradeFeedHealthIndicator).isHealthy('feed').feed;
  await live(feed);
  await log.line(/^No frame has arrived yet: older than 100 ms$/);
  await waitFor(() => health().status === 'down');
  expect(health()).toMatchObject({ state: 'live', connection: 1 });
  // On a slow machine, a frame can already be too old when it arrives.
  await waitFor(() => {
    local.push('hello');
    return log.ofFeeds.includes('log Frames arrive again');
  });
  await log.line(/^The newest frame is from 20\S+Z: older than 100 ms$/);
  expect(feed.freshness).toMatchObject({ maxAgeMs: 100 });
  await app.close();
  expect(feed.freshness).toBe(undefined);
});

describe('a stop', () => {
  it('reaches each subscriber as an error and the log as a line, without ending the process', async () => {
    const { feed } = await local.start({ connect: 'bootstrap', freshness: { factor: 20 } });
    await live(feed);
    const errors = [feed.frames$, feed.events$].map((feed$) => lastValueFrom(feed$));
    const other = await local.start();
    other.feed.frames$.subscribe();
    for (const error of errors) await expect(error).rejects.toMatchObject({ code: 'connection-replaced' });
    // All applications of a process log through the last one.
    expect((await other.log.line(/^Stopped/)).level).toBe('error');
    expect(feed.status).toMatchObject({ state: 'stopped', failure: { code: 'connection-replaced' } });
    expect(feed.freshness).toBe(undefined);
  });

  it('wraps an error of the application in a TradeFeedError, as its cause', async () => {
    const cause = new RangeError('of the application');
    const classify = () => {
      throw cause;
    };
    const { feed } = await local.start({ classify });
    local.account.revokeAccess();
    await expect(firstValueFrom(feed.frames$)).rejects.toBe(cause);
    const facts = { name: 'TradeFeedError', code: 'relay-source-failed', verdict: 'stop', cause };
    const failure = expect.objectContaining(facts);
    expect(feed.status).toMatchObject({ state: 'stopped', failure });
    await expect(firstValueFrom(feed.stats$)).rejects.toEqual(failure);
  });

  it('ends with another attempt when somebody subscribes to the frames again', async () => {
    const { feed } = await local.start();
    local.account.revokeAccess();
    await expect(firstValueFrom(feed.frames$)).rejects.toMatchObject({ code: 'not-entitled' });
    local.account.restoreAccess();
    expect(await local.receive(feed)).toBe('hello');
  });
});

describe('the log', () => {
  let wire: Wire;
  afterEach(async () => wire[Symbol.asyncDispose]());

  /** Starts an application whose feed runs a script of the wire at bootstrap. */
  const run = async (script: WireScript, options: TradeFeedModuleOptions = {}) => {
    wire = await startWire(script);
    const ofWire = { baseUrl: wire.baseUrl, apiKey: plantedKey, backoff: { ...fast, jitter: 'none' } } as const;
    return local.start({ ...ofWire, connect: 'bootstrap', ...options });
  };

  it('reports a whole outage: the end, the attempts, the opening, the gap', async () => {
    const { log } = await run({
      ticket: [issue(), refuse(503), issue()],
      handshake: [accept(text('one'), close(1001, 'server shutdown')), refuseHandshake(503), accept()],
    });
    await log.line(/^Frames may be missing/);
    const begins = [
      ...['log Connected to market (connection 1)', 'warn Disconnected, server-shutdown: ', 'warn Reconnect 1 in 1 ms'],
      ...['warn Disconnected, credential-service-unavailable: ', 'warn Reconnect 2 in 2 ms'],
      ...['warn Disconnected, capacity-full: ', 'warn Reconnect 3 in 4 ms'],
      ...['log Connected to market (connection 2)', 'warn Frames may be missing: '],
    ];
    expect(log.ofFeeds.map((line, n) => line.slice(0, begins[n]?.length))).toEqual(begins);
    expect(log.raw).not.toMatch(new RegExp(`${plantedKey}|planted-ticket`));
  });

  it('reports where the application threw an exception', async () => {
    const classify = () => {
      throw new RangeError('of the application');
    };
    const { log } = await run({ handshake: [accept(close(1001))] }, { classify });
    await log.line(/^Stopped, relay-source-failed: .* Cause: RangeError: of the application$/);
    await log.line(/^An exception stopped the feed: RangeError: of the application$/);
    expect(log.raw).toContain('trade-feed.test');
  });

  it('reports where an operator of `select` threw, but not that the feed has stopped', async () => {
    const { log, feed } = await run({ handshake: [accept(text('one'))] });
    await log.line(/^Connected/);
    const select = map((): unknown => {
      throw new RangeError('of the operator');
    });
    const messages = await lastValueFrom(feed.relay.messages$({ select }).pipe(toArray()));
    expect(messages.at(-1)?.type).toBe('connect-again');
    const stop = 'A topic of `select` stopped: RangeError: of the operator';
    expect(log.ofFeeds.filter((line) => line.includes('stopped'))).toEqual([`error ${stop}`]);
    expect(log.raw).toContain('trade-feed.test');
    expect(feed.status.state).not.toBe('stopped');
  });
});

describe('a shutdown', () => {
  it('closes the connection with a closing handshake, and completes every stream before close() resolves', async () => {
    const states: string[] = [];
    @Injectable()
    class Writer implements OnModuleDestroy {
      @Inject(TradeFeed) readonly feed!: TradeFeed;
      onModuleDestroy(): void {
        states.push(this.feed.status.state);
      }
    }
    const { feed, app, log } = await local.start({}, { providers: [Writer] });
    const ends = [feed.frames$, feed.events$, feed.stats$, feed.status$].map(endOf);
    await live(feed);
    await app.close();
    expect(local.events.at(-1)).toMatchObject({ type: 'connection-closed', by: 'client', code: 1000 });
    await Promise.all(ends);
    expect(log.ofFeeds.at(-1)).toBe('log Closed: the application shuts down');
    // It closes after `onModuleDestroy` of the services of the application.
    expect([...states, feed.status.state]).toEqual(['live', 'idle']);
    const before = local.events.length;
    await Promise.all([feed.frames$, feed.status$, feed.stats$].map(endOf));
    expect(local.events).toHaveLength(before);
  });

  it.each(['ticket-requested', 'ticket-issued', 'reconnecting'])('ends an attempt after %s', async (during) => {
    const { feed, app } = await local.start({ backoff: { initialDelayMs: 60_000, maxDelayMs: 60_000 } });
    local.service.failCredentials(during === 'reconnecting');
    const reached = when(feed.events$, ({ type }) => type === during);
    const end = lastValueFrom(feed.frames$, { defaultValue: 'no frame' });
    await reached;
    await app.close();
    expect(await end).toBe('no frame');
    expect(local.handshakes).toBe(0);
  });
});

describe('the option telemetry', () => {
  let sdk: ReturnType<typeof startSdk>;
  beforeEach(() => {
    sdk = startSdk();
    metrics.setGlobalMeterProvider(sdk.providers.meters);
    trace.setGlobalTracerProvider(sdk.providers.tracers);
  });
  afterEach(async () => {
    metrics.disable();
    trace.disable();
    await sdk[Symbol.asyncDispose]();
  });
  const seriesOf = async (name: string) => (await sdk.collect())[name]?.series ?? [];
  const messages = 'messaging.client.consumed.messages';

  it('measures the feed once for all subscribers with the global meter and tracer, and is off by default', async () => {
    const unmeasured = await local.start({ apiKey: local.otherKey() });
    await local.receive(unmeasured.feed);
    expect([await sdk.collect(), sdk.spans()]).toEqual([{}, []]);
    const { feed } = await local.start({ telemetry: true });
    feed.events$.subscribe();
    await local.receive(feed);
    const [series] = await seriesOf(messages);
    expect(series?.value).toBe(1);
    expect(series?.attributes).not.toHaveProperty('trade_feed.name');
    expect(sdk.spans().map(({ name }) => name)).toEqual(['trade_feed.attempt']);
  });

  it('exports all counters and states of the named feed as 0 from the start, before anything subscribes', async () => {
    await local.start({ telemetry: true, name: 'second' });
    const collected = await sdk.collect();
    for (const { series } of Object.values(collected))
      for (const { value, attributes } of series) {
        expect(value).toBe(0);
        expect(attributes).toMatchObject({ 'messaging.destination.name': 'market', 'trade_feed.name': 'second' });
      }
    expect(Object.keys(collected).sort()).toEqual([
      ...['messaging.client.consumed.messages', 'trade_feed.connection.state', 'trade_feed.frames.dropped'],
      ...['trade_feed.frames.missed', 'trade_feed.io', 'trade_feed.outage.age', 'trade_feed.reconnects'],
      ...['trade_feed.relay.refused', 'trade_feed.relay.replays.failed'],
    ]);
    expect(collected['trade_feed.connection.state']?.series).toHaveLength(4);
  });

  it('reports a relay that cannot admit clients until one joins', async () => {
    const { relay } = (await local.start({ telemetry: true })).feed;
    const refused = async () => (await seriesOf('trade_feed.relay.refused')).map(({ value }) => value);
    let isDown = true;
    const authorize = () => {
      if (isDown) throw new Error('private');
      return true;
    };
    await using web = await Web.start(relayHandler(relay, { authorize }));
    expect(await refused()).toEqual([0, 0]);
    expect((await fetch(web.url)).status).toBe(500);
    expect(await refused()).toEqual([1, 0]);
    isDown = false;
    const ended = new AbortController();
    expect((await fetch(web.url, ended)).status).toBe(200);
    expect(await refused()).toEqual([0, 0]);
    expect(relay.status()).not.toHaveProperty('refused');
    ended.abort();
  });

  // test/otel/feed-metrics.test.ts has the changes of the owner.
  it('reports whether this replica of a cluster owns the connection', async () => {
    const { feed } = await local.start({ telemetry: true, cluster: { engine: memoryEngine(), account: 'main' } });
    const owner = async () => (await seriesOf('trade_feed.cluster.owner'))[0]?.value;
    expect(await owner()).toBe(0);
    await local.receive(feed);
    expect(await owner()).toBe(1);
  });

  it('is refused without the package of OpenTelemetry', () => {
    const load = () => {
      throw new Error('Cannot find module');
    };
    const message = '`telemetry` must be false, unless the package @opentelemetry/api is installed';
    const error = expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) });
    expect(() => telemetry({ feed: 'market', name: undefined }, load)).toThrow(error);
  });
});

const end = disconnected(8);
it.each<[string, readonly FeedEvent[], readonly FeedEvent[]]>([
  ['open: with the current time', [opened(5, 2), frameOf('a', 6)], [joined(20, 2)]],
  [
    'open in a worker: with the time of the watermark, because older frames follow it',
    [opened(5), watermark(7), frameOf('a', 8), watermark(9)],
    [joined(9), watermark(9)],
  ],
  [
    'open in a worker with a later frame: with its time, because the new subscriber lacks it',
    [opened(5), watermark(7), frameOf('a', 8)],
    [joined(8), watermark(7)],
  ],
  ['in an outage: its events unchanged', [opened(5), watermark(7), end, watermark(9)], [end, watermark(9)]],
])('a new subscriber of the relay first gets the status of a feed that is %s', (_, events, expected) => {
  const now = jest.spyOn(Date, 'now').mockReturnValue(20);
  const [memory, source] = [new FeedMemory(), new Subject<FeedEvent>()];
  const subscription = source.pipe(memory.track()).subscribe();
  for (const event of events) source.next(event);
  expect(memory.snapshot).toEqual(expected);
  subscription.unsubscribe();
  expect(memory.snapshot).toEqual([]);
  now.mockRestore();
});
