import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { show, startApp, textOf } from './app.js';
import { disconnected, frame, opened, reconnecting } from './events.js';
import {
  afterEveryRender,
  computed,
  createEnvironmentInjector,
  DestroyRef,
  effect,
  EnvironmentInjector,
  inject,
  NgZone,
  PLATFORM_ID,
  signal,
} from '@angular/core';
import { TestBed } from '@angular/core/testing';
import { concat, config, defer, EMPTY, finalize, NEVER, Observable, of, Subject, throwError } from 'rxjs';
import { type AngularTradeFeed, injectTradeFeed } from '../../src/angular/inject-trade-feed.js';
import { provideTradeFeedFrom } from '../../src/angular/provide-trade-feed-from.js';
import type { FeedSignalOptions } from '../../src/angular/signal-options.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import type { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';

class Reader {
  readonly feed: AngularTradeFeed = injectTradeFeed();
}

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

const appWith = (options: FeedSignalOptions = {}) => startApp(provideTradeFeedFrom(source$, options));
const after = (ms: number) => jest.advanceTimersByTimeAsync(ms);
const stop = relayError({ status: 401 });

beforeEach(() => {
  jest.useFakeTimers();
  [connections, isOpen] = [0, false];
});
afterEach(() => {
  TestBed.resetTestingModule();
  jest.useRealTimers();
});

