import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { expectInvalid, fakeZone, Reader, readFeed, show, startApp, textOf } from './app.js';
import {
  afterEveryRender,
  computed,
  createEnvironmentInjector,
  EnvironmentInjector,
  NgZone,
  PLATFORM_ID,
  signal,
} from '@angular/core';
import { TestBed } from '@angular/core/testing';
import { concat, defer, EMPTY, finalize, NEVER, Observable, of, Subject } from 'rxjs';
import { injectTradeFeed } from '../../src/angular/inject-trade-feed.js';
import { provideTradeFeedFrom } from '../../src/angular/provide-trade-feed.js';
import type { FeedSignalOptions } from '../../src/angular/shared-feed.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { relayError } from '../../src/browser/relay-error.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import * as stream from '../operators/stream.js';

// The relay of the test: the events of the current connection, and the number of connections.
let relay$: Subject<RelayedEvent>;
let connections = 0;
let isOpen = false;
const source$ = defer(() => {
  connections += 1;
  isOpen = true;
  relay$ = new Subject();
  return relay$.pipe(finalize(() => (isOpen = false)));
});
const emit = (...events: readonly RelayedEvent[]) => events.forEach((event) => relay$.next(event));

const opened = (connection = 1) => stream.opened(Date.now(), connection);
const frame = (text: string) => stream.frameOf(text, Date.now());
const stop = relayError({ status: 401 });

const appWith = (options: FeedSignalOptions = {}) => startApp(provideTradeFeedFrom(source$, options));
/** Starts an app with a component that injects the feed, and returns the feed. */
const startFeed = (options?: FeedSignalOptions) => {
  appWith(options);
  return readFeed();
};
const after = (ms: number) => jest.advanceTimersByTimeAsync(ms);
const childOf = (parent: EnvironmentInjector, ...providers: Parameters<typeof createEnvironmentInjector>[0]) =>
  createEnvironmentInjector(providers, parent);
const rootInjector = () => TestBed.inject(EnvironmentInjector);

beforeEach(() => {
  jest.useFakeTimers({ now: 10_000 });
  [connections, isOpen] = [0, false];
});
afterEach(() => {
  TestBed.resetTestingModule();
  jest.useRealTimers();
});

describe('the connection', () => {
  it.each<[FeedSignalOptions, number]>([
    [{}, 1_000],
    [{ lingerMs: 50 }, 50],
    [{ lingerMs: 0 }, 0],
  ])('is opened with the first component, and with %j closed %d ms after the last one', async (options, lingerMs) => {
    appWith(options);
    rootInjector();
    expect(connections).toBe(0);
    const [first, second] = [show(Reader), show(Reader)];
    first.destroy();
    await after(60_000);
    expect([connections, isOpen]).toEqual([1, true]);
    second.destroy();
    if (lingerMs > 0) {
      await after(lingerMs - 1);
      expect(isOpen).toBe(true);
      // A change of route keeps it open.
      const page = show(Reader);
      await after(10_000);
      page.destroy();
      await after(lingerMs);
    }
    expect([connections, isOpen, jest.getTimerCount()]).toEqual([1, false, 0]);
    show(Reader);
    expect([connections, isOpen]).toEqual([2, true]);
    TestBed.resetTestingModule();
    expect([isOpen, jest.getTimerCount()]).toEqual([false, 0]);
  });

  it('exists once for each provider, and is closed with its injector, even if other code uses it', async () => {
    appWith();
    const route = childOf(rootInjector(), provideTradeFeedFrom(NEVER));
    route.runInContext(injectTradeFeed);
    expect(connections).toBe(0);
    route.destroy();
    startApp();
    const other = childOf(rootInjector(), provideTradeFeedFrom(source$));
    const feed = childOf(other).runInContext(injectTradeFeed);
    feed.window();
    emit(opened());
    expect(jest.getTimerCount()).toBeGreaterThan(0);
    other.destroy();
    expect([connections, isOpen]).toEqual([1, false]);
    await after(1_000);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is opened and closed outside the zone of Angular, and sets its timers there', async () => {
    const zone = fakeZone();
    const callsInside: string[] = [];
    const recordInside = (call: string) => zone.isInside() && callsInside.push(call);
    const watched$ = new Observable<RelayedEvent>((subscriber) => {
      recordInside('subscribe');
      subscriber.add(() => recordInside('unsubscribe'));
      subscriber.add(source$.subscribe(subscriber));
    });
    startApp();
    const injector = childOf(rootInjector(), provideTradeFeedFrom(watched$), { provide: NgZone, useValue: zone });
    for (const name of ['setTimeout', 'setInterval'] as const) {
      const original = globalThis[name] as (...args: unknown[]) => never;
      jest.spyOn(globalThis, name).mockImplementation((...args: unknown[]) => {
        recordInside(name);
        return original(...args);
      });
    }
    const component = childOf(injector);
    zone.run(() => {
      const feed = component.runInContext(injectTradeFeed);
      feed.window();
      zone.runOutsideAngular(() => relay$.error(stop));
      feed.restart();
      component.destroy();
    });
    expect(callsInside).toEqual([]);
    // The timers are those of the figures and of `lingerMs`.
    expect(jest.getTimerCount()).toBe(2);
    await after(1_000);
    expect([connections, isOpen, jest.getTimerCount()]).toEqual([2, false, 0]);
    jest.restoreAllMocks();
  });
});

