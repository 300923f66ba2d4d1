/** @lane clock */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom, map, Observable, type OperatorFunction, pipe, toArray } from 'rxjs';
import { type RelayedValue, relayFeed$, TradeFeedError } from '../../src/browser/index.js';
import { resolveRelayFeed } from '../../src/browser/relay-feed-options.js';
import { afterEnd, pageWakes$ } from '../../src/browser/relay-feed.js';
import { connectionStatus } from '../../src/operators/connection-status.js';
import { feedStats } from '../../src/operators/feed-stats.js';
import { frames } from '../../src/operators/frames.js';
import { gaps } from '../../src/operators/gaps.js';
import { timeOf } from '../../src/operators/items/item.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { copyFailure, createFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { relayError } from '../../src/browser/relay-error.js';
import { type RelayFailureCode, relayReports, type Verdict } from '../../src/protocol/failures/meanings.js';
import { Frame } from '../../src/protocol/frame.js';
import { disconnected, gapOf, lost, opened } from '../operators/stream.js';
import { Clock, essence } from '../relay/support.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';
import { waitFor } from '../support/wait-for.js';
import { FakeBrowser } from './tabs/fake-browser.js';
import { atEnd, connectAgain, ended, frameLineOf, hello, message, receive, type Receiver } from './support.js';
import { serve, serveRelay, silence, status, type Step, Store, stream, withoutNetwork } from './support.js';

const line = frameLineOf;
const statusesOf = (events: readonly RelayedEvent[]) => lastValueFrom(from(events).pipe(connectionStatus(), toArray()));

it('relayFeed$: the events include each frame once, in order, with the same bytes, for any bytes', async () => {
  const payload = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.string({ unit: character }).map((text) => Buffer.from(text)),
    fc
      .constantFrom('', '\n', '\r\n\r\n', 'data: x\n\n', '\ufeff', '\u2028\u2029', '\0', '"\\', ': heartbeat\n\n')
      .map((text) => Buffer.from(text)),
  );
  const fields = fc.tuple(
    fc.constantFrom('market' as const, 'raw' as const),
    payload,
    fc.boolean(),
    fc.nat(2 ** 41),
    fc.integer({ min: 1, max: 99 }),
  );
  const { source, web, hasClients } = await serveRelay();
  const receiver = receive(web.url);
  await hasClients(1);
  await fc.assert(
    fc.asyncProperty(fc.array(fields, { maxLength: 100 }), async (all) => {
      const sent = all.map(
        ([feed, data, isBinary, at, connection]) => new Frame(feed, Buffer.from(data), isBinary, at, connection),
      );
      const seen = receiver.events.length;
      source.emit(...sent);
      await receiver.until(() => receiver.events.length >= seen + sent.length);
      expect((receiver.events.slice(seen) as Frame[]).map(essence)).toEqual(sent.map(essence));
    }),
    { numRuns: cases(15) },
  );
  expect(receiver.types).toEqual([]);
});

