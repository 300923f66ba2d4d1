import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs';
import {
  TradeFeed,
  TradeFeedHealthIndicator,
  TradeFeedModule,
  type TradeFeedModuleOptions,
} from '../../src/nestjs/index.js';
import type { ServiceEvent } from '../../src/testing/index.js';
import { waitFor } from '../support/wait-for.js';
import { type App, seen, startApp, startService, when } from './support.js';

let local: Awaited<ReturnType<typeof startService>>;
let events: ServiceEvent[];
const apps: App[] = [];

beforeEach(async () => {
  local = await startService();
  events = [];
  local.service.events$.subscribe((event) => events.push(event));
});

afterEach(async () => {
  await Promise.all(apps.splice(0).map(({ app }) => app.close()));
  await local.service.shutdown();
});

const start = async (options: TradeFeedModuleOptions = {}) => {
  const started = await startApp({ imports: [TradeFeedModule.forRoot({ ...local.options, ...options })] });
  apps.push(started);
  return { ...started, feed: started.app.get(TradeFeed) };
};

const isLive = ({ state }: { readonly state: string }) => state === 'live';
const handshakes = () => events.filter(({ type }) => type === 'handshake-accepted').length;

describe('the connection', () => {
  it('is shared by all subscribers of all Observables', async () => {
    const { feed } = await start({ stats: { everyMs: 5 } });
    const lifecycle = lastValueFrom(feed.events$.pipe(take(3), toArray()));
    const frames = [feed.frames$, feed.frames$].map((frames$) => firstValueFrom(frames$));
    const stats = when(feed.stats$, ({ totalFrames }) => totalFrames > 0);
    await when(feed.status$, isLive);
    local.service.push('market', 'hello');
    expect((await Promise.all(frames)).map((frame) => frame.text())).toEqual(['hello', 'hello']);
    expect((await stats).totalFrames).toBe(1);
    expect((await lifecycle).map(({ type }) => type)).toEqual(['ticket-requested', 'ticket-issued', 'opened']);
    expect(events.map(({ type }) => type)).toEqual(['ticket-issued', 'handshake-accepted']);
  });

  it('is not opened without a subscriber', async () => {
    const { feed, app } = await start();
    expect(feed.status.state).toBe('idle');
    await app.close();
    expect(events).toEqual([]);
  });

  it('is opened at bootstrap with that option, and stays open without a subscriber', async () => {
    const { feed } = await start({ connect: 'bootstrap', share: { lingerMs: 0 } });
    await when(feed.status$, isLive);
    expect(feed.status).toMatchObject({ state: 'live', connection: 1 });
    expect(handshakes()).toBe(1);
  });

  it('is closed after the last subscriber has left, and opened again by the next one', async () => {
    const { feed, log } = await start({ share: { lingerMs: 0 } });
    const closed = seen(local.service, 'connection-closed');
    await when(feed.status$, isLive);
    expect(await closed).toMatchObject({ by: 'client', code: 1000 });
    expect(feed.status.state).toBe('idle');
    expect(log.ofFeeds).toEqual(['log Connected to market (connection 1)', 'log Closed: there is no subscriber']);
    await when(feed.status$, isLive);
    expect(handshakes()).toBe(2);
  });
});

describe('status$', () => {
  it('emits the current status to a late subscriber at once', async () => {
    const { feed } = await start();
    feed.frames$.subscribe();
    await when(feed.status$, isLive);
    expect(await firstValueFrom(feed.status$)).toMatchObject({ state: 'live', connection: 1 });
    const [first] = await lastValueFrom(feed.status$.pipe(take(1), toArray()));
    expect(first).toBe(feed.status);
    expect(handshakes()).toBe(1);
  });

  it('emits connecting first, and reports an outage', async () => {
    const { feed } = await start();
    const statuses = lastValueFrom(feed.status$.pipe(take(4), toArray()));
    await when(feed.status$, isLive);
    local.account.expireAccess();
    expect((await statuses).map(({ state }) => state)).toEqual(['connecting', 'live', 'reconnecting', 'reconnecting']);
    await when(feed.status$, isLive);
  });

  it('opens no connection after a stop, and emits the stop instead of an error', async () => {
    const { feed } = await start();
    local.account.revokeAccess();
    const stopped = await when(feed.status$, ({ state }) => state === 'stopped');
    expect(stopped).toMatchObject({ state: 'stopped', failure: { code: 'not-entitled' } });
    expect(await firstValueFrom(feed.status$)).toBe(stopped);
    await expect(firstValueFrom(feed.stats$)).rejects.toMatchObject({ code: 'not-entitled' });
    expect(events.map(({ type }) => type)).toEqual(['ticket-refused']);
  });
});

