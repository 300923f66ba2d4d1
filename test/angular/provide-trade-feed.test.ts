import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { expectInvalid, fakeZone, readFeed, Reader, show, startApp } from './app.js';
import { createEnvironmentInjector, EnvironmentInjector, inject, NgZone, PLATFORM_ID } from '@angular/core';
import { TestBed } from '@angular/core/testing';
import type { IncomingMessage } from 'node:http';
import { filter, firstValueFrom, type Observable, Subject, take, toArray } from 'rxjs';
import { type AngularTradeFeed, injectTradeFeed } from '../../src/angular/inject-trade-feed.js';
import { provideTradeFeed, type ProvideTradeFeedOptions } from '../../src/angular/provide-trade-feed.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { frameOf, opened } from '../operators/stream.js';
import { createRelay, type Relay, relayHandler } from '../../src/relay/index.js';
import { Web } from '../relay/support.js';

// A relay of a Subject, on loopback.
let upstream$: Subject<FeedEvent>;
let relay: Relay;
const relays: Relay[] = [];
let authorize: (request: IncomingMessage) => boolean;
const startRelay = () => {
  upstream$ = new Subject();
  relay = createRelay(upstream$, { batchMs: 1 });
  relays.push(relay);
};
const emitOpened = () => upstream$.next(opened(Date.now()));
const emitFrame = (text: string) => upstream$.next(frameOf(text, Date.now()));
const web = await Web.start((request, response) =>
  relayHandler(relay, { authorize: (each) => authorize(each) })(request, response),
);
const { url, requests } = web;
afterAll(() => web[Symbol.asyncDispose]());

const stored = new Map<string, string>();
const storage = {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => void stored.set(key, value),
};
const setStorage = (descriptor: PropertyDescriptor) =>
  Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, ...descriptor });

beforeEach(() => {
  requests.length = 0;
  authorize = () => true;
  stored.clear();
  setStorage({ value: storage });
  startRelay();
});
afterEach(() => {
  TestBed.resetTestingModule();
  for (const each of relays.splice(0)) each.close();
  Reflect.deleteProperty(globalThis, 'sessionStorage');
});

const backoff = { initialDelayMs: 1, maxDelayMs: 5 };
const provide = (options: Partial<ProvideTradeFeedOptions> = {}) =>
  provideTradeFeed({ url, backoff, lingerMs: 0, ...options });
const event = <E extends { readonly type: string }>(events$: Observable<E>, type: E['type']) =>
  firstValueFrom(events$.pipe(filter((each) => each.type === type)));
const texts = async (feed: AngularTradeFeed, n: number): Promise<string[]> =>
  (await firstValueFrom(feed.frames$.pipe(take(n), toArray()))).map((each) => each.text());
const joined = () => event(relay.events$, 'client-joined');
const left = () => event(relay.events$, 'client-left');
/** Starts an app that has joined the relay, and returns its feed. */
const joinedFeed = async (options: Partial<ProvideTradeFeedOptions> = {}): Promise<AngularTradeFeed> => {
  startApp(provide(options));
  const [feed] = [readFeed(), await joined()];
  return feed;
};
/** Checks that a feed receives a frame. */
const expectFrame = async (feed: AngularTradeFeed, text: string) => {
  const seen = texts(feed, 1);
  emitFrame(text);
  expect(await seen).toEqual([text]);
};

