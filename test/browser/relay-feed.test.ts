import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import * as t from 'io-ts';
import { filter, firstValueFrom, from, lastValueFrom, map, Observable, of, toArray } from 'rxjs';
import { type RelayedValue, relayFeed$, type RelayFeedOptions, TradeFeedError } from '../../src/browser/index.js';
import type { ConnectionEnd } from '../../src/browser/relay-connection.js';
import { resolveRelayFeed } from '../../src/browser/relay-feed-options.js';
import { afterEnd, pageWakes$ } from '../../src/browser/relay-feed.js';
import { connectionStatus } from '../../src/operators/connection-status.js';
import { decodeWith } from '../../src/operators/decode-with.js';
import { feedStats } from '../../src/operators/feed-stats.js';
import { frames } from '../../src/operators/frames.js';
import { gaps } from '../../src/operators/gaps.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { copyFailure, createFailure, relayError } from '../../src/protocol/failures/trade-feed-error.js';
import { type RelayFailureCode, relayReports, type Verdict } from '../../src/protocol/failures/meanings.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { createRelay, type RelayTopic } from '../../src/relay/index.js';
import { disconnected, gapOf, lost, opened, reconnecting, watermark } from '../operators/stream.js';
import { Clock, frame, Source } from '../relay/support.js';
import { waitFor } from '../support/wait-for.js';
import { FakePage } from './fake-page.js';
import { atEnd, connectAgain, ended, frameLineOf, hello, message, quick, receive, type Receiver } from './support.js';
import { serve, serveFeed, serveRelay, silence, status, type Step, stream, withoutNetwork } from './support.js';

const line = frameLineOf;
const statusOf = (events: readonly RelayedEvent[]) =>
  firstValueFrom(from(events).pipe(connectionStatus(), toArray())).then((all) => all.at(-1));

/** A page that has no network, whose delays start at 100 ms and grow. */
const receiveInVirtualTime = (options: RelayFeedOptions = {}) => {
  const clock = new Clock(Date.now());
  const { scheduler } = clock;
  const backoff = { initialDelayMs: 100, factor: 2, jitter: 'none' as const, scheduler };
  const receiver = receive('http://localhost/feed', { backoff, scheduler, ...options });
  const waits = () => receiver.lifecycle.flatMap((event) => (event.type === 'reconnecting' ? [event.delayMs] : []));
  return { clock, receiver, waits };
};

describe('relayFeed$: the events', () => {
  it('sends no request before the subscription; each subscription is a client', async () => {
    const { web, hasClients } = await serveRelay();
    const feed$ = relayFeed$(web.url, quick);
    expect(web.requests).toEqual([]);
    atEnd(...[feed$.subscribe(), feed$.subscribe()].map((each) => () => each.unsubscribe()));
    await hasClients(2);
  });
});

describe('relayFeed$: a connection that ends', () => {
  it('emits no event of the relay that is earlier than the failure of its first attempt, such as the begin of an outage', async () => {
    const at = Date.now() - 60_000;
    const { url } = await serve(
      status(503, { 'retry-after': '0' }),
      stream(hello() + message('e.1.0.1', disconnected(at))),
    );
    const receiver = receive(url);
    await waitFor(() => receiver.lifecycle.length === 3);
    const [, wait, state] = receiver.lifecycle as never as { at: number; failure: TradeFeedError }[];
    expect(state).toMatchObject({ at: wait!.at, failure: { endedAt: at } });
  });

  it('is reported with its reason and the wait, and the next request has the last id', async () => {
    const { url, requests } = await serve(
      ended(hello() + message('e.1.1.1', line('a'))),
      status(503, { 'retry-after': '0' }),
      ended(hello() + message('e.2.2.1', line('b'))),
      silence,
    );
    const receiver = receive(url);
    await waitFor(() => requests.length === 4);
    expect(receiver.texts).toEqual(['a', 'b']);
    expect(receiver.types.filter((type) => type !== 'reconnecting')).toEqual([
      ...['relay-lost', 'relay-full', 'relay-lost'],
    ]);
    const ids = [undefined, 'e.1.1.1', 'e.1.1.1', 'e.2.2.1'];
    expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual(ids);
    // The time of the stream, which is the time of the last frame.
    const at = receiver.frames[0]!.receivedAt;
    expect(receiver.lifecycle.slice(0, 2)).toMatchObject([
      { at, failure: { stage: 'stream', framesReceived: 1 } },
      { at, attempt: 1, verdict: 'backoff' },
    ]);
    expect((receiver.lifecycle[2] as { failure: TradeFeedError }).failure.previous).toMatchObject({
      code: 'relay-lost',
    });
  });

  it('is retried after growing waits, which restart after a stable connection', async () => {
    const { turn, write } = withoutNetwork(500, 500, 500, undefined, 500);
    const { clock, receiver, waits } = receiveInVirtualTime({ idleTimeoutMs: 6_000 });
    for (let n = 1; n <= 3; n += 1) {
      await turn();
      expect(waits()).toHaveLength(n);
      clock.pass(waits().at(-1)!);
    }
    await turn();
    // The relay sends hello and a heartbeat, then nothing. At the last bytes it was open for longer than `stableAfterMs`.
    for (const text of [hello(clock.now), ': heartbeat\n\n']) {
      await write(text);
      clock.pass(5_500);
    }
    clock.pass(500);
    expect(waits()).toEqual([100, 200, 400, 0]);
    expect(receiver.types.slice(-2)).toEqual(['relay-stalled', 'reconnecting']);
    clock.pass(0);
    await turn();
    expect(waits().at(-1)).toBe(200);
    expect(receiver.lifecycle.at(-1)).toMatchObject({ attempt: 2 });
  });
});