describe('the connection', () => {
  it('is opened with the first component, and shared by all', () => {
    appWith();
    TestBed.inject(EnvironmentInjector);
    expect(connections).toBe(0);
    const [first, second] = [show(Reader), show(Reader)];
    expect(connections).toBe(1);
    const seen: string[] = [];
    first.componentInstance.feed.frames$.subscribe((each) => seen.push(`first ${each.text()}`));
    second.componentInstance.feed.frames$.subscribe((each) => seen.push(`second ${each.text()}`));
    relay$.next(frame('a'));
    expect(seen).toEqual(['first a', 'second a']);
    expect(connections).toBe(1);
  });

  it('is closed `lingerMs` after the last component is destroyed, 1 s by default', async () => {
    for (const [options, lingerMs] of [
      [{}, 1_000],
      [{ lingerMs: 50 }, 50],
    ] as const) {
      appWith(options);
      const readers = [show(Reader), show(Reader)];
      readers[0]?.destroy();
      await after(60_000);
      expect(isOpen).toBe(true);
      readers[1]?.destroy();
      await after(lingerMs - 1);
      expect(isOpen).toBe(true);
      await after(1);
      expect(isOpen).toBe(false);
    }
  });

  it('is closed with the last component with `lingerMs: 0`', () => {
    appWith({ lingerMs: 0 });
    show(Reader).destroy();
    expect([connections, isOpen]).toEqual([1, false]);
  });

  it('stays open during a change of route, and is opened again after a longer time', async () => {
    appWith();
    show(Reader).destroy();
    await after(999);
    const page = show(Reader);
    await after(10_000);
    expect([connections, isOpen]).toEqual([1, true]);
    page.destroy();
    await after(1_000);
    show(Reader);
    expect([connections, isOpen]).toEqual([2, true]);
  });

  it('is closed with the injector at once, and leaves no timer', () => {
    appWith();
    show(Reader);
    TestBed.resetTestingModule();
    expect([connections, isOpen]).toEqual([1, false]);
    appWith();
    show(Reader).destroy();
    TestBed.resetTestingModule();
    expect([connections, isOpen, jest.getTimerCount()]).toEqual([2, false, 0]);
  });

  it('is closed with the injector of its provider, even if other code uses it', async () => {
    startApp();
    const route = createEnvironmentInjector([provideTradeFeedFrom(source$)], TestBed.inject(EnvironmentInjector));
    const feed = createEnvironmentInjector([], route).runInContext(injectTradeFeed);
    feed.window();
    relay$.next(opened());
    expect(jest.getTimerCount()).toBeGreaterThan(0);
    route.destroy();
    expect(isOpen).toBe(false);
    await after(1_000);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('exists once for each provider, so a route can have a separate one', () => {
    appWith();
    const route = createEnvironmentInjector([provideTradeFeedFrom(NEVER)], TestBed.inject(EnvironmentInjector));
    route.runInContext(injectTradeFeed);
    expect(connections).toBe(0);
    TestBed.runInInjectionContext(injectTradeFeed);
    expect(connections).toBe(1);
  });

  it('is opened and closed outside the zone of Angular, and sets its timers there', async () => {
    let depth = 0;
    const callsInside: string[] = [];
    const enter = <T>(work: () => T): T => {
      depth += 1;
      try {
        return work();
      } finally {
        depth -= 1;
      }
    };
    const recordInside = (call: string) => depth > 0 && callsInside.push(call);
    const zone = {
      run: enter,
      runOutsideAngular: <T>(work: () => T): T => {
        const inside = depth;
        depth = 0;
        try {
          return work();
        } finally {
          depth = inside;
        }
      },
    };
    const watched$ = new Observable<RelayedEvent>((subscriber) => {
      recordInside('subscribe');
      const subscription = source$.subscribe(subscriber);
      return () => {
        recordInside('unsubscribe');
        subscription.unsubscribe();
      };
    });
    appWith();
    const injector = createEnvironmentInjector(
      [provideTradeFeedFrom(watched$), { provide: NgZone, useValue: zone }],
      TestBed.inject(EnvironmentInjector),
    );
    for (const name of ['setTimeout', 'setInterval'] as const) {
      const original = globalThis[name] as (...args: unknown[]) => never;
      jest.spyOn(globalThis, name).mockImplementation((...args: unknown[]) => {
        recordInside(name);
        return original(...args);
      });
    }
    const component = createEnvironmentInjector([], injector);
    enter(() => {
      const feed = component.runInContext(injectTradeFeed);
      feed.window();
      zone.runOutsideAngular(() => relay$.error(stop));
      feed.restart();
      component.destroy();
    });
    expect(callsInside).toEqual([]);
    // The timers are the period of the figures, and `lingerMs`.
    expect(jest.getTimerCount()).toBe(2);
    await after(1_000);
    expect([connections, isOpen, jest.getTimerCount()]).toEqual([2, false, 0]);
    jest.restoreAllMocks();
  });
});

describe('frames$ and events$', () => {
  it('complete with their component only', () => {
    appWith();
    const [first, second] = [show(Reader), show(Reader)];
    const seen: string[] = [];
    for (const [name, { componentInstance }] of Object.entries({ first, second })) {
      componentInstance.feed.frames$.subscribe({
        next: (each) => seen.push(`${name} ${each.text()}`),
        complete: () => seen.push(`${name} complete`),
      });
      componentInstance.feed.events$.subscribe({ complete: () => seen.push(`${name} events complete`) });
    }
    relay$.next(opened());
    relay$.next(frame('a'));
    first.destroy();
    relay$.next(frame('b'));
    expect(seen).toEqual(['first a', 'second a', 'first complete', 'first events complete', 'second b']);
  });

  it('of a destroyed component complete at once, and open no connection', async () => {
    appWith();
    const reader = show(Reader);
    const { feed } = reader.componentInstance;
    reader.destroy();
    await after(1_000);
    const complete = jest.fn();
    feed.events$.subscribe({ complete });
    feed.frames$.subscribe({ complete });
    expect(complete).toHaveBeenCalledTimes(2);
    expect(feed.window()).toBeUndefined();
    expect([connections, isOpen]).toEqual([1, false]);
  });

  it('emit all events in order, as the same objects', () => {
    appWith();
    const events: RelayedEvent[] = [];
    show(Reader).componentInstance.feed.events$.subscribe((event) => events.push(event));
    const sent = [opened(), frame('a'), disconnected({ code: 'relay-lost' }), reconnecting(5)];
    for (const event of sent) relay$.next(event);
    expect(events).toHaveLength(sent.length);
    for (const [at, event] of sent.entries()) expect(events[at]).toBe(event);
  });

  it('continue for other consumers when one throws; the exception is unhandled', async () => {
    const onUnhandledError = jest.fn();
    config.onUnhandledError = onUnhandledError;
    try {
      appWith();
      const { feed } = show(Reader).componentInstance;
      const seen: string[] = [];
      feed.frames$.subscribe(() => {
        throw new Error('mine');
      });
      feed.frames$.subscribe((each) => seen.push(each.text()));
      for (const text of ['a', 'b']) relay$.next(frame(text));
      await after(0);
      expect(seen).toEqual(['a', 'b']);
      expect(onUnhandledError.mock.calls[0]).toEqual([new Error('mine')]);
    } finally {
      config.onUnhandledError = null;
    }
  });
});

describe('the signals', () => {
  it('start with connecting, without figures, window and failure', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    expect(feed.status()).toEqual({ state: 'connecting', since: Date.now() });
    expect([feed.stats(), feed.window(), feed.freshness(), feed.failure()]).toEqual(Array(4).fill(undefined));
  });

  it('show the status during an outage, to a late component too', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    relay$.next(opened());
    expect(feed.status()).toEqual({ state: 'live', since: Date.now(), connection: 1 });
    const lost = disconnected({ code: 'relay-lost' });
    relay$.next(lost);
    relay$.next(reconnecting(500));
    const down = { state: 'reconnecting', nextAttemptAt: Date.now() + 500, attempt: 1, failure: lost.failure };
    expect(feed.status()).toMatchObject(down);
    expect(show(Reader).componentInstance.feed.status()).toBe(feed.status());
    relay$.next(opened(2));
    expect(feed.status().state).toBe('live');
  });

  it('show that the newest frame is too old, until the next one, and nothing after the feed is closed', async () => {
    appWith({ freshness: { maxAgeMs: 200 }, lingerMs: 0 });
    const page = show(Reader);
    const { feed } = page.componentInstance;
    relay$.next(opened());
    relay$.next(frame('a'));
    const newestAt = Date.now();
    await after(209);
    expect(feed.freshness()).toBeUndefined();
    await after(1);
    expect(feed.freshness()).toEqual({ state: 'stale', since: newestAt + 200, newestAt, maxAgeMs: 200 });
    expect(show(Reader).componentInstance.feed.freshness()).toBe(feed.freshness());
    relay$.next(frame('b'));
    expect(feed.freshness()).toEqual({ state: 'fresh', since: Date.now() });
    TestBed.resetTestingModule();
    expect(feed.freshness()).toBeUndefined();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('do not check the age of frames without the option', async () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    relay$.next(opened());
    await after(3_600_000);
    expect(feed.freshness()).toBeUndefined();
  });

  it('show the figures at the end of each period', async () => {
    appWith({ stats: { everyMs: 200 } });
    const { feed } = show(Reader).componentInstance;
    relay$.next(opened());
    for (const text of ['a', 'bc']) relay$.next(frame(text));
    await after(199);
    expect(feed.stats()).toBeUndefined();
    await after(1);
    expect(feed.stats()).toMatchObject({ frames: 2, bytes: 3, framesPerSecond: 10, totalFrames: 2 });
    relay$.next(frame('d'));
    await after(200);
    expect(feed.stats()).toMatchObject({ frames: 1, totalFrames: 3 });
  });

  it('show the latest window, of 1 s and at most 1 000 frames by default', async () => {
    jest.setSystemTime(10_000);
    appWith();
    const { feed } = show(Reader).componentInstance;
    feed.window();
    relay$.next(opened());
    for (let n = 0; n < 1_001; n += 1) relay$.next(frame(`${n}`));
    await after(999);
    expect(feed.window()).toBeUndefined();
    await after(1);
    expect(feed.window()).toMatchObject({ start: 10_000, end: 11_000, count: 1_001, dropped: 1, complete: false });
    expect(
      feed
        .window()
        ?.frames.map((each) => each.text())
        .slice(0, 2),
    ).toEqual(['0', '1']);
    await after(1_000);
    expect(feed.window()).toMatchObject({ start: 11_000, count: 0, complete: true });
  });

  it('ignore the values of a relay with `select`: windows and `frames$` contain frames only', async () => {
    jest.setSystemTime(10_000);
    appWith();
    const { feed } = show(Reader).componentInstance;
    feed.window();
    const texts: string[] = [];
    feed.frames$.subscribe((each) => texts.push(each.text()));
    const value = { type: 'value', at: 10_000, value: { n: 1 } } as unknown as RelayedEvent;
    for (const event of [opened(), value, frame('a'), value]) relay$.next(event);
    await after(1_000);
    expect([texts, feed.status().state, feed.failure()]).toEqual([['a'], 'live', undefined]);
    expect(feed.window()).toMatchObject({ count: 1, complete: true });
    expect(feed.stats()).toMatchObject({ totalFrames: 3 });
  });

  it('use the options of the window', async () => {
    jest.setSystemTime(10_000);
    appWith({ window: { lengthMs: 100, maxFrames: 1 } });
    const { feed } = show(Reader).componentInstance;
    feed.window();
    relay$.next(opened());
    for (const text of ['a', 'b']) relay$.next(frame(text));
    await after(100);
    expect(feed.window()).toMatchObject({ start: 10_000, end: 10_100, count: 2, dropped: 1 });
  });

  it('compute windows only while a component uses them', async () => {
    jest.setSystemTime(10_000);
    const now = jest.fn(() => Date.now());
    const schedule = jest.fn(() => EMPTY.subscribe());
    appWith({ window: { scheduler: { now, schedule } } });
    const reader = show(Reader);
    const { status } = reader.componentInstance.feed;
    for (const event of [opened(), frame('a')]) relay$.next(event);
    await after(5_000);
    expect([status().state, now.mock.calls, schedule.mock.calls]).toEqual(['live', [], []]);

    const user = show(Reader);
    user.componentInstance.feed.window();
    for (const text of ['a', 'b']) relay$.next(frame(text));
    expect(now).toHaveBeenCalled();
    user.destroy();
    now.mockClear();
    relay$.next(frame('c'));
    expect(now).not.toHaveBeenCalled();
  });

  it('remove the window when no component uses it', async () => {
    jest.setSystemTime(10_000);
    appWith({ window: { lengthMs: 100 } });
    show(Reader);
    const users = [show(Reader), show(Reader)].map((reader) => [reader, reader.componentInstance.feed.window] as const);
    relay$.next(opened());
    await after(100);
    const [first, second] = users as [(typeof users)[0], (typeof users)[0]];
    expect(first[1]()).toMatchObject({ start: 10_000 });
    first[0].destroy();
    expect(first[1]()).toMatchObject({ start: 10_000 });
    second[0].destroy();
    expect(first[1]()).toBeUndefined();
  });

  it('start again with a new connection', async () => {
    appWith({ stats: { everyMs: 10 }, window: { lengthMs: 10 }, lingerMs: 0 });
    const reader = show(Reader);
    reader.componentInstance.feed.window();
    relay$.next(opened());
    await after(20);
    reader.destroy();
    const { status, stats, window } = show(Reader).componentInstance.feed;
    expect([status(), stats(), window()]).toEqual([{ state: 'connecting', since: Date.now() }, undefined, undefined]);
  });
});

describe('a stop', () => {
  it('is a failure and an event, and not an error of the Observables', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    const received: unknown[] = [];
    feed.events$.subscribe({ next: (event) => received.push(event), error: (error: unknown) => received.push(error) });
    feed.frames$.subscribe();
    relay$.error(stop);
    expect(feed.failure()).toBe(stop);
    expect(received).toEqual([{ type: 'stopped', at: Date.now(), failure: stop }]);
    expect(isOpen).toBe(false);
    expect(show(Reader).componentInstance.feed.failure()).toBe(stop);
    expect(connections).toBe(1);
  });

  it('ends with `restart`, and the same subscriptions continue', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    const seen: string[] = [];
    feed.frames$.subscribe((each) => seen.push(each.text()));
    relay$.next(opened());
    relay$.next(frame('a'));
    relay$.error(stop);
    expect([feed.status().state, feed.failure()]).toEqual(['stopped', stop]);
    expect(feed.status()).toEqual({ state: 'stopped', since: stop.endedAt, failure: stop });
    feed.restart();
    expect([feed.status().state, feed.failure()]).toEqual(['connecting', undefined]);
    relay$.next(opened());
    relay$.next(frame('b'));
    expect([feed.status().state, seen, connections]).toEqual(['live', ['a', 'b'], 2]);
  });

  it('is required for `restart`, which does nothing while the feed runs', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    feed.restart();
    expect([connections, isOpen]).toEqual([1, true]);
  });

  it('can happen at once, and again after a restart', () => {
    startApp(provideTradeFeedFrom(defer(() => throwError(() => ((connections += 1), stop)))));
    const { feed } = show(Reader).componentInstance;
    expect([feed.failure(), connections]).toEqual([stop, 1]);
    feed.restart();
    expect([feed.failure(), connections]).toEqual([stop, 2]);
  });

  it('makes windows incomplete, and counts as lost time', async () => {
    jest.setSystemTime(10_000);
    appWith({ stats: { everyMs: 1_000 } });
    const { feed } = show(Reader).componentInstance;
    feed.window();
    relay$.next(opened());
    await after(1_000);
    expect(feed.window()).toMatchObject({ start: 10_000, complete: true });
    relay$.error(createTradeFeedError({ stage: 'stream', closeCode: 4001 }));
    await after(3_000);
    expect(feed.window()).toMatchObject({ start: 13_000, complete: false });
    expect(feed.stats()).toMatchObject({ gaps: 1, lostMs: 3_000 });
    feed.restart();
    relay$.next(opened());
    relay$.next(frame('a'));
    await after(1_000);
    expect(feed.window()).toMatchObject({ start: 14_000, complete: true });
    expect(feed.stats()).toMatchObject({ totalFrames: 1 });
  });

  it('by a foreign error has that error as its cause', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    const cause = new Error('mine');
    relay$.error(cause);
    expect(feed.failure()).toMatchObject({
      name: 'TradeFeedError',
      code: 'relay-source-failed',
      verdict: 'stop',
      cause,
    });
  });

  it('also follows a completion, so that the feed does not look live, and `restart` starts again', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    const [next, complete] = [jest.fn(), jest.fn()];
    feed.events$.subscribe({ next, complete });
    relay$.next(opened());
    relay$.complete();
    expect(feed.failure()).toMatchObject({ code: 'relay-source-failed', verdict: 'stop' });
    expect(feed.failure()?.message).toBe('The feed is over: its source completed. Restart the feed to receive more.');
    expect([feed.status().state, isOpen]).toEqual(['stopped', false]);
    expect(next).toHaveBeenLastCalledWith({ type: 'stopped', at: Date.now(), failure: feed.failure() });
    expect(complete).not.toHaveBeenCalled();
    feed.restart();
    expect([feed.status().state, feed.failure(), connections, isOpen]).toEqual(['connecting', undefined, 2, true]);
  });

  it('can be answered with a restart by the first subscriber; all subscribers receive the stop before that', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    const received: string[] = [];
    feed.events$.subscribe(({ type }) => {
      if (type !== 'stopped') return;
      feed.restart();
      feed.restart();
    });
    feed.events$.subscribe(({ type }) => received.push(`${type} ${connections}`));
    relay$.error(stop);
    expect([feed.status().state, feed.failure(), connections, isOpen]).toEqual(['connecting', undefined, 2, true]);
    relay$.next(opened(2));
    expect(received).toEqual(['stopped 1', 'opened 2']);
    relay$.error(stop);
    expect(connections).toBe(3);
  });

  it('has the time when the feed ended, also for a later page', () => {
    appWith();
    const { feed } = show(Reader).componentInstance;
    const endedAt = Date.now() - 60_000;
    relay$.error(createTradeFeedError({ stage: 'stream', closeCode: 4001, endedAt }));
    expect(feed.status()).toMatchObject({ state: 'stopped', since: endedAt });
  });
});