describe('provideTradeFeed', () => {
  it('streams the events of a relay over one connection for all components, and closes it with the last one', async () => {
    startApp(provide());
    const readers = [show(Reader), show(Reader)];
    await joined();
    const received = readers.map(({ componentInstance }) => texts(componentInstance.feed, 2));
    emitOpened();
    for (const text of ['a', 'b']) emitFrame(text);
    expect((await Promise.all(received)).flat()).toEqual(['a', 'b', 'a', 'b']);
    expect(readers[0]?.componentInstance.feed.status().state).toBe('live');
    expect(relay.status().clients).toHaveLength(1);
    const gone = left();
    for (const reader of readers) reader.destroy();
    await gone;
    expect(requests).toHaveLength(1);
  });

  it.each([undefined, true, false])('resumes after a reload with the position in the tab: %s', async (resume) => {
    const feed = await joinedFeed({ resume });
    emitOpened();
    await expectFrame(feed, 'a');
    await new Promise(setImmediate);
    const gone = left();
    startApp();
    await gone;
    emitFrame('missed');
    startApp(provide({ resume }));
    const [isBack, after] = [joined(), texts(readFeed(), 1)];
    await isBack;
    emitFrame('new');
    expect(await after).toEqual([resume === false ? 'new' : 'missed']);
    expect(stored.size).toBe(resume === false ? 0 : 1);
  });

  const refuse = () => {
    throw new Error('SecurityError');
  };
  it.each<[string, PropertyDescriptor]>([
    ['blocked', { get: refuse }],
    ['full', { value: { getItem: refuse, setItem: refuse } }],
    ['null', { value: null }],
    ['missing', { value: undefined }],
  ])('works without the storage of the tab if it is %s', async (_, descriptor) => {
    setStorage(descriptor);
    await expectFrame(await joinedFeed(), 'a');
  });

  it('stops when it is refused, and continues after `restart` with new headers', async () => {
    authorize = ({ headers }) => headers.authorization === 'Bearer new';
    let token = 'old';
    startApp(provide({ headers: () => ({ authorization: `Bearer ${token}` }) }));
    const feed = readFeed();
    await event(feed.events$, 'stopped');
    expect(feed.failure()).toMatchObject({ code: 'relay-refused', verdict: 'stop' });
    token = 'new';
    const isBack = joined();
    feed.restart();
    await isBack;
    await expectFrame(feed, 'a');
    expect(feed.failure()).toBeUndefined();
  });

  it('calls `headers` before each request, outside the zone, with the services of the route that provides the feed', async () => {
    class Session {
      turn = 0;
      readonly name: string = 'app';
      token = () => Promise.resolve(`${this.name} ${(this.turn += 1)}`);
    }
    class RouteSession extends Session {
      override readonly name = 'route';
    }
    const zone = fakeZone();
    const calledInside: boolean[] = [];
    const headers = async () => {
      calledInside.push(zone.isInside());
      return { authorization: await inject(Session).token() };
    };
    startApp(Session);
    const route = createEnvironmentInjector(
      [provide({ headers }), { provide: Session, useClass: RouteSession }, { provide: NgZone, useValue: zone }],
      TestBed.inject(EnvironmentInjector),
    );
    const isOpen = joined();
    zone.run(() => route.runInContext(injectTradeFeed));
    await isOpen;
    const again = joined();
    web.reset();
    await again;
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(['route 1', 'route 2']);
    expect(calledInside).toEqual([false, false]);
    const gone = left();
    route.destroy();
    await gone;
  });

  it('reports a gap between a stop and a restart, also without the storage of the tab', async () => {
    const feed = await joinedFeed({ resume: false });
    emitOpened();
    await expectFrame(feed, 'a');
    const stopped = event(feed.events$, 'stopped');
    authorize = () => false;
    web.reset();
    await stopped;
    expect(feed.failure()?.code).toBe('relay-refused');
    startRelay();
    authorize = () => true;
    const [isBack, gap] = [joined(), event(feed.events$, 'gap')];
    feed.restart();
    await isBack;
    // The gap has an end once the feed is open again.
    emitOpened();
    expect(await gap).toMatchObject({ type: 'gap', failure: { code: 'relay-behind' } });
    expect([feed.failure(), stored.size]).toEqual([undefined, 0]);
  });

  it('sends no request on a server, and accepts a relative address there', async () => {
    const request = jest.spyOn(globalThis, 'fetch');
    for (const address of ['/feed', 'feed', url]) {
      startApp(provide({ url: address }), { provide: PLATFORM_ID, useValue: 'server' });
      const reader = show(Reader);
      await reader.whenStable();
      expect(reader.componentInstance.feed.status().state).toBe('connecting');
    }
    expect([request.mock.calls, requests]).toEqual([[], []]);
    request.mockRestore();
  });

  it('resolves a relative address like fetch, against the base of the document', async () => {
    Object.assign(globalThis, { document: { baseURI: url.replace('feed', 'app/') } });
    try {
      startApp(provide({ url: '../feed' }));
    } finally {
      Reflect.deleteProperty(globalThis, 'document');
    }
    const isOpen = joined();
    readFeed();
    await isOpen;
    expect(requests[0]?.url).toBe('/feed');
  });

  it.each<[unknown, RegExp]>([
    [undefined, /`options` must be an object such as \{ url: '\/feed' \}/],
    ['/feed', /`options` must be an object such as \{ url: '\/feed' \}/],
    [{}, /`url` must be/],
    [{ url: 'http://' }, /`url` must be/],
    [{ url, resume: 'yes' }, /`resume` must be true or false/],
    [{ url, resumeIn: storage }, /`resumeIn` doesn't exist/],
    [{ url, header: {} }, /`header` doesn't exist: the options are url, headers, .*, resume, stats, .*, lingerMs/],
    [{ url, window: { lengthMs: 0 } }, /`window\.lengthMs` must be/],
  ])('refuses %j at once', (options, message) =>
    expectInvalid(() => provideTradeFeed(options as ProvideTradeFeedOptions), message),
  );
});