describe('the signals', () => {
  it('start with connecting, show the status during an outage, to a late component too, and reset when closed', () => {
    appWith({ lingerMs: 0 });
    const page = show(Reader);
    const { feed } = page.componentInstance;
    const initial = [{ state: 'connecting', since: 10_000 }, undefined, undefined, undefined, undefined];
    const all = () => [feed.status(), feed.stats(), feed.window(), feed.freshness(), feed.failure()];
    expect(all()).toEqual(initial);
    emit(opened());
    expect(feed.status()).toEqual({ state: 'live', since: 10_000, connection: 1 });
    const lost = stream.disconnected(10_000);
    emit(lost, stream.reconnecting(10_000, 500));
    const down = { state: 'reconnecting', nextAttemptAt: 10_500, attempt: 1, failure: lost.failure };
    expect(feed.status()).toMatchObject(down);
    const late = show(Reader);
    expect(late.componentInstance.feed.status()).toBe(feed.status());
    emit(opened(2));
    expect(feed.status().state).toBe('live');
    for (const each of [page, late]) each.destroy();
    show(Reader);
    expect(all()).toEqual(initial);
  });

  it('show that the newest frame is too old, until the next one, and never without the option', async () => {
    const unchecked = startFeed();
    emit(opened());
    await after(3_600_000);
    expect(unchecked.freshness()).toBeUndefined();
    const feed = startFeed({ freshness: { maxAgeMs: 200 } });
    emit(opened(), frame('a'));
    const newestAt = Date.now();
    await after(209);
    expect(feed.freshness()).toBeUndefined();
    await after(1);
    expect(feed.freshness()).toEqual({ state: 'stale', since: newestAt + 200, newestAt, maxAgeMs: 200 });
    expect(readFeed().freshness()).toBe(feed.freshness());
    emit(frame('b'));
    expect(feed.freshness()).toEqual({ state: 'fresh', since: Date.now() });
    TestBed.resetTestingModule();
    expect([feed.freshness(), jest.getTimerCount()]).toEqual([undefined, 0]);
  });

  it('are complete only once the connection is, also for a component that uses them later', async () => {
    const feed = startFeed({ window: { lengthMs: 100 } });
    emit({ ...opened(), completeFrom: 10_400 }, frame('old'));
    await after(100);
    const types: string[] = [];
    feed.events$.subscribe(({ type }) => types.push(type));
    feed.window();
    emit(frame('older'));
    expect(types).toEqual(['opened', 'frame']);
    for (const complete of [false, false, false, true]) {
      await after(100);
      expect(feed.window()).toMatchObject({ complete });
    }
  });

  it('ignore the values of a relay with `select`: windows and `frames$` contain frames only', async () => {
    const feed = startFeed();
    feed.window();
    const texts: string[] = [];
    feed.frames$.subscribe((each) => texts.push(each.text()));
    const value = { type: 'value', at: 10_000, value: { n: 1 } } as unknown as RelayedEvent;
    emit(opened(), value, frame('a'), value);
    await after(1_000);
    expect([texts, feed.status().state, feed.failure()]).toEqual([['a'], 'live', undefined]);
    expect(feed.window()).toMatchObject({ count: 1, complete: true });
    expect(feed.stats()).toMatchObject({ totalFrames: 3 });
  });

  it('compute windows only while a component uses them, and remove the window after that', async () => {
    const now = jest.fn(() => Date.now());
    const schedule = jest.fn(() => EMPTY.subscribe());
    const { status } = startFeed({ window: { scheduler: { now, schedule } } });
    emit(opened(), frame('a'));
    await after(5_000);
    expect([status().state, now.mock.calls, schedule.mock.calls]).toEqual(['live', [], []]);
    const { stats } = startFeed({ window: { lengthMs: 100 } });
    const users = [show(Reader), show(Reader)].map((page) => ({ page, window: page.componentInstance.feed.window }));
    emit(opened());
    await after(100);
    expect(users.map(({ window }) => window()?.complete)).toEqual([true, true]);
    users[0]?.page.destroy();
    await after(100);
    expect(users[1]?.window()).toMatchObject({ complete: true });
    users[1]?.page.destroy();
    expect(users[1]?.window()).toBeUndefined();
    await after(1_000);
    expect([users[1]?.window(), stats()?.totalFrames]).toEqual([undefined, 0]);
  });
});