describe('relayFeed$: `connect-again`', () => {
  const stop = copyFailure(createTradeFeedError({ stage: 'ticket', status: 401, endedAt: Date.now() }), {
    previous: lost(Date.now() - 5),
  });
  const stopped: Step = (...args) => stream(hello() + connectAgain(stop))(...args);

  it('after a stop of the feed, the page reports the reason, retries, and resumes when the relay has a feed again', async () => {
    const { url, requests } = await serve(
      stream(hello() + message('e.1.0.1', opened(5)) + message('e.2.1.1', line('a')) + connectAgain(stop)),
      stopped,
      stream(hello() + message('e.4.1.1', opened(9, 2), line('b'))),
    );
    const receiver = await receive(url).until(({ texts }) => texts.length === 2);
    expect(receiver.types).toEqual([
      ...['opened', 'invalid-api-key', 'reconnecting', 'invalid-api-key', 'reconnecting', 'opened'],
    ]);
    const [ends] = receiver.lifecycle.filter(({ type }) => type === 'disconnected') as { failure: TradeFeedError }[];
    expect(ends!.failure).toMatchObject({ verdict: 'backoff', message: stop.message, advice: stop.advice });
    expect(ends!.failure).toMatchObject({ framesReceived: 1, previous: { code: 'connection-lost' } });
    expect([receiver.isOver, requests.length]).toEqual([false, 3]);
    expect(await statusOf(receiver.events)).toMatchObject({ state: 'live', connection: 2 });
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
    const { clock, receiver, waits } = receiveInVirtualTime();
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
    expect(receiver.types.filter((type) => type !== 'reconnecting')).toEqual([
      ...[
        'connection-replaced',
        'connection-replaced',
        'invalid-api-key',
        'connection-replaced',
        'relay-session-ended',
      ],
    ]);
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
    const ends = Array<Step>(7).fill(stream(hello() + message('e.1.1.1', line('a')) + connectAgain(failure)));
    const { url } = await serve(...ends, ended(`${hello()}event: complete\ndata: {}\n\n`));
    const receiver = await receive(url).over();
    expect([receiver.isComplete, receiver.texts.length]).toEqual([true, 7]);
    expect(receiver.types).toEqual(Array.from(ends, () => [code, 'reconnecting']).flat());
    expect(receiver.lifecycle[0]).toMatchObject({ failure: { verdict, framesReceived: 1, message: failure.message } });
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

  it('may continue after maxFeedStops, and may stop before', async () => {
    const again = Array<Step>(4).fill(stream(hello() + connectAgain(replaced)));
    const { url, requests } = await serve(...again, ended(`${hello()}event: complete\ndata: {}\n\n`));
    const verdicts: Verdict[] = [];
    const keepTrying = (_failure: TradeFeedError, verdict: Verdict): Verdict => {
      verdicts.push(verdict);
      return 'backoff';
    };
    expect((await receive(url, { classify: keepTrying, maxFeedStops: 2 }).over()).isComplete).toBe(true);
    expect([verdicts, requests.length]).toEqual([['backoff', 'stop', 'stop', 'stop'], 5]);
    const first = await serve(stream(hello() + connectAgain(replaced)));
    const receiver = await receive(first.url, { classify: () => 'stop' }).over();
    expect([receiver.error!.code, receiver.types, first.requests.length]).toEqual([
      ...['connection-replaced', ['stopped'], 1],
    ]);
  });
});

describe('relayFeed$: events of the page', () => {
  let page: FakePage;
  beforeEach(() => {
    page = new FakePage();
    atEnd(() => page.remove());
  });

  const waiting = async (...steps: readonly Step[]) => {
    const { url, requests } = await serve(...steps);
    const clock = new Clock(Date.now());
    const { scheduler } = clock;
    const backoff = { initialDelayMs: 20_000, jitter: 'none' as const, scheduler };
    const receiver = receive(url, { backoff, scheduler });
    const waits = (n: number) =>
      receiver.until(({ types }) => types.filter((type) => type === 'reconnecting').length === n);
    await waits(1);
    return { requests, clock, receiver, waits };
  };

  it('online ends a wait at once', async () => {
    const { requests, receiver, clock } = await waiting(status(500), stream(hello() + message('e.1.1.1', line('a'))));
    page.dispatch('online');
    clock.pass(0);
    await receiver.until(({ texts }) => texts.length === 1);
    // While connected there's no listener.
    expect([requests.length, page.listeners]).toEqual([2, []]);
  });

  it('a wait does not end before Retry-After, and the attempts still count', async () => {
    const { requests, clock, receiver, waits } = await waiting(
      status(503, { 'retry-after': '9' }),
      status(500),
      silence,
    );
    page.dispatch('online');
    clock.pass(8_999);
    expect(requests).toHaveLength(1);
    clock.pass(1);
    await waits(2);
    expect(requests).toHaveLength(2);
    expect(receiver.lifecycle.at(-1)).toMatchObject({ attempt: 2, delayMs: 30_000 });
  });

  it('unsubscribing during a wait removes listeners and timers', async () => {
    const { clock, receiver } = await waiting(status(500));
    expect(page.listeners).not.toEqual([]);
    receiver.subscription.unsubscribe();
    expect([page.listeners, clock.scheduler.actions]).toEqual([[], []]);
  });
});

describe('relayFeed$: unsubscribing', () => {
  it.each<[string, Step, (receiver: Receiver) => boolean]>([
    ['before the answer', silence, () => true],
    ['before hello', stream(''), () => true],
    ['during the stream', stream(hello() + message('e.1.1.1', line('a'))), ({ texts }) => texts.length > 0],
    ['within a message', stream(`${hello()}${message('e.1.1.1', line('a'))}data: {`), ({ texts }) => texts.length > 0],
  ])('ends the request %s: the server sees it', async (_when, step, isThere) => {
    const { url, requests, responses } = await serve(step);
    const receiver = receive(url);
    await waitFor(() => requests.length === 1 && isThere(receiver));
    receiver.subscription.unsubscribe();
    await waitFor(() => responses[0]!.destroyed);
    expect(requests).toHaveLength(1);
  });
});

describe('relayFeed$: your code', () => {
  it('your exception is not treated as a failure of the network', async () => {
    const { url, requests } = await serve(stream(hello() + message('e.1.1.1', line('a'))), silence);
    const failed = new Promise((resolve) => {
      relayFeed$(url, quick)
        .pipe(
          map(() => {
            throw new Error('mine');
          }),
        )
        .subscribe({ error: resolve });
    });
    expect(await failed).toEqual(new Error('mine'));
    expect(requests).toHaveLength(1);
  });
});

describe('afterEnd', () => {
  const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, endedAt: 1 });
  const lost = relayError({ code: 'relay-lost' });
  const ends: Readonly<Record<string, ConnectionEnd>> = {
    stop: { failure: replaced, isOfFeed: true, hasOpened: false },
    stopAfterOpened: { failure: replaced, isOfFeed: true, hasOpened: true },
    lost: { failure: lost, isOfFeed: true, hasOpened: false },
    lostAfterOpened: { failure: lost, isOfFeed: true, hasOpened: true },
    unreachable: { failure: relayError({ code: 'relay-unreachable' }), isOfFeed: false, hasOpened: false },
  };

  it('stops at the n-th stop since the last `opened`, for any sequence of ends', () => {
    const names$ = fc.array(fc.constantFrom(...Object.keys(ends)), { maxLength: 40 });
    fc.assert(
      fc.property(names$, fc.constantFrom(1, 2, 3, 6, Infinity), (names, max) => {
        let before = 0;
        for (const [n, name] of names.entries()) {
          const { stops, failure } = afterEnd(max, before, ends[name]!);
          before = stops;
          // Computed backwards: the stops since the last end that included an `opened`.
          const begin = names.slice(0, n + 1).findLastIndex((each) => each.endsWith('AfterOpened'));
          const inRow = names.slice(Math.max(begin, 0), n + 1).filter((each) => each.startsWith('stop')).length;
          expect(failure.verdict).toBe(name.startsWith('stop') && inRow >= max ? 'stop' : 'backoff');
        }
      }),
    );
  });
});