it('relayFeed$: a connection that ends is reported with its reason and the wait, and the next request has the last id', async () => {
  const { url, requests } = await serve(
    ended(hello() + message('le-0.1.1.1', line('a'))),
    status(503, { 'retry-after': '0' }),
    ended(hello() + message('le-0.2.2.1', line('b'))),
    silence,
  );
  const receiver = receive(url);
  await waitFor(() => requests.length === 4);
  expect(receiver.texts).toEqual(['a', 'b']);
  const failures = ['relay-lost', 'relay-full', 'relay-lost'];
  expect(receiver.types).toEqual(failures.flatMap((code) => [code, 'reconnecting']));
  const ids = requests.map(({ headers }) => headers['last-event-id']);
  expect(ids).toEqual([undefined, 'le-0.1.1.1', 'le-0.1.1.1', 'le-0.2.2.1']);
  const [ends, waits] = receiver.lifecycle as never as [
    { at: number; failure: TradeFeedError },
    { at: number; delayMs: number; attempt: number; verdict: string },
  ];
  expect(ends.failure).toMatchObject({ stage: 'stream', framesReceived: 1 });
  expect(waits).toMatchObject({ attempt: 1, verdict: 'backoff' });
  // The time of the stream, which is the time of the last frame.
  expect([ends.at, waits.at]).toEqual([receiver.frames[0]!.receivedAt, receiver.frames[0]!.receivedAt]);
  expect(Math.abs(waits.at + waits.delayMs - Date.now())).toBeLessThan(60_000);
  const statuses = await statusesOf(receiver.events);
  const states = ['live', 'reconnecting', 'reconnecting', 'live', 'reconnecting'];
  expect(statuses.map(({ state }) => state)).toEqual(states);
  expect((receiver.lifecycle[2] as { failure: TradeFeedError }).failure.previous).toMatchObject({
    code: 'relay-lost',
  });
});

describe('relayFeed$: `connect-again`', () => {
  const stop = copyFailure(createTradeFeedError({ stage: 'ticket', status: 401, endedAt: Date.now() }), {
    previous: lost(Date.now() - 5),
  });
  const stopped: Step = (...args) => stream(hello() + connectAgain(stop))(...args);

  it('after a stop of the feed, the page reports the reason, retries, and resumes when the relay has a feed again', async () => {
    const { url, requests } = await serve(
      stream(hello() + message('le-0.1.0.1', opened(5)) + message('le-0.2.1.1', line('a')) + connectAgain(stop)),
      stopped,
      stream(hello() + message('le-0.4.1.1', opened(9, 2), line('b'))),
    );
    const receiver = await receive(url).until(({ texts }) => texts.length === 2);
    expect(receiver.types).toEqual([
      ...['opened', 'invalid-api-key', 'reconnecting', 'invalid-api-key', 'reconnecting', 'opened'],
    ]);
    const [ends] = receiver.lifecycle.filter(({ type }) => type === 'disconnected') as { failure: TradeFeedError }[];
    expect(ends!.failure).toMatchObject({ verdict: 'backoff', message: stop.message, advice: stop.advice });
    expect(ends!.failure).toMatchObject({ framesReceived: 1, previous: { code: 'connection-lost' } });
    expect([receiver.isOver, requests.length]).toEqual([false, 3]);
    expect((await statusesOf(receiver.events)).at(-1)).toMatchObject({ state: 'live', connection: 2 });
  });

  it('a page that first finds a stopped feed asks the next one for the gap since that stop', async () => {
    const { url, requests } = await serve(ended(connectAgain(stop)), stream(hello()));
    receive(url);
    await waitFor(() => requests.length === 2);
    expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'le-0.0.0.1']);
  });

  it.each([
    [{}, 5],
    [{ maxFeedStops: 1 }, 1],
  ])('with %j the page stops after %d stops of the feed in a row', async (options, n) => {
    const { url, requests } = await serve(stopped);
    const receiver = await receive(url, options).over();
    const again = Array.from({ length: n - 1 }, () => ['invalid-api-key', 'reconnecting']).flat();
    expect([receiver.types, requests.length]).toEqual([[...again, 'stopped'], n]);
    expect(receiver.error).toBeInstanceOf(TradeFeedError);
    const { uptimeMs: _, ...received } = receiver.error!.toJSON();
    const { uptimeMs: __, ...sent } = JSON.parse(JSON.stringify(stop)) as Record<string, unknown>;
    expect(JSON.parse(JSON.stringify(received))).toEqual({ ...sent, stage: 'stream' });
    expect(receiver.lifecycle.at(-1)).toMatchObject({
      type: 'stopped',
      failure: { code: 'invalid-api-key', verdict: 'stop' },
    });
    expect((receiver.lifecycle.at(-1) as { failure: TradeFeedError }).failure).toBe(receiver.error);
  });

  it('the waits grow for any uptime of the feed, and restart after a stable connection', async () => {
    const replaced = lost(5, { closeCode: 4001, reason: 'connection replaced', uptimeMs: 7_200_000 });
    const sessionEnded = createFailure(relayReports.sessionEnded, { stage: 'stream' });
    const { turn, write } = withoutNetwork();
    const clock = new Clock(Date.now());
    const { scheduler } = clock;
    const backoff = { initialDelayMs: 100, factor: 2, jitter: 'none' as const, scheduler };
    const receiver = receive('http://localhost/feed', { backoff, scheduler });
    const waits = () => receiver.lifecycle.flatMap((event) => (event.type === 'reconnecting' ? [event.delayMs] : []));
    for (const [openMs, failure] of [
      [0, replaced],
      [0, replaced],
      [6_000, stop],
      [0, replaced],
      [5_000, sessionEnded],
    ] as const) {
      await turn();
      await write(hello(clock.now));
      clock.pass(openMs);
      await write(connectAgain(failure));
      clock.pass(waits().at(-1)!);
    }
    // An ended session is renewed at once.
    expect(waits()).toEqual([100, 200, 100, 200, 0]);
    const codes = receiver.types.filter((type) => type !== 'reconnecting');
    const stops = ['connection-replaced', 'connection-replaced', 'invalid-api-key', 'connection-replaced'];
    expect(codes).toEqual([...stops, 'relay-session-ended']);
    expect(receiver.lifecycle.at(-1)).toMatchObject({ attempt: 1, verdict: 'renew' });
  });

  it.each<[RelayFailureCode, Verdict]>([
    ['relay-closing', 'backoff'],
    ['relay-session-ended', 'renew'],
  ])('%s is not a stop of the feed: the page retries any number of times', async (code, verdict) => {
    const failure = createFailure(
      Object.values(relayReports).find((row) => row.code === code)!,
      { stage: 'stream' },
    );
    const ends = Array<Step>(7).fill(stream(hello() + message('le-0.1.1.1', line('a')) + connectAgain(failure)));
    const { url } = await serve(...ends, ended(`${hello()}event: complete\ndata: {}\n\n`));
    const receiver = await receive(url).over();
    expect([receiver.isComplete, receiver.texts.length]).toEqual([true, 7]);
    expect(receiver.types).toEqual(Array.from(ends, () => [code, 'reconnecting']).flat());
    const [{ failure: first }] = receiver.lifecycle as unknown as [{ failure: TradeFeedError }];
    expect(first).toMatchObject({ verdict, framesReceived: 1, message: failure.message });
  });
});

