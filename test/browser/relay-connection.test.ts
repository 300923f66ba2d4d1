import { describe, expect, it } from '@jest/globals';
import { createServerSentEventReader, eventsOf, readHello } from '../../src/browser/relay-stream.js';
import { timeOf } from '../../src/operators/items/item.js';
import { type ConnectionEnd, relayConnection$ } from '../../src/browser/relay-connection.js';
import type { RelayFeedOptions } from '../../src/browser/index.js';
import type { Received } from '../../src/protocol/event-line.js';
import { resolveRelayFeed } from '../../src/browser/relay-feed-options.js';
import { ResumePoint } from '../../src/browser/resume-point.js';
import { lost, opened } from '../operators/stream.js';
import { Clock, isFrame } from '../relay/support.js';
import { atEnd, connectAgain, ended, frameLineOf, hello, message, serve, silence, status } from './support.js';
import { type Step, stream, withoutNetwork } from './support.js';
import { waitFor } from '../support/wait-for.js';
import { copyFailure, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { relayError } from '../../src/browser/relay-error.js';
import { inspect } from 'node:util';
import { lastValueFrom, type Observable, of, reduce } from 'rxjs';
import { relayRequest$ } from '../../src/browser/relay-request.js';

const line = frameLineOf;

/** Opens one connection, on a virtual clock. */
const connect = async (step: Step, options: RelayFeedOptions = {}) => {
  const server = await serve(step);
  const clock = new Clock(Date.now());
  const settings = resolveRelayFeed(server.url, { ...options, scheduler: clock.scheduler });
  const point = new ResumePoint(settings);
  const events: Received[] = [];
  const seen: { error?: TradeFeedError; ended?: ConnectionEnd; isComplete?: true } = {};
  const subscription = relayConnection$(settings, point).subscribe({
    next: (event) => events.push(event),
    error: (ended: ConnectionEnd) => Object.assign(seen, { ended, error: ended.failure }),
    complete: () => (seen.isComplete = true),
  });
  atEnd(() => subscription.unsubscribe());
  const over = async () => {
    await waitFor(() => seen.error !== undefined || seen.isComplete === true);
    return seen;
  };
  const texts = () => events.filter(isFrame).map((each) => each.text());
  return { server, clock, point, events, seen, over, texts, subscription };
};

it('a message before `hello` is not of a relay', async () => {
  const { over } = await connect(ended(message('le-0.1.1.1', line('a'))));
  expect((await over()).error).toMatchObject({ code: 'invalid-relay', verdict: 'stop' });
});

it('the other tabs read the past of a relay with the same times as the tab that received it', async () => {
  const at = Date.now() - 60_000;
  const past = stream(hello() + message('le-0.2.1.1', opened(at), line('a', at + 1)));
  const { point, events } = await connect(past);
  point.ownAt = at + 60_000;
  let shared: readonly Received[] = [];
  point.watcher = {
    event: () => undefined,
    message: (_from, lines) => (shared = [...shared, ...eventsOf(lines, 0, point.ownAt)]),
  };
  await waitFor(() => shared.length > 0);
  expect(shared.map(timeOf)).toEqual([at + 1, at + 1]);
  expect(events.map(timeOf)).toEqual([at + 1, at + 1]);
});

/** Writes the parts one after the other, each at a call of `next`. */
const parts = (...texts: readonly string[]) => {
  let response: Parameters<Step>[0] | undefined;
  const step: Step = (target) => {
    response = target;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  };
  let n = 0;
  return { step, next: () => response!.write(texts[n++]), isRequested: () => response !== undefined };
};

describe('relayConnection$', () => {
  it('completes at the message `complete`, and reads nothing after it', async () => {
    const { seen, over, texts } = await connect(
      stream(`${hello()}event: complete\nid: le-0.0.0.1\ndata: {}\n\n${message('le-0.9.9.9', line('never'))}`),
    );
    await over();
    expect([seen, texts()]).toEqual([{ isComplete: true }, []]);
  });

  it.each<[string, boolean, readonly string[]]>([
    ['a feed that was not opened', false, []],
    ['a feed that was opened', true, [message('le-0.1.0.1', opened(5))]],
  ])('errors with the failure of `connect-again`, and reads nothing after it: %s', async (_what, hasOpened, before) => {
    const failure = copyFailure(lost(5, { closeCode: 4001, reason: 'connection replaced', uptimeMs: 9 }), {
      previous: lost(3),
    });
    const { server, over, texts, point } = await connect(
      stream(`${hello()}${before.join('')}${connectAgain(failure)}${message('le-0.9.9.9', line('never'))}`),
    );
    const { ended } = await over();
    expect(ended).toMatchObject({ isOfFeed: true, hasOpened });
    expect(ended!.failure.toJSON()).toEqual({
      ...(JSON.parse(JSON.stringify(failure)) as object),
      previous: ended!.failure.previous,
      uptimeMs: 0,
      framesReceived: 0,
    });
    expect(ended!.failure.previous).toMatchObject({ code: 'connection-lost', endedAt: 3 });
    expect([texts(), point.id]).toEqual([[], 'le-0.0.0.1']);
    await waitFor(() => server.responses[0]!.destroyed);
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['no JSON', 'garbage'],
    ['no failure', '{}'],
    ['a failure of an unknown verdict', JSON.stringify({ ...lost(5).toJSON(), verdict: 'hope' })],
  ])('errors with invalid-relay-data for a `connect-again` with %s', async (_what, data) => {
    const { over } = await connect(stream(`${hello()}event: connect-again\nid: le-0.0.0.1\ndata: ${data}\n\n`));
    expect((await over()).error).toMatchObject({ code: 'invalid-relay-data', verdict: 'backoff' });
  });

  it('reads the reason of a relay without a feed from a 503 with `connect-again` alone', async () => {
    const { over } = await connect(status(503, { 'content-type': 'text/event-stream' }, connectAgain(lost(5))));
    expect((await over()).ended).toMatchObject({ isOfFeed: true, failure: { code: 'connection-lost' } });
  });

  it.each<[string, Step, string]>([
    ['ends the stream after an event', ended(hello() + message('le-0.1.1.1', line('a'))), 'relay-lost'],
    [
      'ends the stream within a message',
      ended(`${hello()}${message('le-0.1.1.1', line('a'))}id: le-0.2.2.2\ndata: {"ty`),
      'relay-lost',
    ],
    ['ends the stream at once', ended(''), 'relay-unreachable'],
    [
      'sends a line that is not JSON',
      stream(hello() + message('le-0.1.1.1', line('a')) + message('le-0.2.2.2', 'garbage')),
      'invalid-relay-data',
    ],
    ['sends half of its first message', ended('event: hello\ndata: {'), 'relay-unreachable'],
  ])('errors when the relay %s', async (_how, step, code) => {
    const { over, texts, point } = await connect(step);
    const { error } = await over();
    expect(error).toMatchObject({ code, framesReceived: texts().length });
    if (texts().length > 0) expect(point.id).toBe('le-0.1.1.1');
  });

  it('errors when the connection is reset within a message, after the events of whole messages', async () => {
    const { server, over, texts, point } = await connect(
      stream(`${hello()}${message('le-0.1.1.1', line('a'))}data: {`),
    );
    await waitFor(() => texts().length === 1);
    server.reset();
    expect((await over()).error).toMatchObject({ code: 'relay-lost', framesReceived: 1, cause: expect.anything() });
    expect(point.id).toBe('le-0.1.1.1');
  });

  it('ignores messages and events of an unknown type', async () => {
    const more = `event: new\nid: le-0.1.0.1\ndata: whatever\n\n${message('le-0.2.0.1', '{"type":"new","at":5}', line('a'))}`;
    const { over, texts, point } = await connect(ended(hello() + more));
    expect((await over()).error).toMatchObject({ code: 'relay-lost' });
    expect([texts(), point.id]).toEqual([['a'], 'le-0.2.0.1']);
  });

  it.each<[string, Step, RelayFeedOptions, number]>([
    ['does not answer within 10 s', silence, {}, 10_000],
    ['does not answer within connectTimeoutMs', silence, { connectTimeoutMs: 700 }, 700],
    ['sends no hello within 10 s', stream(''), {}, 10_000],
    [
      'sends no hello within connectTimeoutMs, which is longer than idleTimeoutMs',
      stream(': heartbeat\n\n'),
      { connectTimeoutMs: 700, idleTimeoutMs: 800 },
      700,
    ],
  ])('errors when the relay %s', async (_what, step, options, ms) => {
    const { server, clock, seen, over } = await connect(step, options);
    await waitFor(() => server.requests.length === 1);
    clock.pass(ms - 1);
    expect(seen).toEqual({});
    clock.pass(1);
    const { error } = await over();
    expect(error).toMatchObject({ code: 'relay-unreachable', stage: 'handshake' });
    // The usual cause: everything works, except that nothing arrives.
    expect(String(error)).toMatch(/no proxy in between buffers the answer/);
    await waitFor(() => server.responses[0]!.destroyed);
  });

  it.each<[string, RelayFeedOptions, number]>([
    ['10 s', {}, 10_000],
    ['connectTimeoutMs', { connectTimeoutMs: 700 }, 700],
    ['connectTimeoutMs, which is longer than idleTimeoutMs', { connectTimeoutMs: 700, idleTimeoutMs: 300 }, 700],
  ])('errors when your headers do not resolve within %s', async (_what, options, ms) => {
    const { server, clock, seen, over } = await connect(silence, { ...options, headers: () => new Promise(() => 0) });
    clock.pass(ms - 1);
    expect(seen).toEqual({});
    clock.pass(1);
    expect((await over()).error).toMatchObject({
      ...{ code: 'relay-headers-failed', stage: 'handshake', verdict: 'backoff' },
      cause: { name: 'TimeoutError' },
    });
    expect([server.requests, clock.scheduler.actions]).toEqual([[], []]);
  });

  it('errors when the relay is silent, with the time of the last bytes as the end', async () => {
    const { step, next } = parts(hello(), message('le-0.1.1.1', line('a')));
    const { server, clock, seen, over, texts, point } = await connect(step, { idleTimeoutMs: 1_000 });
    await waitFor(() => server.requests.length === 1);
    next();
    await waitFor(() => point.id !== undefined);
    clock.pass(900);
    next();
    await waitFor(() => texts().length === 1);
    const lastBytesAt = clock.now;
    clock.pass(999);
    expect(seen).toEqual({});
    clock.pass(1);
    expect((await over()).error).toMatchObject({
      code: 'relay-stalled',
      endedAt: lastBytesAt,
      uptimeMs: 900,
      framesReceived: 1,
    });
    await waitFor(() => server.responses[0]!.destroyed);
  });

  it('stays connected while only heartbeats arrive, and has an uptime of 0 without one', async () => {
    const { write } = withoutNetwork();
    const { clock, seen, texts } = await connect(silence, { idleTimeoutMs: 1_000 });
    await write(hello());
    for (let n = 0; n < 6; n += 1) {
      clock.pass(900);
      await write(': heartbeat\n\n');
    }
    clock.pass(900);
    await write(message('le-0.1.1.1', line('a')));
    expect([seen, texts()]).toEqual([{}, ['a']]);
    clock.pass(1_000);
    expect(seen.error).toMatchObject({ code: 'relay-stalled', uptimeMs: 6_300 });
    const silent = await connect(silence, { idleTimeoutMs: 1_000 });
    await write(hello());
    silent.clock.pass(1_000);
    expect(silent.seen.error).toMatchObject({ code: 'relay-stalled', uptimeMs: 0 });
  });
});

describe('relayRequest$', () => {
  const request$ = (url: string, options?: RelayFeedOptions, lastEventId?: string): Observable<Uint8Array> =>
    relayRequest$(resolveRelayFeed(url, options), lastEventId);

  /** Answers 503 with JSON. */
  const refusal = (body: unknown, headers: Record<string, string | undefined> = {}): Step => {
    const text = JSON.stringify(body);
    const all = { 'content-type': 'application/json', 'content-length': String(text.length), ...headers };
    return status(503, JSON.parse(JSON.stringify(all)) as Record<string, string>, text);
  };

  const mine = relayError({ status: 401 });

  const textOf = (bytes$: Observable<Uint8Array>): Promise<string> =>
    lastValueFrom(bytes$.pipe(reduce((text, bytes) => text + Buffer.from(bytes).toString(), '')));

  const failureOf = (bytes$: Observable<unknown>): Promise<TradeFeedError> =>
    lastValueFrom(bytes$, { defaultValue: undefined }).then(
      () => Promise.reject(new Error('no failure')),
      (failure: unknown) => failure as TradeFeedError,
    );

  it('sends the headers of Server-Sent Events and the last id, and emits the bytes', async () => {
    const { url, requests } = await serve(ended('data: a\n\n'));
    expect(await textOf(request$(url))).toBe('data: a\n\n');
    await textOf(request$(url, {}, 'le-0.5.4.3'));
    expect(requests[0]).toMatchObject({ method: 'GET', url: '/feed' });
    expect(requests[0]!.headers).toMatchObject({ accept: 'text/event-stream', 'cache-control': 'no-cache' });
    expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'le-0.5.4.3']);
  });

  it.each<[string, unknown, () => Promise<never>]>([
    [
      'throw',
      new Error('no token'),
      () => {
        throw new Error('no token');
      },
    ],
    ['reject', new Error('no token'), () => Promise.reject(new Error('no token'))],
    ['reject with a failure of a relay', mine, () => Promise.reject(mine)],
  ])('errors with relay-headers-failed when your headers %s, without a request', async (_how, cause, headers) => {
    const { url, requests } = await serve(ended(''));
    expect(await failureOf(request$(url, { headers }))).toMatchObject({
      ...{ code: 'relay-headers-failed', stage: 'handshake', verdict: 'backoff' },
      cause,
    });
    expect(requests).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['a name with a blank', { 'a b': 'secret-6' }],
    ['an empty name', { '': 'secret-6' }],
    ['a line break in a value', { authorization: 'secret\n-6' }],
    ['a zero byte in a value', { authorization: 'secret-6\0' }],
    ['a value beyond Latin-1', { authorization: 'secret-6 \u0100' }],
    ['no object', 'secret-6'],
    ['null', null],
  ])('errors with relay-headers-failed when your function returns %s, and does not show it', async (_what, result) => {
    const { url, requests } = await serve(ended(''));
    const failure = await failureOf(request$(url, { headers: () => result as Record<string, string> }));
    expect(failure).toMatchObject({ code: 'relay-headers-failed', cause: { name: 'TypeError' } });
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toMatch(/secret(\n|\\n)?-6/);
    expect(requests).toEqual([]);
  });

  it('makes an Angular service worker bypass requests of the same origin only', async () => {
    const [same, other] = [await serve(ended('')), await serve(ended(''))];
    await textOf(request$(same.url));
    const { origin } = new URL(same.url);
    Object.assign(globalThis, { location: { href: `${origin}/some/page`, origin } });
    atEnd(() => Reflect.deleteProperty(globalThis, 'location'));
    await textOf(request$(same.url, { headers: { 'ngsw-bypass': 'mine' } }));
    await textOf(request$('/feed'));
    await textOf(request$(other.url));
    expect(same.requests.map(({ headers }) => headers['ngsw-bypass'])).toEqual([undefined, 'true', 'true']);
    expect(other.requests.map(({ headers }) => headers['ngsw-bypass'])).toEqual([undefined]);
  });

  it.each<[string, Step, object]>([
    ['401', status(401), { code: 'relay-refused', verdict: 'stop', status: 401 }],
    ['403', status(403), { code: 'relay-refused', verdict: 'stop', status: 403 }],
    ['503', status(503), { code: 'relay-full', verdict: 'backoff', status: 503 }],
    [
      '503 of a slow authorization',
      refusal({ error: { status: 503, code: 'relay-authorize-timeout' } }, { 'retry-after': '5' }),
      { code: 'relay-authorize-timeout', verdict: 'backoff', status: 503, retryAfterMs: 5_000 },
    ],
    ['503 of NestJS with a code', refusal({ statusCode: 503, code: 'relay-authorize-timeout' }), { status: 503 }],
    ['503 with another code', refusal({ code: 'connection-replaced' }), { code: 'relay-full' }],
    ['503 with JSON that is no object', refusal(null), { code: 'relay-full' }],
    [
      '503 with JSON that is not JSON',
      status(503, { 'content-type': 'application/json', 'content-length': '1' }),
      { code: 'relay-full' },
    ],
    ['503 with JSON that is too long', refusal('x'.repeat(1_000)), { code: 'relay-full' }],
    ['503 with JSON of unknown length', refusal({}, { 'content-length': undefined }), { code: 'relay-full' }],
    ['503 with a wait', status(503, { 'retry-after': '7' }), { code: 'relay-full', retryAfterMs: 7_000 }],
    ['503 with a fraction', status(503, { 'retry-after': '2.5' }), { code: 'relay-full', retryAfterMs: 3_000 }],
    ['503 with a date', status(503, { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }), { code: 'relay-full' }],
    ['429', status(429, { 'retry-after': '2' }), { code: 'relay-failed', verdict: 'backoff', retryAfterMs: 2_000 }],
    ['408', status(408), { code: 'relay-failed', verdict: 'backoff', status: 408 }],
    ['500', status(500), { code: 'relay-failed', verdict: 'backoff', status: 500 }],
    ['404', status(404), { code: 'invalid-relay', verdict: 'stop', status: 404 }],
    ['400', status(400), { code: 'invalid-relay', verdict: 'stop' }],
    ['204', status(204, {}, ''), { code: 'invalid-relay', verdict: 'stop' }],
    ['304', status(304, {}, ''), { code: 'invalid-relay', verdict: 'stop' }],
    [
      'a page',
      status(200, { 'content-type': 'text/html' }, '<!doctype html>'),
      { code: 'invalid-relay', verdict: 'stop' },
    ],
    ['JSON', status(200, { 'content-type': 'application/json' }, '{}'), { code: 'invalid-relay', verdict: 'stop' }],
    ['no content type', status(200, {}, 'data: x\n\n'), { code: 'invalid-relay', verdict: 'stop' }],
  ])('errors for an answer that is not a stream: %s', async (_what, step, failure) => {
    const { url } = await serve(step);
    const error = await failureOf(request$(url));
    expect(error).toMatchObject({ stage: 'handshake', uptimeMs: 0, ...failure });
    if (!('retryAfterMs' in failure)) expect(error.retryAfterMs).toBeUndefined();
  });

  it.each<[string, number, string]>([
    ['a refusal', 401, 'text/plain'],
    ['a page', 200, 'text/html'],
  ])('cancels the body of %s that does not end', async (_what, code, type) => {
    const { url, responses } = await serve((response) => {
      response.writeHead(code, { 'content-type': type }).write('x'.repeat(100_000));
    });
    await failureOf(request$(url));
    await waitFor(() => responses[0]!.destroyed);
  });

  it('sends no request when it is unsubscribed while it waits for your headers', async () => {
    const web = await serve(ended(''));
    let answer: (headers: Record<string, string>) => void = () => undefined;
    const headers = () => new Promise<Record<string, string>>((resolve) => (answer = resolve));
    const subscription = request$(web.url, { headers }).subscribe();
    subscription.unsubscribe();
    answer({});
    await lastValueFrom(of(1));
    await new Promise((resolve) => setImmediate(resolve));
    expect(web.requests).toEqual([]);
  });
});

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('createServerSentEventReader', () => {
  it('reads each event as soon as it is complete, for any split of the bytes', () => {
    const whole = bytes(
      '\ufeffevent: hello\nid: le-0.1\ndata: ä😀\n\n: heartbeat\n\nunknown: 5\ndata\ndata: ü\n\n: next\n',
    );
    const events = [
      { event: 'hello', id: 'le-0.1', data: 'ä😀' },
      { event: undefined, id: undefined, data: '\nü' },
    ];
    for (let place = 0; place < whole.length; place += 1) {
      const read = createServerSentEventReader();
      expect([whole.subarray(0, place), whole.subarray(place)].flatMap(read)).toEqual(events);
    }
    const read = createServerSentEventReader();
    expect([read(bytes('data: a\n')), read(bytes('\ndata: b\n\ndata')).length]).toEqual([[], 2]);
  });

  it.each([
    ['in one line', 'x'.repeat(2 ** 20)],
    ['in many lines', `data: ${'x'.repeat(2 ** 20)}\n`],
  ])('stops reading a message that never ends after 64 Mi characters: %s', (_how, text) => {
    const reader = createServerSentEventReader();
    reader(bytes('data: '));
    const part = bytes(text);
    for (let n = 0; n < 63; n += 1) expect(reader(part)).toEqual([]);
    expect(() => [reader(part), reader(part)]).toThrow('exceeded');
    expect(() => reader(part)).toThrow('terminated');
  });
});

it('readHello reads the clock of the relay', () => expect(readHello('{"at":5,"more":1}')).toBe(5));

it.each(['garbage', '{}', '{"at":"5"}', 'null'])('readHello throws for an invalid message: %s', (text) => {
  expect(() => readHello(text)).toThrow();
});