describe('the option freshness', () => {
  it('makes the feed log silence and its end, and report it as unhealthy', async () => {
    const { feed, log, app } = await start({ freshness: { maxAgeMs: 100 }, connect: 'bootstrap' });
    const health = () => app.get(TradeFeedHealthIndicator).isHealthy('feed').feed;
    await when(feed.status$, isLive);
    await log.line(/^No frame has arrived yet: older than 100 ms$/);
    await waitFor(() => health().status === 'down');
    expect(health()).toMatchObject({ state: 'live', connection: 1 });
    // On a slow machine a frame can be too old when it arrives.
    await waitFor(() => {
      local.service.push('market', 'hello');
      return log.ofFeeds.includes('log Frames arrive again');
    });
    await log.line(/^The newest frame is from 20\S+Z: older than 100 ms$/);
    expect(feed.freshness).toMatchObject({ maxAgeMs: 100 });
    await app.close();
    expect(feed.freshness).toBe(undefined);
  });

  it('forwards all events and the failure unchanged', async () => {
    const { feed } = await start({ freshness: { factor: 20 } });
    const events$ = lastValueFrom(feed.events$.pipe(take(4), toArray()));
    await when(feed.status$, isLive);
    local.service.push('market', 'hello');
    expect((await events$).map(({ type }) => type)).toEqual(['ticket-requested', 'ticket-issued', 'opened', 'frame']);
    local.account.revokeAccess();
    await expect(lastValueFrom(feed.events$)).rejects.toMatchObject({ code: 'not-entitled' });
    expect(feed.freshness).toBe(undefined);
  });
});

describe('stats$', () => {
  it('counts since its first subscriber, and emits the newest figures to a later one', async () => {
    const { feed } = await start({ stats: { everyMs: 5 } });
    const counting = feed.stats$.subscribe();
    await when(feed.status$, isLive);
    local.service.push('market', 'one');
    const first = await when(feed.stats$, ({ totalFrames }) => totalFrames === 1);
    expect((await firstValueFrom(feed.stats$)).totalFrames).toBe(1);
    expect(first.totalBytes).toBe(3);
    counting.unsubscribe();
  });
});

describe('a stop', () => {
  it('is an error for each subscriber and a line in the log, and does not end the process', async () => {
    const { feed } = await start({ connect: 'bootstrap' });
    await when(feed.status$, isLive);
    const errors = [feed.frames$, feed.events$].map((feed$) => lastValueFrom(feed$));
    const other = await start();
    other.feed.frames$.subscribe();
    for (const error of errors) await expect(error).rejects.toMatchObject({ code: 'connection-replaced' });
    // All applications of a process write to the log of the last one.
    expect((await other.log.line(/^Stopped/)).level).toBe('error');
    expect(feed.status).toMatchObject({ state: 'stopped', failure: { code: 'connection-replaced' } });
  });

  it('by an error of the application is a TradeFeedError with that error as its cause', async () => {
    const cause = new RangeError('of the application');
    const classify = () => {
      throw cause;
    };
    const { feed } = await start({ classify });
    local.account.revokeAccess();
    await expect(firstValueFrom(feed.frames$)).rejects.toBe(cause);
    const failure = expect.objectContaining({
      name: 'TradeFeedError',
      code: 'relay-source-failed',
      verdict: 'stop',
      cause,
    });
    expect(feed.status).toMatchObject({ state: 'stopped', failure });
    await expect(firstValueFrom(feed.stats$)).rejects.toEqual(failure);
  });

  it('is followed by another attempt when the frames are subscribed to again', async () => {
    const { feed } = await start();
    local.account.revokeAccess();
    await expect(firstValueFrom(feed.frames$)).rejects.toMatchObject({ code: 'not-entitled' });
    local.account.restoreAccess();
    const frame = firstValueFrom(feed.frames$);
    await when(feed.status$, isLive);
    local.service.push('market', 'again');
    expect((await frame).text()).toBe('again');
  });
});

describe('a shutdown', () => {
  it('closes the connection with a closing handshake, and completes every stream before close() resolves', async () => {
    const { feed, app, log } = await start();
    const streams = [feed.frames$, feed.events$, feed.stats$, feed.status$];
    const ends = streams.map((stream$) => lastValueFrom(stream$ as typeof feed.events$, { defaultValue: undefined }));
    await when(feed.status$, isLive);
    await app.close();
    expect(events.at(-1)).toMatchObject({ type: 'connection-closed', by: 'client', code: 1000 });
    await Promise.all(ends);
    expect(log.ofFeeds.at(-1)).toBe('log Closed: the application shuts down');
  });

  it('happens after onModuleDestroy of the services of the application', async () => {
    const states: string[] = [];
    @Injectable()
    class Writer implements OnModuleDestroy {
      readonly #feed: TradeFeed;
      constructor(feed: TradeFeed) {
        this.#feed = feed;
      }
      onModuleDestroy(): void {
        states.push(this.#feed.status.state);
      }
    }
    const imports = [TradeFeedModule.forRoot({ ...local.options, connect: 'bootstrap' })];
    const { app } = await startApp({ imports, providers: [Writer] });
    const feed = app.get(TradeFeed);
    await when(feed.status$, isLive);
    await app.close();
    expect([...states, feed.status.state]).toEqual(['live', 'idle']);
  });

  it('ends a running attempt, and the wait before the next one', async () => {
    for (const during of ['ticket-requested', 'ticket-issued', 'reconnecting']) {
      const { feed, app } = await start({ backoff: { initialDelayMs: 60_000, maxDelayMs: 60_000 } });
      local.service.failCredentials(during === 'reconnecting');
      const reached = when(feed.events$, ({ type }) => type === during);
      const end = lastValueFrom(feed.frames$, { defaultValue: 'no frame' });
      await reached;
      await app.close();
      expect(await end).toBe('no frame');
    }
    expect(handshakes()).toBe(0);
  });

  it('makes later subscriptions complete at once without a connection', async () => {
    const { feed, app } = await start();
    await app.close();
    for (const stream$ of [feed.frames$, feed.status$, feed.stats$.pipe(take(1))])
      await lastValueFrom(stream$ as typeof feed.events$, { defaultValue: undefined });
    expect(events).toEqual([]);
  });
});
