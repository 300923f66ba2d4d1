import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { firstValueFrom, from, lastValueFrom, map, of, Subject, take, toArray } from 'rxjs';
import { relayFeed$, type RelayFeedOptions, TradeFeedError } from '../../src/browser/index.js';
import type { RelayFailureCode, Verdict } from '../../src/protocol/failures/failure-code.js';
import { createFailure } from '../../src/protocol/failures/meaning.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';
import { relayReports } from '../../src/protocol/failures/relay-meanings.js';
import { connectionStatus } from '../../src/operators/connection-status.js';
import { feedStats } from '../../src/operators/feed-stats.js';
import { frames } from '../../src/operators/frames.js';
import { frameLine } from '../../src/operators/node/recording/recording-line.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import { createRelay, relayHandler, type RelayOptions } from '../../src/relay/index.js';
import { publicEvent } from '../../src/relay/public-json.js';
import { disconnected, gapOf, lost, opened, reconnecting, requested } from '../operators/stream.js';
import { Clock, essence, frame, isFrame, range, Source, Web } from '../relay/support.js';
import { FakePage } from './fake-page.js';
import {
  connectAgain,
  ended,
  hello,
  message,
  quick,
  Receiver,
  silence,
  startSteps,
  status,
  type Step,
  stream,
} from './support.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';
import { waitFor } from '../support/wait-for.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const serve = async (...steps: readonly Step[]): Promise<Web> => {
  const web = await startSteps(...steps);
  closing.push(() => web[Symbol.asyncDispose]());
  return web;
};

/** A real relay on loopback, and its source. */
const serveRelay = async (options: RelayOptions = {}) => {
  const source = new Source();
  const relay = createRelay(source.events$, { batchMs: 0, ...options });
  const web = await Web.start(relayHandler(relay, { authorize: () => true }));
  closing.push(
    () => web[Symbol.asyncDispose](),
    () => relay.close(),
  );
  return { source, relay, web };
};

const receive = (url: string, options?: RelayFeedOptions, onEvent?: (event: RelayedEvent) => void): Receiver => {
  const receiver = new Receiver(url, options, onEvent);
  closing.push(() => receiver.subscription.unsubscribe());
  return receiver;
};

const line = (text: string | number): string => frameLine(frame(text)).trim();
const statusOf = (events: readonly RelayedEvent[]) =>
  firstValueFrom(from(events).pipe(connectionStatus(), toArray())).then((all) => all.at(-1));