describe('change detection', () => {
  class Dashboard {
    readonly feed = injectTradeFeed();
    readonly last = signal('');
    renders = 0;

    constructor() {
      this.feed.frames$.subscribe();
      afterEveryRender(() => (this.renders += 1));
    }
  }

  it('runs once for a change of status and once per period, with any number of frames', async () => {
    jest.setSystemTime(10_000);
    appWith();
    const template = `{{ feed.status().state }}, {{ feed.stats()?.totalFrames }} in all, {{ feed.window()?.count }} in a window`;
    const page = show(Dashboard, template);
    await after(50);
    const { componentInstance } = page;
    expect(textOf(page)).toBe('connecting,  in all,  in a window');
    const atFirst = componentInstance.renders;
    relay$.next(opened());
    await after(50);
    expect([textOf(page), componentInstance.renders - atFirst]).toEqual(['live,  in all,  in a window', 1]);
    for (let turn = 0; turn < 100; turn += 1) {
      for (let n = 0; n < 10; n += 1) relay$.next(frame(`${n}`));
      await after(8);
    }
    expect(componentInstance.renders - atFirst).toBe(1);
    await after(200);
    expect(textOf(page)).toBe('live, 1000 in all, 1000 in a window');
    // One run for the figures and one for the window, which change at different times.
    expect(componentInstance.renders - atFirst).toBeLessThanOrEqual(3);
  });

  it('runs no effect for a frame, and one for each change of a signal', async () => {
    appWith();
    const runs = { status: 0, failure: 0 };
    const { feed } = show(Reader).componentInstance;
    TestBed.runInInjectionContext(() => {
      for (const name of ['status', 'failure'] as const)
        effect(() => {
          feed[name]();
          runs[name] += 1;
        });
    });
    await after(10);
    relay$.next(opened());
    for (let n = 0; n < 1_000; n += 1) relay$.next(frame(`${n}`));
    await after(10);
    expect(runs).toEqual({ status: 2, failure: 1 });
  });

  it('can start the windows from a template', async () => {
    jest.setSystemTime(10_000);
    appWith({ window: { lengthMs: 100 } });
    const page = show(Reader, '@if (feed.status().state === "live") { <b>{{ feed.window()?.count ?? "none" }}</b> }');
    await after(10);
    relay$.next(opened());
    await after(40);
    expect(textOf(page)).toBe('none');
    relay$.next(frame('a'));
    await after(100);
    expect(textOf(page)).toBe('1');
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
  it('throws an error that names the missing provider', () => {
    startApp();
    expect(() => TestBed.runInInjectionContext(injectTradeFeed)).toThrow(
      /^injectTradeFeed\(\) .* Add provideTradeFeed\(/,
    );
  });

  it('is refused by Angular outside an injection context', () => {
    expect(() => injectTradeFeed()).toThrow(/NG0203.*injectTradeFeed\(\)/s);
  });

  it('can be called, and its window read, inside of `computed`', () => {
    startApp(provideTradeFeedFrom(concat(of(opened()), NEVER)));
    const feed = computed(() => TestBed.runInInjectionContext(injectTradeFeed));
    expect(computed(() => feed().window())()).toBeUndefined();
    expect(feed().status().state).toBe('live');
  });

  it('works outside of components, and the feed ends with its injector', () => {
    appWith({ lingerMs: 0 });
    const child = createEnvironmentInjector([], TestBed.inject(EnvironmentInjector));
    child.runInContext(() => {
      injectTradeFeed();
      expect(inject(DestroyRef).destroyed).toBe(false);
    });
    expect(isOpen).toBe(true);
    child.destroy();
    expect(isOpen).toBe(false);
  });
});

describe('provideTradeFeedFrom', () => {
  it.each<[unknown, unknown, RegExp]>([
    [undefined, {}, /`events\$` must be an Observable/],
    [NEVER, 5, /`options` must be an object/],
    [NEVER, { every: 1 }, /`every` must be left out/],
    [NEVER, { lingerMs: -1 }, /`lingerMs` must be a number of ms, 0 or more, got -1/],
    [NEVER, { stats: 5 }, /`stats` must be an object/],
    [NEVER, { stats: { everyMs: 0 } }, /`stats\.everyMs` must be a number of ms above 0, got 0/],
    [NEVER, { stats: { every: 1 } }, /`stats\.every` must be left out/],
    [NEVER, { freshness: 5 }, /`freshness` must be an object/],
    [NEVER, { freshness: {} }, /`freshness\.maxAgeMs` must be set, or `freshness\.factor`/],
    [
      NEVER,
      { freshness: { maxAgeMs: 0 } },
      /`freshness\.maxAgeMs` must be a number of ms, above 0 and at most 2147483647, got 0/,
    ],
    [NEVER, { window: { lengthMs: 0.5 } }, /`window\.lengthMs` must be a whole number of ms/],
    [NEVER, { window: { maxFrames: 0 } }, /`window\.maxFrames` must be a whole number/],
    [NEVER, { window: { seed: () => 0 } }, /`window\.seed` must be left out/],
  ])('refuses %p with %p', (events$, options, message) => {
    const provide = () => provideTradeFeedFrom(events$ as Observable<RelayedEvent>, options as FeedSignalOptions);
    let error: TradeFeedError | undefined;
    try {
      provide();
    } catch (thrown) {
      error = thrown as TradeFeedError;
    }
    expect(error?.code).toBe('invalid-options');
    expect(error?.message).toMatch(message);
  });
});