describe('relayFeed$: `classify`', () => {
  const replaced = lost(5, { closeCode: 4001, reason: 'connection replaced' });

  it('is called with each failure and its verdict, and decides', async () => {
    const { url, requests } = await serve(
      status(401),
      ended(hello()),
      stream(hello() + connectAgain(replaced)),
      status(503),
    );
    const seen: (readonly [string, Verdict])[] = [];
    const classify = (failure: TradeFeedError, verdict: Verdict): Verdict => {
      seen.push([failure.code, verdict]);
      expect(failure.verdict).toBe(verdict);
      return failure.code === 'relay-refused' ? 'backoff' : failure.code === 'relay-full' ? 'stop' : verdict;
    };
    const receiver = await receive(url, { classify }).over();
    expect(seen).toEqual([
      ['relay-refused', 'stop'],
      ['relay-lost', 'backoff'],
      ['connection-replaced', 'backoff'],
      ['relay-full', 'backoff'],
    ]);
    expect(receiver.error).toMatchObject({
      ...{ code: 'relay-full', verdict: 'stop' },
      advice: 'Your option `classify` changed the verdict from backoff to stop.',
    });
    expect(requests).toHaveLength(4);
  });

  it.each<[string, (failure: TradeFeedError) => Error, object, readonly string[]]>([
    ['an exception of yours, without an event', () => new Error('mine'), { message: 'mine' }, []],
    ['the failure, for any verdict', (failure) => failure, { code: 'relay-failed', verdict: 'stop' }, ['stopped']],
  ])('ends the feed with what it throws: %s', async (_what, thrown, error, types) => {
    const { url, requests } = await serve(status(500));
    const classify = (failure: TradeFeedError) => {
      throw thrown(failure);
    };
    const receiver = await receive(url, { classify }).over();
    expect([receiver.error, receiver.types]).toMatchObject([error, types]);
    expect(requests).toHaveLength(1);
  });
});