describe('pageWakes$', () => {
  it.each<[string, 'visible' | 'hidden', boolean]>([
    ['online', 'hidden', true],
    ['pageshow', 'visible', true],
    ['visibilitychange', 'visible', true],
    ['visibilitychange', 'hidden', false],
    ['offline', 'visible', false],
  ])('on %s of a page that is %s emits: %p', (type, state, does) => {
    const page = new FakePage();
    atEnd(() => page.remove());
    let emitted = 0;
    const subscription = pageWakes$.subscribe(() => (emitted += 1));
    page.document.visibilityState = state;
    page.dispatch(type);
    page.dispatch(type);
    subscription.unsubscribe();
    expect(emitted).toBe(does ? 2 : 0);
  });
});

describe('the options of relayFeed$', () => {
  const url = 'http://localhost/feed';
  const page = globalThis as { location?: { href: string } | undefined };
  afterEach(() => {
    delete page.location;
  });

  it('accept an absolute address, or one relative to the page', () => {
    expect(resolveRelayFeed(new URL('https://a.example/b?c=d')).url).toBe('https://a.example/b?c=d');
    page.location = { href: 'https://app.example.com/some/page?x#y' };
    expect(resolveRelayFeed('feed').url).toBe('https://app.example.com/some/feed');
    expect(resolveRelayFeed(url).url).toBe(url);
  });

  it.each<[string, string]>([
    ['a relative address without a page', '/feed'],
    ['another scheme', 'ws://localhost/feed'],
    ['a script', 'javascript:alert(1)'],
    ['no host', 'http://'],
    ['a user', 'http://user@localhost/feed'],
    ['a password', 'http://:secret-5@localhost/feed'],
  ])('refuse %s as the address, and do not repeat it', (_what, address) => {
    const make = () => relayFeed$(address);
    expect(make).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining('`url`') }),
    );
    expect(make).not.toThrow('secret-5');
  });

  it.each<[string, unknown]>([
    ['headers', 'Bearer secret-5'],
    ['headers', { authorization: 5 }],
    ['headers', { a: 'secret-5\nb' }],
    ['credentials', 'always'],
    ['idleTimeoutMs', '5'],
    ['backoff.factor', { factor: 0 }],
    ['resumeIn', { getItem: () => null }],
    ['maxFeedStops', 1.5],
    ['tabs', 'all'],
    ['header', {}],
  ])('refuse %s as %j at once, and name the option', (name, value) => {
    const make = () => relayFeed$(url, { [name.replace('.factor', '')]: value });
    expect(make).toThrow(TradeFeedError);
    expect(make).toThrow(`\`${name}\``);
    expect(make).not.toThrow('secret-5');
  });
});