describe('a stop', () => {
  const cause = new Error('mine');
  const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, endedAt: 1_000 });
  const endAfterEvent = () => {
    emit(stream.stopped(1));
    relay$.error(cause);
  };
  const foreign = { name: 'TradeFeedError', code: 'relay-source-failed', verdict: 'stop' };
  it.each<[string, () => void, object]>([
    ['an error', () => relay$.error(stop), stop],
    ['an error of the past', () => relay$.error(replaced), replaced],
    ['an error that has its event', endAfterEvent, { closeCode: 4001 }],
    ['a foreign error', () => relay$.error(cause), { ...foreign, cause }],
    [
      'a completion',
      () => relay$.complete(),
      { ...foreign, message: expect.stringContaining('The feed is over: its source completed. Restart the feed') },
    ],
  ])('by %s is one event and no error; `restart` begins again for the same subscriptions', (_, end, expected) => {
    const feed = startFeed();
    const received: RelayedEvent[] = [];
    const [error, complete] = [jest.fn(), jest.fn()];
    feed.events$.subscribe({ next: (event) => received.push(event), error, complete });
    feed.restart();
    expect([connections, isOpen]).toEqual([1, true]);
    emit(opened(), frame('a'));
    end();
    const failure = feed.failure();
    expect(failure).toMatchObject(expected);
    expect(feed.status()).toEqual({ state: 'stopped', since: failure?.endedAt, failure });
    expect(received.slice(2)).toMatchObject([{ type: 'stopped', failure }]);
    expect(readFeed().failure()).toBe(failure);
    expect([connections, isOpen]).toEqual([1, false]);
    feed.restart();
    expect([feed.status().state, feed.failure()]).toEqual(['connecting', undefined]);
    emit(opened(), frame('b'));
    expect([feed.status().state, connections, received.length]).toEqual(['live', 2, 5]);
    expect([error.mock.calls, complete.mock.calls]).toEqual([[], []]);
  });

  it('can be answered with a restart by the first subscriber; all subscribers receive the stop before that', () => {
    const feed = startFeed();
    const received: string[] = [];
    feed.events$.subscribe(({ type }) => {
      if (type !== 'stopped') return;
      feed.restart();
      feed.restart();
    });
    feed.events$.subscribe(({ type }) => received.push(`${type} ${connections}`));
    relay$.error(stop);
    expect([feed.status().state, feed.failure(), connections, isOpen]).toEqual(['connecting', undefined, 2, true]);
    emit(opened(2));
    expect(received).toEqual(['stopped 1', 'opened 2']);
    relay$.error(stop);
    expect(connections).toBe(3);
  });
});