it('the event `online` of the page ends a wait at once', async () => {
  const page = new FakeBrowser();
  atEnd(() => page.remove());
  const { url, requests } = await serve(status(500), stream(hello() + message('le-0.1.1.1', line('a'))));
  const clock = new Clock(Date.now());
  const { scheduler } = clock;
  const receiver = receive(url, { backoff: { initialDelayMs: 20_000, jitter: 'none', scheduler }, scheduler });
  await receiver.until(({ types }) => types.includes('reconnecting'));
  page.fire('online');
  clock.pass(0);
  await receiver.until(({ texts }) => texts.length === 1);
  // While connected there's no listener.
  expect([requests.length, page.listeners]).toEqual([2, []]);
});

it('a page that first finds no relay, then the last minute, keeps the times of the past: a gap covers no frame that it received', async () => {
  const at = Date.now() - 60_000;
  const first = [opened(at), line(1, at + 1), disconnected(at + 2), opened(at + 3, 2), gapOf(at + 2, at + 3)];
  const later = [line(2, at + 4), disconnected(at + 5), opened(at + 6, 3), gapOf(at + 5, at + 6), line(3, at + 7)];
  const past = ended(hello() + message('le-0.5.1.1', ...first) + message('le-0.10.3.1', ...later));
  const { url } = await serve(status(503), past, silence);
  const receiver = receive(url);
  await receiver.until(({ types }) => types.slice(-2).join() === 'relay-lost,reconnecting');
  const ofRelay = receiver.events.slice(receiver.events.findIndex(({ type }) => type === 'opened'));
  // The last two are the page's own: its connection has ended.
  expect(ofRelay.map((event) => timeOf(event)! - at)).toEqual([1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 7, 7]);
});

it.each<[string, Step, (receiver: Receiver) => boolean]>([
  ['before the answer', silence, () => true],
  ['before hello', stream(''), () => true],
  ['during the stream', stream(hello() + message('le-0.1.1.1', line('a'))), ({ texts }) => texts.length > 0],
  ['within a message', stream(`${hello()}${message('le-0.1.1.1', line('a'))}data: {`), ({ texts }) => texts.length > 0],
])('relayFeed$: unsubscribing ends the request %s: the server sees it', async (_when, step, isThere) => {
  const { url, requests, responses } = await serve(step);
  const receiver = receive(url);
  await waitFor(() => requests.length === 1 && isThere(receiver));
  receiver.subscription.unsubscribe();
  await waitFor(() => responses[0]!.destroyed);
  expect(requests).toHaveLength(1);
});