describe('values', () => {
  interface Numbered {
    readonly n: number;
  }

  const at = 1_000_000;
  const value = (n: number, time: number): RelayedValue<Numbered> => ({ type: 'value', at: time, value: { n } });
  const events: readonly (RelayedEvent | RelayedValue<Numbered>)[] = [
    opened(at),
    watermark(at),
    value(1, at + 100),
    value(2, at + 900),
    watermark(at + 1_100),
    value(3, at + 1_200),
    disconnected(at + 1_300),
    reconnecting(at + 1_300, 100),
    opened(at + 1_500, 2),
    gapOf(at + 1_300, at + 1_500),
    value(4, at + 2_100),
    watermark(at + 3_000),
  ];
  const numberIn = (item: AnyFrame | RelayedValue<Numbered>): number => (item.type === 'value' ? item.value.n : NaN);

  it('values pass a second relay over HTTP, unchanged and through its topics', async () => {
    const serveTopics = async (events$: Parameters<typeof createRelay>[0], topics: ReadonlyMap<string, RelayTopic>) => {
      const select = ({ url = '' }: { readonly url?: string | undefined }) => topics.get(url);
      const { web, hasClients } = await serveFeed(events$, {}, { select });
      return { hasClients, base: `http://127.0.0.1:${web.port}` };
    };
    const source = new Source();
    const first = await serveTopics(source.events$, new Map([['/values', decodeWith(t.type({ n: t.number }))]]));
    const numbers: RelayTopic = map((event: RelayedEvent | RelayedValue<Numbered>) =>
      event.type === 'value' ? event.value.n : event,
    );
    const topics = new Map<string, RelayTopic>([
      ['/same', (events$) => events$],
      ['/odd', filter((event: RelayedEvent | RelayedValue<Numbered>) => event.type !== 'value' || event.value.n !== 2)],
      ['/numbers', numbers],
    ]);
    const second = await serveTopics(relayFeed$(`${first.base}/values`, quick), topics);
    const paths = ['/whole', ...topics.keys()];
    const seen = new Map(paths.map((path): [string, (RelayedEvent | RelayedValue<unknown>)[]] => [path, []]));
    const failed: unknown[] = [];
    for (const path of paths) {
      const page = relayFeed$<unknown>(`${second.base}${path}`, quick).subscribe({
        next: (event) => seen.get(path)?.push(event),
        error: (error: unknown) => failed.push(error),
      });
      atEnd(() => page.unsubscribe());
    }
    await second.hasClients(4);
    await first.hasClients(1);
    // Ahead of the clock, because the watermarks of a slow machine would move the times of the values.
    const now = Date.now() + 60_000;
    source.emit(opened(now), frame('{"n":1}', now + 1), frame('no JSON', now + 1));
    source.emit(frame('{"n":2}', now + 2), frame('{"n":3}', now + 3));
    source.emit({ ...disconnected(now + 4) });
    const isOver = (path: string) => seen.get(path)?.some(({ type }) => type === 'disconnected') === true;
    await waitFor(() => failed.length > 0 || paths.every(isOver));
    expect(failed).toEqual([]);
    const valuesAt = (path: string) => seen.get(path)?.filter(({ type }) => type === 'value');
    const all = [value(1, now + 1), value(2, now + 2), value(3, now + 3)];
    expect(valuesAt('/whole')).toEqual(all);
    expect(valuesAt('/same')).toEqual(all);
    expect(valuesAt('/odd')).toEqual([all[0], all[2]]);
    expect(valuesAt('/numbers')).toEqual(all.map((each) => ({ ...each, value: each.value.n })));
  });

  it('are items of the operators: windows and `frames` contain them, and a gap can end at one', async () => {
    const all = <T>(source: Observable<T>): Promise<T[]> => lastValueFrom(source.pipe(toArray()));
    expect(await all(from(events).pipe(frames(), map(numberIn)))).toEqual([1, 2, 3, 4]);
    const windows = await all(from(events).pipe(tumblingWindow({ lengthMs: 1_000 })));
    expect(windows.map((each) => [each.start - at, each.frames.map(numberIn), each.complete])).toEqual([
      [0, [1, 2], true],
      [1_000, [3], false],
      [2_000, [4], true],
    ]);
    expect(await all(from(events).pipe(feedStats()))).toEqual([expect.objectContaining({ frames: 4, bytes: 0 })]);
    expect(await all(from(events).pipe(gaps()))).toEqual([events[9]]);
    const ended = of(opened(at), disconnected(at + 5), value(1, at + 50));
    expect(await all(ended.pipe(gaps()))).toMatchObject([{ from: at + 5, to: at + 50 }]);
  });

  it('do not change the status, but show that the feed is live', async () => {
    const states = await lastValueFrom(from(events).pipe(connectionStatus(), toArray()));
    expect(states.map(({ state }) => state)).toEqual(['live', 'reconnecting', 'live']);
    const first = of(value(1, at)).pipe(connectionStatus());
    expect(await lastValueFrom(first)).toEqual({ state: 'live', since: at, connection: 1 });
  });
});