describe('relayFeed$: the events', () => {
  it('sends no request before the subscription; each subscription is a client', async () => {
    const { relay, web } = await serveRelay();
    const feed$ = relayFeed$(web.url, quick);
    expect(web.requests).toEqual([]);
    closing.push(...[feed$.subscribe(), feed$.subscribe()].map((each) => () => each.unsubscribe()));
    await waitFor(() => relay.status().clients.length === 2);
  });

  it('are the events of the source in the same order, with frames of the class Frame', async () => {
    const { source, relay, web } = await serveRelay();
    const receiver = receive(web.url);
    await waitFor(() => relay.status().clients.length === 1);
    const at = Date.now();
    const failure = copyFailure(lost(at, { uptimeMs: 5, framesReceived: 2 }), { previous: lost(at - 9) });
    const sent: readonly RelayedEvent[] = [
      requested(at),
      { type: 'ticket-issued', at, feed: 'market', expiresAt: '2026-11-20T12:00:00Z' },
      opened(at, 1),
      frame('a', at, 1),
      { ...disconnected(at), failure },
      reconnecting(at, 10),
      opened(at + 20, 2),
      { ...gapOf(at, at + 20, failure), missed: 3 },
      new Frame('raw', Buffer.of(0xff), true, at, 2),
    ];
    source.emit(...sent);
    await receiver.until(({ events }) => events.length === sent.length);
    for (const [n, event] of receiver.events.entries()) {
      const original = sent[n]!;
      if (isFrame(event)) {
        expect(event).toBeInstanceOf(Frame);
        expect(essence(event)).toEqual(essence(original as Frame));
      } else {
        expect(JSON.parse(JSON.stringify(event))).toEqual(JSON.parse(JSON.stringify(publicEvent(original))));
        if ('failure' in event) expect(event.failure).toBeInstanceOf(TradeFeedError);
      }
    }
  });

  it('include each frame once, in order, with the same bytes, for any bytes', async () => {
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
    const { source, relay, web } = await serveRelay();
    const receiver = receive(web.url);
    await waitFor(() => relay.status().clients.length === 1);
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

  it('include a frame of 1 MB of text, and one of 1 MB of bytes', async () => {
    const { source, relay, web } = await serveRelay();
    const receiver = receive(web.url);
    await waitFor(() => relay.status().clients.length === 1);
    const big = [false, true].map((isBinary) => new Frame('raw', Buffer.alloc(1_000_000, 'ab\n'), isBinary, 5, 1));
    source.emit(frame('a'), ...big, frame('b'));
    await receiver.until(() => receiver.frames.length === 4);
    expect(receiver.frames.slice(1, 3).map(essence)).toEqual(big.map(essence));
  });

  it('end with the feed', async () => {
    const { source, relay, web } = await serveRelay();
    const receiver = receive(web.url);
    await waitFor(() => relay.status().clients.length === 1);
    source.frames('a');
    source.subject.complete();
    await receiver.over();
    expect([receiver.texts, receiver.isComplete, receiver.types]).toEqual([['a'], true, []]);
    expect(web.requests).toHaveLength(1);
  });

  it('arrive over a relay of a relay', async () => {
    const far = await serveRelay();
    const near = createRelay(relayFeed$(far.web.url, quick), { batchMs: 0 });
    const web = await Web.start(relayHandler(near, { authorize: () => true }));
    closing.push(
      () => web[Symbol.asyncDispose](),
      () => near.close(),
    );
    const receiver = receive(web.url);
    await waitFor(() => far.relay.status().clients.length === 1);
    const sent = [frame('{"a":1}'), new Frame('raw', Buffer.of(0xef, 0xbb, 0xbf, 0xff), true, 5, 1), frame('\ufeff\n')];
    far.source.emit(opened(Date.now(), 3), ...sent);
    await receiver.until(({ frames: seen }) => seen.length === 3);
    expect(receiver.frames.map(essence)).toEqual(sent.map(essence));
    far.web.reset();
    far.source.frames('b');
    await receiver.until(({ texts }) => texts.includes('b'));
    expect(receiver.types).toEqual(['opened', 'relay-lost', 'reconnecting', 'opened']);
    far.source.subject.complete();
    expect((await receiver.over()).isComplete).toBe(true);
  });
});

describe('relayFeed$: a connection that ends', () => {
  it('is replaced by one that resumes after the last event: each frame arrives once', async () => {
    const { source, relay, web } = await serveRelay();
    const receiver = receive(web.url);
    await waitFor(() => relay.status().clients.length === 1);
    source.emit(opened(Date.now()));
    let sent = 0;
    for (let round = 0; round < 5; round += 1) {
      source.frames(...range(sent + 1, sent + 50));
      sent += 50;
      if (round % 2 === 0) await receiver.until(({ frames: seen }) => seen.length > 0);
      web.reset();
      source.frames(...range(sent + 1, sent + 50));
      sent += 50;
      await receiver.until(({ frames: seen }) => seen.length === sent);
    }
    expect(receiver.texts).toEqual(range(1, sent).map(String));
    expect(receiver.types.filter((type) => type === 'gap')).toEqual([]);
    expect(await statusOf(receiver.events)).toMatchObject({ state: 'live', connection: 1 });
    expect(new Set(receiver.types)).toEqual(new Set(['opened', 'relay-lost', 'reconnecting']));
  });

  it('resumes with one gap at a restarted relay', async () => {
    const first = await serveRelay();
    const { port } = first.web;
    const receiver = receive(first.web.url);
    await waitFor(() => first.relay.status().clients.length === 1);
    first.source.emit(opened(Date.now()), frame('a'));
    await receiver.until(({ texts }) => texts.length === 1);
    await first.web[Symbol.asyncDispose]();
    const source = new Source();
    const relay = createRelay(source.events$, { batchMs: 0 });
    const keepOpen = relay.messages$().subscribe();
    source.emit(opened(Date.now(), 7));
    const web = await Web.start(relayHandler(relay, { authorize: () => true }), port);
    closing.push(
      () => web[Symbol.asyncDispose](),
      () => relay.close(),
      () => keepOpen.unsubscribe(),
    );
    await receiver.until(({ types }) => types.includes('gap'));
    source.frames('b');
    await receiver.until(({ texts }) => texts.length === 2);
    const gap = receiver.lifecycle.find(({ type }) => type === 'gap');
    expect(gap).toMatchObject({ failure: { code: 'relay-behind' } });
    expect(gap).not.toHaveProperty('missed');
    expect(receiver.types.slice(-2)).toEqual(['opened', 'gap']);
    expect(await statusOf(receiver.events)).toMatchObject({ state: 'live', connection: 7 });
  });

  it('resumes with a gap with the number of frames when it is too late for the log of the relay', async () => {
    const { source, relay, web } = await serveRelay({ capacity: 10 });
    const receiver = receive(web.url, {}, () => undefined);
    await waitFor(() => relay.status().clients.length === 1);
    source.emit(opened(Date.now()), frame(0));
    await receiver.until(({ texts }) => texts.length === 1);
    web.reset();
    source.frames(...range(1, 100));
    await receiver.until(({ types }) => types.includes('gap'));
    source.frames(101);
    await receiver.until(({ texts }) => texts.includes('101'));
    const gaps = receiver.events.filter(({ type }) => type === 'gap') as { missed?: number }[];
    expect(gaps).toHaveLength(1);
    expect(gaps[0]!.missed! + receiver.frames.length).toBe(102);
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
    expect(receiver.types).toEqual([
      'relay-lost',
      'reconnecting',
      'relay-full',
      'reconnecting',
      'relay-lost',
      'reconnecting',
    ]);
    expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([
      undefined,
      'e.1.1.1',
      'e.1.1.1',
      'e.2.2.1',
    ]);
    const [ends, waits] = receiver.lifecycle as never as [
      { at: number; failure: TradeFeedError },
      { at: number; delayMs: number; attempt: number; verdict: string },
    ];
    expect(ends.failure).toMatchObject({ stage: 'stream', framesReceived: 1 });
    expect(waits).toMatchObject({ attempt: 1, delayMs: 1, verdict: 'backoff' });
    expect(Math.abs(waits.at - Date.now())).toBeLessThan(5_000);
    const statuses = await firstValueFrom(from(receiver.events).pipe(connectionStatus(), toArray()));
    expect(statuses.map(({ state }) => state)).toEqual([
      'live',
      'reconnecting',
      'reconnecting',
      'live',
      'reconnecting',
    ]);
    expect((receiver.lifecycle[2] as { failure: TradeFeedError }).failure.previous).toMatchObject({
      code: 'relay-lost',
    });
  });

  it.each<[string, Step, string]>([
    ['401', status(401), 'relay-refused'],
    ['403', status(403), 'relay-refused'],
    ['404', status(404), 'invalid-relay'],
    ['a page', status(200, { 'content-type': 'text/html' }), 'invalid-relay'],
    ['a redirect to a page', status(302, { location: 'data:text/html,x' }), 'relay-unreachable'],
  ])('is not retried after %s', async (_what, step, code) => {
    const { url, requests } = await serve(step);
    const failure = await receive(url).firstFailure();
    expect(failure).toMatchObject({ code, verdict: code === 'relay-unreachable' ? 'backoff' : 'stop' });
    expect(requests).toHaveLength(1);
  });

  it.each<[string, Step, string]>([
    ['429', status(429), 'relay-failed'],
    ['500', status(500), 'relay-failed'],
    ['503', status(503), 'relay-full'],
    ['a reset', (response) => response.socket?.resetAndDestroy(), 'relay-unreachable'],
    ['garbage', stream(`${hello()}data: garbage\n\n`), 'invalid-relay-data'],
    ['the end', ended(hello()), 'relay-lost'],
  ])('is retried after %s', async (_what, step, code) => {
    const { url } = await serve(step, stream(hello() + message('e.1.1.1', line('a'))));
    const receiver = receive(url);
    await receiver.until(({ texts }) => texts.length === 1);
    expect(receiver.types).toEqual([code, 'reconnecting']);
  });

  it('is retried no sooner than Retry-After', async () => {
    const { url, requests } = await serve(status(503, { 'retry-after': '9' }), ended(hello()));
    const clock = new Clock(Date.now());
    const receiver = receive(url, { backoff: { ...quick.backoff, scheduler: clock.scheduler } });
    await receiver.until(({ types }) => types.includes('reconnecting'));
    expect(receiver.lifecycle.at(-1)).toMatchObject({ delayMs: 9_000, attempt: 1 });
    clock.pass(8_999);
    expect(requests).toHaveLength(1);
    clock.pass(1);
    await waitFor(() => requests.length === 2);
  });

  it('is retried no sooner than a relay without room requests', async () => {
    const { relay, web } = await serveRelay({ maxClients: 1 });
    receive(web.url);
    await waitFor(() => relay.status().clients.length === 1);
    const clock = new Clock(Date.now());
    const second = receive(web.url, { backoff: { ...quick.backoff, scheduler: clock.scheduler } });
    await second.until(({ types }) => types.includes('reconnecting'));
    expect(second.types).toEqual(['relay-full', 'reconnecting']);
    expect(second.lifecycle.at(-1)).toMatchObject({ delayMs: 5_000 });
  });

  it('is retried after growing waits, which restart after a stable connection', async () => {
    // Without a network, written bytes arrive in the next turn.
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    let relay: ReadableStreamDefaultController<Uint8Array> | undefined;
    const refusal = () => new Response('', { status: 500 });
    const answers = [
      ...[refusal, refusal, refusal],
      () => {
        const body = new ReadableStream<Uint8Array>({ start: (controller) => (relay = controller) });
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      },
      refusal,
    ];
    const { fetch } = globalThis;
    closing.push(() => (globalThis.fetch = fetch));
    globalThis.fetch = () => Promise.resolve(answers.shift()!());
    const clock = new Clock(Date.now());
    const backoff = { initialDelayMs: 100, factor: 2, jitter: 'none' as const, scheduler: clock.scheduler };
    const receiver = receive('http://localhost/feed', { backoff, scheduler: clock.scheduler, idleTimeoutMs: 6_000 });
    const waits = () => receiver.lifecycle.flatMap((event) => (event.type === 'reconnecting' ? [event.delayMs] : []));
    for (let n = 1; n <= 3; n += 1) {
      await turn();
      expect(waits()).toHaveLength(n);
      clock.pass(waits().at(-1)!);
    }
    await turn();
    // The relay sends hello and a heartbeat, then nothing. At the last bytes it was open for longer than `stableAfterMs`.
    for (const text of [hello(clock.now), ': heartbeat\n\n']) {
      relay!.enqueue(new TextEncoder().encode(text));
      await turn();
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

  it('is not retried after maxAttempts', async () => {
    const { url, requests } = await serve(status(500));
    const receiver = await receive(url, { backoff: { ...quick.backoff, maxAttempts: 2 } }).over();
    expect(receiver.error).toMatchObject({
      code: 'retries-exhausted',
      verdict: 'stop',
      cause: { code: 'relay-failed' },
    });
    expect(requests).toHaveLength(3);
  });

  it('is retried when your headers function fails', async () => {
    const { url, requests } = await serve(stream(hello() + message('e.1.1.1', line('a'))));
    let n = 0;
    const headers = async () => {
      n += 1;
      if (n < 3) throw new Error('no token');
      return Promise.resolve({ authorization: `Bearer ${n}` });
    };
    const receiver = await receive(url, { headers }).until(({ texts }) => texts.length === 1);
    expect(receiver.types.filter((type) => type === 'relay-headers-failed')).toHaveLength(2);
    expect(requests.map((request) => request.headers.authorization)).toEqual(['Bearer 3']);
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
    [{ maxFeedStops: 3 }, 3],
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

  it('an `opened` restarts the count, a lost connection does not', async () => {
    const openedThenStopped = stream(hello() + message('e.1.0.1', opened(5)) + connectAgain(stop));
    const { url, requests } = await serve(
      stopped,
      ended(hello()),
      openedThenStopped,
      stopped,
      status(500),
      stopped,
      silence,
    );
    const receiver = await receive(url, { maxFeedStops: 3 }).over();
    expect([requests.length, receiver.types.at(-1)]).toEqual([6, 'stopped']);
  });

  it('Infinity allows any number of stops', async () => {
    const { url, requests } = await serve(
      ...Array<Step>(20).fill(stopped),
      ended(`${hello()}event: complete\ndata: {}\n\n`),
    );
    const receiver = await receive(url, { maxFeedStops: Infinity }).over();
    expect([receiver.isComplete, requests.length]).toEqual([true, 21]);
  });

  it('the count is separate for each subscription', async () => {
    const { url, requests } = await serve(stopped);
    const feed$ = relayFeed$(url, { ...quick, maxFeedStops: 2 });
    for (const total of [2, 4]) {
      await expect(lastValueFrom(feed$)).rejects.toMatchObject({ code: 'invalid-api-key' });
      expect(requests).toHaveLength(total);
    }
  });

  it('the waits grow for any uptime of the feed, and restart after a stable connection', async () => {
    // Without a network, written bytes arrive in the next turn.
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const replaced = lost(5, { closeCode: 4001, reason: 'connection replaced', uptimeMs: 7_200_000 });
    let relay: ReadableStreamDefaultController<Uint8Array> | undefined;
    const { fetch } = globalThis;
    closing.push(() => (globalThis.fetch = fetch));
    globalThis.fetch = () => {
      const body = new ReadableStream<Uint8Array>({ start: (controller) => (relay = controller) });
      return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
    };
    const clock = new Clock(Date.now());
    const backoff = { initialDelayMs: 100, factor: 2, jitter: 'none' as const, scheduler: clock.scheduler };
    const receiver = receive('http://localhost/feed', { backoff, scheduler: clock.scheduler });
    const waits = () => receiver.lifecycle.flatMap((event) => (event.type === 'reconnecting' ? [event.delayMs] : []));
    const write = async (text: string) => {
      relay!.enqueue(new TextEncoder().encode(text));
      await turn();
    };
    for (const openMs of [0, 0, 6_000, 0]) {
      await turn();
      await write(hello(clock.now));
      clock.pass(openMs);
      await write(connectAgain(openMs > 0 ? stop : replaced));
      clock.pass(waits().at(-1)!);
    }
    expect(waits()).toEqual([100, 200, 100, 200]);
    expect(receiver.types.filter((type) => type !== 'reconnecting')).toEqual([
      ...['connection-replaced', 'connection-replaced', 'invalid-api-key', 'connection-replaced'],
    ]);
  });

  it.each<[RelayFailureCode, Verdict, number]>([
    ['relay-closing', 'backoff', 1],
    ['relay-session-ended', 'renew', 1],
  ])('%s is not a stop of the feed: the page retries any number of times', async (code, verdict, framesReceived) => {
    const failure = createFailure(
      Object.values(relayReports).find((row) => row.code === code)!,
      { stage: 'stream' },
    );
    const ends = Array<Step>(7).fill(stream(hello() + message('e.1.1.1', line('a')) + connectAgain(failure)));
    const { url } = await serve(...ends, ended(`${hello()}event: complete\ndata: {}\n\n`));
    const receiver = await receive(url).over();
    expect([receiver.isComplete, receiver.texts.length]).toEqual([true, 7]);
    expect(receiver.types).toEqual(Array.from(ends, () => [code, 'reconnecting']).flat());
    const [{ failure: first }] = receiver.lifecycle as unknown as [{ failure: TradeFeedError }];
    expect(first).toMatchObject({ verdict, framesReceived, message: failure.message });
  });

  it('after relay-session-ended on a stable connection the page reconnects at once', async () => {
    const failure = createFailure(relayReports.sessionEnded, { stage: 'stream' });
    const [turn, clock] = [() => new Promise((resolve) => setImmediate(resolve)), new Clock(Date.now())];
    let relay: ReadableStreamDefaultController<Uint8Array> | undefined;
    const { fetch } = globalThis;
    closing.push(() => (globalThis.fetch = fetch));
    globalThis.fetch = () => {
      const body = new ReadableStream<Uint8Array>({ start: (controller) => (relay = controller) });
      return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
    };
    const { scheduler } = clock;
    const receiver = receive('http://localhost/feed', { backoff: { jitter: 'none', scheduler }, scheduler });
    await turn();
    relay!.enqueue(new TextEncoder().encode(hello(clock.now)));
    await turn();
    clock.pass(5_000);
    relay!.enqueue(new TextEncoder().encode(connectAgain(failure)));
    await turn();
    expect(receiver.lifecycle.at(-1)).toMatchObject({ type: 'reconnecting', delayMs: 0, attempt: 1, verdict: 'renew' });
  });

  it.each([401, 403])('%i is not a stop of the feed, and stops at once', async (code) => {
    const { url, requests } = await serve(stopped, status(code));
    const receiver = await receive(url).over();
    expect(receiver.types).toEqual(['invalid-api-key', 'reconnecting', 'stopped']);
    expect([receiver.error!.code, requests.length]).toEqual(['relay-refused', 2]);
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

  it('ends the feed with the exception that it throws, without an event', async () => {
    const { url, requests } = await serve(status(500));
    const mine = new Error('mine');
    const classify = () => {
      throw mine;
    };
    const receiver = await receive(url, { classify }).over();
    expect(receiver.error).toBe(mine);
    expect([receiver.types, requests.length]).toEqual([[], 1]);
  });

  it('ends the feed with a failure that it throws, for any verdict', async () => {
    const { url, requests } = await serve(status(500));
    const classify = (failure: TradeFeedError) => {
      throw failure;
    };
    const receiver = await receive(url, { classify }).over();
    expect(receiver.error).toMatchObject({ code: 'relay-failed', verdict: 'stop' });
    expect([receiver.types, requests.length]).toEqual([['stopped'], 1]);
  });
});

describe('relayFeed$: events of the page', () => {
  let page: FakePage;
  beforeEach(() => {
    page = new FakePage();
    closing.push(() => page.remove());
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

  it.each(['online', 'pageshow', 'visibilitychange'])('%s ends a wait at once', async (type) => {
    const { requests, receiver, clock } = await waiting(status(500), stream(hello() + message('e.1.1.1', line('a'))));
    page.dispatch(type);
    clock.pass(0);
    await receiver.until(({ texts }) => texts.length === 1);
    // No listener is left while it is connected.
    expect([requests.length, page.listeners]).toEqual([2, []]);
  });

  it('a hidden page does not end a wait', async () => {
    const { clock, receiver } = await waiting(status(500));
    page.document.visibilityState = 'hidden';
    page.dispatch('visibilitychange');
    clock.pass(0);
    expect(clock.scheduler.actions).toHaveLength(1);
    expect(receiver.types).toHaveLength(2);
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

  it('during a wait sends no further request, and leaves no timer', async () => {
    const { url, requests } = await serve(status(500));
    const clock = new Clock();
    const receiver = receive(url, { backoff: { scheduler: clock.scheduler }, scheduler: clock.scheduler });
    await receiver.until(({ types }) => types.includes('reconnecting'));
    receiver.subscription.unsubscribe();
    clock.pass(1e6);
    expect([requests.length, clock.scheduler.actions]).toEqual([1, []]);
  });

  it.each(['opened', 'frame', 'disconnected', 'reconnecting'])('in `next` of %s emits nothing more', async (type) => {
    const { url } = await serve(
      ended(hello() + message('e.1.0.1', opened(5)) + message('e.3.2.1', line('a'), line('b'))),
    );
    const seen: string[] = [];
    await firstValueFrom(
      relayFeed$(url, quick).pipe(
        map((event) => {
          seen.push(event.type);
          return event;
        }),
        take(
          ['opened', 'frame', 'disconnected', 'reconnecting'].indexOf(type) +
            (type === 'opened' || type === 'frame' ? 1 : 2),
        ),
        toArray(),
      ),
    );
    expect(seen.at(-1)).toBe(type);
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

  it('the id in your store is where the next subscription resumes', async () => {
    const { source, relay, web } = await serveRelay();
    const items = new Map<string, string>();
    const resumeIn = {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, id: string) => void items.set(key, id),
    };
    const first = receive(web.url, { resumeIn });
    await waitFor(() => relay.status().clients.length === 1);
    source.emit(opened(Date.now()), frame('a'));
    await first.until(({ texts }) => texts.length === 1);
    first.subscription.unsubscribe();
    await waitFor(() => relay.status().clients.length === 0);
    source.frames('b', 'c');
    const second = receive(web.url, { resumeIn });
    await second.until(({ texts }) => texts.length === 2);
    expect([second.texts, second.types]).toEqual([['b', 'c'], ['opened']]);
  });

  it('a store that throws only prevents resuming', async () => {
    const { url } = await serve(stream(hello() + message('e.1.1.1', line('a'))));
    const no = () => {
      throw new Error('SecurityError');
    };
    const receiver = receive(url, { resumeIn: { getItem: no, setItem: no } });
    await receiver.until(({ texts }) => texts.length === 1);
    expect([receiver.types, receiver.isOver]).toEqual([[], false]);
  });
});

describe('relayFeed$: the operators', () => {
  it('`frames`, `feedStats` and `connectionStatus` accept the events', async () => {
    const { url } = await serve(
      stream(hello() + message('e.3.2.1', opened(Date.now(), 4), line('ab'), { ...gapOf(1, 2), missed: 7 })),
    );
    const events = await firstValueFrom(relayFeed$(url, quick).pipe(take(3), toArray()));
    expect(await firstValueFrom(from(events).pipe(frames(), toArray()))).toHaveLength(1);
    expect(await statusOf(events)).toMatchObject({ state: 'live', connection: 4 });
    const idle = new Subject<RelayedEvent>();
    const stats = firstValueFrom(idle.pipe(feedStats({ everyMs: 5 })));
    for (const event of events) idle.next(event);
    expect(await stats).toMatchObject({ frames: 1, bytes: 2, gaps: 1, dropped: 7 });
  });

  it('windows are complete across a reconnect without a loss, and incomplete where frames may be missing', async () => {
    const at = 1_000_000_000;
    const clock = new Clock(at);
    const windowsOf = async (events: readonly RelayedEvent[]) =>
      firstValueFrom(from(events).pipe(tumblingWindow({ lengthMs: 1_000, scheduler: clock.scheduler }), toArray()));
    const lostAt = (ms: number) => ({
      ...disconnected(at + ms),
      failure: relayError({ code: 'relay-lost', endedAt: at + ms }),
    });
    const seconds = (...events: readonly RelayedEvent[]): RelayedEvent[] => [
      opened(at),
      frame('a', at + 100),
      ...events,
      frame('z', at + 3_100),
    ];
    // The relay sends `opened` with the time of the last event of the client, and no gap.
    const seamless = seconds(
      frame('b', at + 1_100),
      lostAt(1_500),
      reconnecting(at + 1_500, 10),
      opened(at + 1_100),
      frame('c', at + 1_300),
    );
    expect((await windowsOf(seamless)).map((window) => (window as { complete: boolean }).complete)).toEqual([
      true,
      true,
      true,
      false,
    ]);
    const behind = seconds(frame('b', at + 1_100), lostAt(1_500), reconnecting(at + 1_500, 10), opened(at + 1_900), {
      ...gapOf(at + 1_100, at + 1_900),
      missed: 3,
    });
    expect((await windowsOf(behind)).map((window) => (window as { complete: boolean }).complete)).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });

  it.each([
    ['has the missed frames', 1_000, 0],
    ['does not have them', 5, 1],
  ])('a window has a gap only where the relay %s', async (_what, capacity, gaps) => {
    const { source, relay, web } = await serveRelay({ capacity });
    const receiver = receive(web.url);
    await waitFor(() => relay.status().clients.length === 1);
    const at = Date.now() - 5_000;
    source.emit(opened(at), frame('a', at));
    await receiver.until(({ texts }) => texts.length === 1);
    web.reset();
    source.emit(...range(1, 20).map((n) => frame(n, at + n)));
    await receiver.until(({ texts }) => texts.includes('20') || relay.status().clients[0]?.missed === 20);
    source.emit(frame('z', at + 30));
    await receiver.until(({ texts }) => texts.includes('z'));
    expect(receiver.types).toContain('relay-lost');
    const windows = await firstValueFrom(
      from(receiver.events).pipe(tumblingWindow({ lengthMs: 86_400_000 }), toArray()),
    );
    expect(windows.flatMap((window) => window.gaps)).toHaveLength(gaps);
  });

  it('a new client has the status in each state of the feed', async () => {
    const at = Date.now();
    const failedOnce = [opened(at), disconnected(at + 1), reconnecting(at + 1, 60_000)];
    const again = {
      ...disconnected(at + 3),
      failure: createTradeFeedError({ stage: 'ticket', status: 503, endedAt: at + 3 }),
    };
    for (const events of [
      [requested(at)],
      [opened(at)],
      failedOnce,
      [...failedOnce, requested(at + 2), again, reconnecting(at + 3, 50, 2)],
    ]) {
      const { source, relay, web } = await serveRelay();
      receive(web.url);
      await waitFor(() => relay.status().clients.length === 1);
      source.emit(...events);
      const newcomer = receive(web.url);
      await newcomer.until(({ lifecycle }) => lifecycle.at(-1)?.type === events.at(-1)!.type);
      const { since: _since, ...expected } = JSON.parse(JSON.stringify(await statusOf(events.map(publicEvent)))) as {
        since: number;
      };
      expect(JSON.parse(JSON.stringify(await statusOf(newcomer.events)))).toMatchObject(expected);
    }
  });

  it('completes with a source that completes before the first client', async () => {
    const relay = createRelay(of(frame('a'), frame('b')), { batchMs: 0 });
    const web = await Web.start(relayHandler(relay, { authorize: () => true }));
    closing.push(
      () => web[Symbol.asyncDispose](),
      () => relay.close(),
    );
    expect((await receive(web.url).over()).texts).toEqual(['a', 'b']);
  });
});