it('a client of a user with one stream loses it to its duplicate once, and then waits for a place: the two do not fight', async () => {
  const { source, relay, web, hasClients } = await serveRelay(
    { heartbeatMs: 20, maxClientsPerUser: 1 },
    { authorize: () => ({ id: 'ann' }) },
  );
  const joins: unknown[] = [];
  relay.events$.subscribe(({ type }) => type === 'client-joined' && joins.push(type));
  const kept = new Store();
  const first = receive(web.url, { resumeIn: kept });
  await hasClients(1);
  source.frames('a');
  await first.until(({ texts }) => texts.includes('a'));
  const second = receive(web.url, { resumeIn: new Store(kept.items) });
  await first.until(({ types }) => types.includes('relay-full'));
  first.subscription.unsubscribe();
  // The first tab is reloaded: it still holds the id of its replaced stream.
  const again = receive(web.url, { resumeIn: kept });
  await again.until(({ types }) => types.includes('relay-full'));
  expect(first.types.filter((type) => type.startsWith('relay-'))).toEqual(['relay-replaced', 'relay-full']);
  expect(joins).toHaveLength(2);
  source.frames('b');
  await second.until(({ texts }) => texts.includes('b'));
  expect(second.types).not.toContain('reconnecting');
  second.subscription.unsubscribe();
  await hasClients(0);
  const last = receive(web.url, { resumeIn: kept });
  await last.until(({ texts }) => texts.includes('b'));
  expect([last.texts, last.types.includes('gap')]).toEqual([['b'], false]);
});

it('afterEnd stops at the n-th stop since the last `opened`, for any sequence of ends', () => {
  const replaced = lost(1, { closeCode: 4001, reason: 'connection replaced' });
  const ended = relayError({ code: 'relay-lost' });
  const kinds = {
    stop: { failure: replaced, isOfFeed: true, hasOpened: false },
    stopAfterOpened: { failure: replaced, isOfFeed: true, hasOpened: true },
    lost: { failure: ended, isOfFeed: true, hasOpened: false },
    lostAfterOpened: { failure: ended, isOfFeed: true, hasOpened: true },
    unreachable: { failure: relayError({ code: 'relay-unreachable' }), isOfFeed: false, hasOpened: false },
  };
  const kind = fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[]));
  fc.assert(
    fc.property(fc.array(kind, { maxLength: 40 }), fc.constantFrom(1, 2, 3, 6, Infinity), (names, max) => {
      let before = 0;
      for (const [n, name] of names.entries()) {
        const { stops, failure } = afterEnd(max, before, kinds[name]);
        before = stops;
        // Computed backwards: the stops since the last end that included an `opened`.
        const begin = names.slice(0, n + 1).findLastIndex((each) => each.endsWith('AfterOpened'));
        const inRow = names.slice(Math.max(begin, 0), n + 1).filter((each) => each.startsWith('stop')).length;
        expect(failure.verdict).toBe(name.startsWith('stop') && inRow >= max ? 'stop' : 'backoff');
      }
    }),
  );
});

describe('pageWakes$', () => {
  let page: FakeBrowser;
  beforeEach(() => void (page = new FakeBrowser()));
  afterEach(() => page.remove());

  it.each<[string, 'visible' | 'hidden', boolean]>([
    ['online', 'visible', true],
    ['online', 'hidden', true],
    ['pageshow', 'visible', true],
    ['visibilitychange', 'visible', true],
    ['visibilitychange', 'hidden', false],
    ['offline', 'visible', false],
    ['focus', 'visible', false],
  ])('on %s of a page that is %s emits: %p', (type, state, does) => {
    let emitted = 0;
    const subscription = pageWakes$.subscribe(() => (emitted += 1));
    page.document.visibilityState = state;
    page.fire(type);
    page.fire(type);
    subscription.unsubscribe();
    expect(emitted).toBe(does ? 2 : 0);
  });
});