describe('change detection', () => {
  it('runs once for a change of status and once per period, with any number of frames', async () => {
    class Dashboard {
      readonly feed = injectTradeFeed();
      readonly last = signal('');
      renders = 0;
      constructor() {
        this.feed.frames$.subscribe();
        afterEveryRender(() => (this.renders += 1));
      }
    }
    appWith();
    const template = `{{ feed.status().state }}, {{ feed.stats()?.totalFrames }} in all, {{ feed.window()?.count }} in a window`;
    const page = show(Dashboard, template);
    await after(50);
    const { componentInstance } = page;
    expect(textOf(page)).toBe('connecting,  in all,  in a window');
    const atFirst = componentInstance.renders;
    emit(opened());
    await after(50);
    expect([textOf(page), componentInstance.renders - atFirst]).toEqual(['live,  in all,  in a window', 1]);
    for (let turn = 0; turn < 100; turn += 1) {
      for (let n = 0; n < 10; n += 1) emit(frame(`${n}`));
      await after(8);
    }
    expect(componentInstance.renders - atFirst).toBe(1);
    await after(200);
    expect(textOf(page)).toBe('live, 1000 in all, 1000 in a window');
    // One run for the figures and one for the window, which change at different times.
    expect(componentInstance.renders - atFirst).toBeLessThanOrEqual(3);
  });
});

describe('on a server', () => {
  it('no connection is opened, the signals keep their initial values, and rendering is not delayed', async () => {
    startApp(provideTradeFeedFrom(source$), { provide: PLATFORM_ID, useValue: 'server' });
    const page = show(Reader, '{{ feed.status().state }}{{ feed.stats() }}{{ feed.window() }}');
    const { feed } = page.componentInstance;
    const [next, complete] = [jest.fn(), jest.fn()];
    feed.frames$.subscribe({ next, complete });
    feed.restart();
    const stable = page.whenStable();
    await after(20);
    await stable;
    expect(textOf(page)).toBe('connecting');
    expect([connections, jest.getTimerCount()]).toEqual([0, 0]);
    page.destroy();
    expect([next.mock.calls.length, complete.mock.calls.length]).toEqual([0, 1]);
  });
});

describe('injectTradeFeed', () => {
  it('throws an error that names the missing provider, and outside an injection context that of Angular', () => {
    startApp();
    const inject = () => TestBed.runInInjectionContext(injectTradeFeed);
    expect(inject).toThrow(/^injectTradeFeed\(\) .* Add provideTradeFeed\(/);
    expect(() => injectTradeFeed()).toThrow(/NG0203.*injectTradeFeed\(\)/s);
  });

  it('can be called, and its window read, inside of `computed`', () => {
    startApp(provideTradeFeedFrom(concat(of(opened()), NEVER)));
    const feed = computed(() => TestBed.runInInjectionContext(injectTradeFeed));
    expect(computed(() => feed().window())()).toBeUndefined();
    expect(feed().status().state).toBe('live');
  });
});

it.each<[unknown, unknown, RegExp]>([
  [undefined, {}, /`events\$` must be an Observable/],
  [NEVER, { lingerMs: -1 }, /`lingerMs` must be a number of ms, 0 or more, got -1/],
  [NEVER, { stats: { everyMs: 0 } }, /`stats\.everyMs` must be a number of ms above 0, got 0/],
  [NEVER, { freshness: {} }, /`freshness\.maxAgeMs` must be set, or `freshness\.factor`/],
  [NEVER, { window: { lengthMs: 0.5 } }, /`window\.lengthMs` must be a whole number of ms/],
])('provideTradeFeedFrom refuses %p with %p', (events$, options, message) =>
  expectInvalid(() => provideTradeFeedFrom(events$ as never, options as FeedSignalOptions), message),
);
