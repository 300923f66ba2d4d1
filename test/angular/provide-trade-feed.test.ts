import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { show, startApp } from './app.js';
import { frame, opened } from './events.js';
import { createEnvironmentInjector, EnvironmentInjector, inject, NgZone, PLATFORM_ID } from '@angular/core';
import { TestBed } from '@angular/core/testing';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { filter, firstValueFrom, type Observable, Subject, take, toArray } from 'rxjs';
import { type AngularTradeFeed, injectTradeFeed } from '../../src/angular/inject-trade-feed.js';
import { provideTradeFeed, type ProvideTradeFeedOptions } from '../../src/angular/provide-trade-feed.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import type { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { connectAgain, hello, message } from '../browser/support.js';
import { createRelay, type Relay, relayHandler } from '../../src/relay/index.js';

class Reader {
  readonly feed: AngularTradeFeed = injectTradeFeed();
}

// A relay of a Subject, on loopback.
let upstream$: Subject<FeedEvent>;
let relay: Relay;
const relays: Relay[] = [];
let authorize: (request: IncomingMessage) => boolean;
let requests: IncomingMessage[];
const startRelay = () => {
  upstream$ = new Subject();
  relay = createRelay(upstream$, { batchMs: 1 });
  relays.push(relay);
};
// The responses that replace the relay, request by request. The last one repeats.
let responses: string[];
const server = createServer((request, response) => {
  requests.push(request);
  const text = responses.length > 1 ? responses.shift() : responses[0];
  if (text !== undefined) return void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text);
  relayHandler(relay, { authorize: (each) => authorize(each) })(request, response);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/feed`;
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const stored = new Map<string, string>();
const storage = {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: jest.fn((key: string, value: string) => void stored.set(key, value)),
};
const setStorage = (descriptor: PropertyDescriptor) =>
  Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, ...descriptor });

beforeEach(() => {
  [requests, authorize, responses] = [[], () => true, []];
  stored.clear();
  storage.setItem.mockClear();
  setStorage({ value: storage });
  startRelay();
});
afterEach(() => {
  TestBed.resetTestingModule();
  for (const each of relays.splice(0)) each.close();
  Reflect.deleteProperty(globalThis, 'sessionStorage');
});

const backoff = { initialDelayMs: 1, maxDelayMs: 5 };
const appWith = (options: Partial<ProvideTradeFeedOptions> = {}) =>
  startApp(provideTradeFeed({ url, backoff, lingerMs: 0, ...options }));
const event = <E extends { readonly type: string }>(events$: Observable<E>, type: E['type'], n = 1) =>
  firstValueFrom(
    events$.pipe(
      filter((each) => each.type === type),
      take(n),
      toArray(),
    ),
  );
const texts = async (feed: AngularTradeFeed, n: number): Promise<string[]> =>
  (await firstValueFrom(feed.frames$.pipe(take(n), toArray()))).map((each) => each.text());
const left = () => event(relay.events$, 'client-left');

describe('provideTradeFeed', () => {
  it('streams the events of a relay over one connection for all components, and closes it with the last one', async () => {
    appWith();
    const readers = [show(Reader), show(Reader)];
    const feeds = readers.map(({ componentInstance }) => componentInstance.feed);
    const isOpen = event(relay.events$, 'client-joined');
    await isOpen;
    const received = feeds.map((feed) => texts(feed, 2));
    for (const each of [opened(), frame('a'), frame('b')]) upstream$.next(each as FeedEvent);
    expect(await Promise.all(received)).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
    expect(feeds[0]?.status().state).toBe('live');
    expect(relay.status().clients).toHaveLength(1);
    const gone = left();
    for (const reader of readers) reader.destroy();
    await gone;
    expect(requests).toHaveLength(1);
  });

  it('resumes after a reload of the page, with the position stored in the tab', async () => {
    for (const resume of [undefined, true, false]) {
      stored.clear();
      startRelay();
      appWith({ resume });
      const seen = texts(show(Reader).componentInstance.feed, 1);
      await event(relay.events$, 'client-joined');
      for (const each of [opened(), frame('a')]) upstream$.next(each as FeedEvent);
      expect(await seen).toEqual(['a']);
      await new Promise(setImmediate);
      const gone = left();
      startApp();
      await gone;
      upstream$.next(frame('missed') as FeedEvent);
      appWith({ resume });
      const [joined, after] = [event(relay.events$, 'client-joined'), texts(show(Reader).componentInstance.feed, 1)];
      await joined;
      upstream$.next(frame('new') as FeedEvent);
      expect(await after).toEqual([resume === false ? 'new' : 'missed']);
      expect(stored.size).toBe(resume === false ? 0 : 1);
    }
  });

  it('works without the storage of the tab if it is blocked, full or missing', async () => {
    const refuse = () => {
      throw new Error('SecurityError');
    };
    const cases: PropertyDescriptor[] = [
      { get: refuse },
      { value: { getItem: refuse, setItem: refuse } },
      { value: null },
      { value: undefined },
    ];
    for (const storage of cases) {
      setStorage(storage);
      startRelay();
      appWith();
      const seen = texts(show(Reader).componentInstance.feed, 1);
      await event(relay.events$, 'client-joined');
      upstream$.next(frame('a') as FeedEvent);
      expect(await seen).toEqual(['a']);
    }
  });

  it('ignores an invalid position in the storage of the tab', async () => {
    for (const position of ['ключ', 'a\nb', '', ' ', 'x'.repeat(121), '{"id":1}']) {
      startRelay();
      requests = [];
      stored.set(`rx-trade-feed:${url}`, position);
      appWith();
      const seen = texts(show(Reader).componentInstance.feed, 1);
      await event(relay.events$, 'client-joined');
      upstream$.next(frame('a') as FeedEvent);
      expect(await seen).toEqual(['a']);
      expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined]);
    }
  });

  it('stops when it is refused, and continues after `restart` with new headers', async () => {
    authorize = ({ headers }) => headers.authorization === 'Bearer new';
    let token = 'old';
    appWith({ headers: () => ({ authorization: `Bearer ${token}` }) });
    const { feed } = show(Reader).componentInstance;
    await event(feed.events$, 'stopped');
    expect(feed.failure()).toMatchObject({ code: 'relay-refused', verdict: 'stop' });
    token = 'new';
    const joined = event(relay.events$, 'client-joined');
    const seen = texts(feed, 1);
    feed.restart();
    await joined;
    upstream$.next(frame('a') as FeedEvent);
    expect([await seen, feed.failure()]).toEqual([['a'], undefined]);
  });

  it('reconnects when the feed of the relay has stopped, with the reason; stops after `maxFeedStops`; `restart` counts from 0', async () => {
    const endedAt = Date.now();
    const stop = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced', endedAt });
    responses = [
      hello() + message('e.1.0.1', JSON.parse(JSON.stringify(opened())) as object) + connectAgain(stop),
      hello() + connectAgain(stop),
    ];
    appWith({ maxFeedStops: 3 });
    const { feed } = show(Reader).componentInstance;
    const seen: unknown[] = [];
    feed.events$.subscribe(({ type }) => {
      const status = feed.status();
      const reason = 'failure' in status ? [status.failure?.code, status.failure?.verdict] : [];
      seen.push([type, status.state, ...reason, feed.failure()?.code]);
    });
    const isStopped = event(feed.events$, 'stopped');
    const reconnects = event(feed.events$, 'reconnecting', 2);
    await reconnects;
    expect(feed.failure()).toBeUndefined();
    expect(feed.status()).toMatchObject({ state: 'reconnecting', failure: { message: stop.message } });
    await isStopped;
    const again = ['reconnecting', 'connection-replaced', 'backoff', undefined];
    expect(seen).toEqual([
      ['opened', 'live', undefined],
      ['disconnected', 'live', undefined],
      ['reconnecting', ...again],
      ['disconnected', ...again],
      ['reconnecting', ...again],
      ['stopped', 'stopped', 'connection-replaced', 'stop', 'connection-replaced'],
    ]);
    expect([feed.status().state, feed.failure()?.verdict, requests.length]).toEqual(['stopped', 'stop', 3]);
    const stopsAgain = event(feed.events$, 'stopped');
    feed.restart();
    expect([feed.status().state, feed.failure()]).toEqual(['connecting', undefined]);
    await stopsAgain;
    expect(requests).toHaveLength(6);
  });

  it('lets `classify` decide', async () => {
    authorize = () => requests.length > 2;
    const classify: ProvideTradeFeedOptions['classify'] = ({ code }, verdict) =>
      code === 'relay-refused' ? 'backoff' : verdict;
    appWith({ classify });
    const { feed } = show(Reader).componentInstance;
    await event(relay.events$, 'client-joined');
    expect([requests.length, feed.failure()]).toEqual([3, undefined]);
  });

  it('calls `headers` before each request, in an injection context', async () => {
    class Session {
      turn = 0;
      token = () => Promise.resolve(`token-${(this.turn += 1)}`);
    }
    const headers = async () => ({ authorization: await inject(Session).token() });
    startApp(Session, provideTradeFeed({ url, backoff, lingerMs: 0, headers }));
    const joined = event(relay.events$, 'client-joined');
    show(Reader);
    await joined;
    const again = event(relay.events$, 'client-joined');
    // The page reconnects with new headers.
    server.closeAllConnections();
    await again;
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(['token-1', 'token-2']);
  });

  it('calls `headers` outside the zone, with the services of the route that provides the feed', async () => {
    class Session {
      readonly token: string = 'of the app';
    }
    class RouteSession extends Session {
      override readonly token = 'of the route';
    }
    let isInside = true;
    const zone = {
      run: <T>(work: () => T): T => work(),
      runOutsideAngular: <T>(work: () => T): T => {
        isInside = false;
        const result = work();
        isInside = true;
        return result;
      },
    };
    const calledInside: boolean[] = [];
    const headers = () => {
      calledInside.push(isInside);
      return { authorization: inject(Session).token };
    };
    startApp(Session);
    const route = createEnvironmentInjector(
      [
        provideTradeFeed({ url, backoff, lingerMs: 0, headers }),
        { provide: Session, useClass: RouteSession },
        { provide: NgZone, useValue: zone },
      ],
      TestBed.inject(EnvironmentInjector),
    );
    const joined = event(relay.events$, 'client-joined');
    route.runInContext(injectTradeFeed);
    await joined;
    expect(requests[0]?.headers.authorization).toBe('of the route');
    expect(calledInside).toEqual([false]);
    const gone = left();
    route.destroy();
    await gone;
  });

  it('reports a gap between a stop and a restart, also without the storage of the tab', async () => {
    appWith({ resume: false });
    const { feed } = show(Reader).componentInstance;
    const seen = texts(feed, 1);
    await event(relay.events$, 'client-joined');
    for (const each of [opened(), frame('a')]) upstream$.next(each as FeedEvent);
    await seen;
    const stopped = event(feed.events$, 'stopped');
    authorize = () => false;
    server.closeAllConnections();
    await stopped;
    expect(feed.failure()?.code).toBe('relay-refused');
    startRelay();
    authorize = () => true;
    const [joined, gaps] = [event(relay.events$, 'client-joined'), event(feed.events$, 'gap')];
    feed.restart();
    await joined;
    // The end of the gap is known when the feed is open again.
    upstream$.next(opened());
    expect(await gaps).toMatchObject([{ type: 'gap', failure: { code: 'relay-behind' } }]);
    expect(feed.failure()).toBeUndefined();
    expect(stored.size).toBe(0);
  });

  it('sends no request on a server, and accepts a relative address there', async () => {
    const { fetch } = globalThis;
    const request = jest.fn<typeof fetch>();
    globalThis.fetch = request;
    try {
      for (const address of ['/feed', 'feed', url]) {
        startApp(provideTradeFeed({ url: address }), { provide: PLATFORM_ID, useValue: 'server' });
        const reader = show(Reader);
        await reader.whenStable();
        expect(reader.componentInstance.feed.status().state).toBe('connecting');
      }
    } finally {
      globalThis.fetch = fetch;
    }
    expect([request.mock.calls, requests]).toEqual([[], []]);
  });

  it('resolves a relative address like fetch, against the base of the document', async () => {
    const document = { baseURI: url.replace('feed', 'app/') };
    Object.assign(globalThis, { document });
    try {
      startApp(provideTradeFeed({ url: '../feed', lingerMs: 0 }));
    } finally {
      Reflect.deleteProperty(globalThis, 'document');
    }
    const joined = event(relay.events$, 'client-joined');
    show(Reader);
    await joined;
    expect(requests[0]?.url).toBe('/feed');
  });

  it.each<[unknown, RegExp]>([
    [undefined, /`options` must be an object such as \{ url: '\/feed' \}/],
    ['/feed', /`options` must be an object such as \{ url: '\/feed' \}/],
    [{}, /`url` must be/],
    [{ url: 5 }, /`url` must be/],
    [{ url: 'http://' }, /`url` must be/],
    [{ url: 'ftp://127.0.0.1/feed' }, /`url` must be/],
    [{ url, resume: 'yes' }, /`resume` must be true or false/],
    [{ url, resumeIn: storage }, /`resumeIn` must be left out/],
    [
      { url, header: {} },
      /`header` must be left out: the options are url, headers, .*, resume, stats, window, freshness, lingerMs/,
    ],
    [{ url: '' }, /`url` must be/],
    [{ url, idleTimeoutMs: 0 }, /`idleTimeoutMs` must be a number of ms above 0/],
    [{ url, headers: { authorization: 5 } }, /`headers` must be/],
    [{ url, backoff: { factor: 0 } }, /`backoff\.factor` must be/],
    [{ url, maxFeedStops: 0 }, /`maxFeedStops` must be a whole number, 1 or more, or Infinity, got 0/],
    [{ url, classify: 'stop' }, /`classify` must be a function/],
    [{ url, lingerMs: -1 }, /`lingerMs` must be/],
    [{ url, stats: { everyMs: 0 } }, /`stats\.everyMs` must be/],
    [{ url, window: { lengthMs: 0 } }, /`window\.lengthMs` must be/],
  ])('refuses %j at once', (options, message) => {
    let error: TradeFeedError | undefined;
    try {
      provideTradeFeed(options as ProvideTradeFeedOptions);
    } catch (thrown) {
      error = thrown as TradeFeedError;
    }
    expect(error?.code).toBe('invalid-options');
    expect(error?.message).toMatch(message);
  });
});