describe('relayFeed$', () => {
  const url = 'http://localhost/feed';

  it('accepts an absolute address, or one relative to the page', () => {
    const resolved = (address: string | URL) => resolveRelayFeed(address).url;
    expect(resolved(new URL('https://a.example/b?c=d'))).toBe('https://a.example/b?c=d');
    Object.assign(globalThis, { location: { href: 'https://app.example.com/some/page?x#y' } });
    atEnd(() => Reflect.deleteProperty(globalThis, 'location'));
    expect(resolved('/feed')).toBe('https://app.example.com/feed');
    expect(resolved('feed')).toBe('https://app.example.com/some/feed');
    expect(resolved('//b.example/feed')).toBe('https://b.example/feed');
    expect(resolved(url)).toBe(url);
  });

  it.each<[string, string]>([
    ['a relative address without a page', '/feed'],
    ['no address', ''],
    ['another scheme', 'ws://localhost/feed'],
    ['a script', 'javascript:alert(1)'],
    ['data', 'data:text/event-stream,x'],
    ['no host', 'http://'],
    ['a blank in the host', 'http://a b/'],
    ['a user', 'http://user@localhost/feed'],
    ['a password', 'http://:secret-5@localhost/feed'],
  ])('refuses %s as its address, and does not repeat it', (_what, address) => {
    const make = () => relayFeed$(address);
    expect(make).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining('`url`') }),
    );
    expect(make).not.toThrow('secret-5');
  });

  const refused: Readonly<Record<string, readonly unknown[]>> = {
    headers: [1, 'Bearer secret-5', null, { authorization: 5 }, { 'a b': 'secret-5' }, { a: 'secret-5\nb' }],
    credentials: ['always'],
    connectTimeoutMs: [0, NaN, '5'],
    idleTimeoutMs: [0, NaN, '5'],
    backoff: [5, null],
    'backoff.factor': [{ factor: 0 }],
    resumeIn: [{}, null, 'sessionStorage', { getItem: () => null }],
    maxFeedStops: [0, 1.5, NaN, '5', null],
    classify: ['stop'],
    tabs: ['all', true, null],
    scheduler: [{}],
    header: [{}],
  };

  it.each(Object.entries(refused).flatMap(([name, values]) => values.map((value) => [name, value] as const)))(
    'refuses %s as %j at once, and names the option',
    (name, value) => {
      const make = () => relayFeed$(url, { [name.replace('.factor', '')]: value });
      expect(make).toThrow(TradeFeedError);
      expect(make).toThrow(`\`${name}\``);
      expect(make).not.toThrow('secret-5');
    },
  );
});

describe('values of a topic', () => {
  const at = 1_000_000;
  const value = (n: number, time: number): RelayedValue<number> => ({ type: 'value', at: time, value: n });
  const outage = [opened(at), disconnected(at + 5), value(1, at + 50), opened(at + 90, 2), value(2, at + 95)];

  it.each<[string, OperatorFunction<(typeof outage)[number], unknown>, readonly unknown[]]>([
    ['pass `frames`', frames(), [value(1, at + 50), value(2, at + 95)]],
    [
      'end no outage, because an operator may emit them late',
      gaps(),
      [expect.objectContaining({ from: at + 5, to: at + 90 })],
    ],
    [
      'are in windows by their times',
      pipe(
        tumblingWindow({ lengthMs: 60, scheduler: new Clock(at).scheduler }),
        map(({ start, frames: { length }, complete }) => [start - at, length, complete]),
      ),
      [
        [-40, 0, false],
        [20, 1, false],
        [80, 1, false],
      ],
    ],
    ['are frames without bytes for `feedStats`', feedStats(), [expect.objectContaining({ frames: 2, bytes: 0 })]],
    [
      'do not change the `connectionStatus`',
      pipe(
        connectionStatus(),
        map(({ state }) => state),
      ),
      ['live', 'live'],
    ],
  ])('%s', async (_what, operator, expected) => {
    expect(await lastValueFrom(from(outage).pipe(operator, toArray()))).toEqual(expected);
  });

  it('are in the stream only if you name their type: a switch over the events needs no case for them', () => {
    const typed: Observable<RelayedEvent | RelayedValue<number>> = relayFeed$<number>('https://app.example.com/feed');
    // @ts-expect-error -- a stream with values is not one without
    const plain: Observable<RelayedEvent> = relayFeed$<number>('https://app.example.com/feed');
    for (const each of [typed, plain]) expect(each).toBeInstanceOf(Observable);
  });
});
