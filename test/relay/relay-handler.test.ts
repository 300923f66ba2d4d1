/** @lane clock */
import { describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest, type RequestListener } from 'node:http';
import { type ClientHttp2Stream, connect, constants, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { filter, NEVER, Subject, throwError } from 'rxjs';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { type AllowedOrigins, checkCors } from '../../src/relay/http.js';
import {
  type Authorize,
  createRelay,
  type Relay,
  type RelayActivity,
  relayHandler,
  type RelayHandlerOptions,
  type RelayMessage,
  type RelayOptions,
  type RelayRefusal,
  type RelayTopic,
} from '../../src/relay/index.js';
import { refusals } from '../../src/relay/refusals.js';
import { atEnd } from '../browser/support.js';
import { lost } from '../operators/stream.js';
import { fakeTimers } from '../support/fake-timers.js';
import { waitFor } from '../support/wait-for.js';
import { Raw, Source, Web } from './support.js';

const app = 'https://app.example.com';
const evil = 'https://evil.example';
const open = { authorize: () => true };
const pending: Authorize = () => new Promise(() => 0);
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Starts a relay on loopback. */
const serve = async (
  options: RelayHandlerOptions = open,
  relayOptions: RelayOptions = {},
  around: (feed: RequestListener) => RequestListener = (feed) => feed,
) => {
  const source = new Source();
  const relay = createRelay(source.events$, { batchMs: 0, lingerMs: 0, ...relayOptions });
  const reports: RelayActivity[] = [];
  relay.events$.subscribe((event) => reports.push(event));
  const web = await Web.start(around(relayHandler(relay, options)));
  atEnd(
    () => web[Symbol.asyncDispose](),
    () => relay.close(),
  );
  return { source, relay, reports, web, port: web.port };
};

/** Sends one request, and reads the answer, or the first part of a stream. */
const ask = async (port: number, headers: Readonly<Record<string, string | string[]>> = {}, method = 'GET') => {
  const request = httpRequest({ host: '127.0.0.1', port, path: '/feed', method, headers, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.setEncoding('utf8');
  const isStream = response.headers['content-type']?.startsWith('text/event-stream') === true;
  let body = '';
  if (isStream) [body] = (await once(response, 'data')) as [string];
  else for await (const part of response) body += String(part);
  atEnd(() => response.destroy());
  const { statusCode: status, headers: answer } = response;
  return { status, headers: answer, retryAfter: answer['retry-after'], body };
};

const openStream = async (port: number, headers?: Readonly<Record<string, string>>): Promise<Raw> => {
  const raw = await Raw.get(port, headers);
  atEnd(() => raw.socket.destroy());
  await raw.until((text) => text.includes('event: hello'));
  return raw;
};

const lastIdIn = (text: string): string => /.*\nid: (\S+)/s.exec(text)![1]!;

/** An `authorize` that the test resolves call by call. */
const decided = () => {
  const waiting: { resolve: (answer: unknown) => void; reject: (error: unknown) => void }[] = [];
  const authorize = () => new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  return { waiting, authorize: authorize as unknown as Authorize };
};

it.each<[string, unknown, string]>([
  ['nothing', undefined, 'options'],
  ['no authorize', {}, 'authorize'],
  ['undefined as authorize', { authorize: undefined }, 'authorize'],
  ['true as authorize', { authorize: true }, 'authorize'],
  ['an unknown option', { ...open, cors: '*' }, 'cors'],
  ['an origin with a path', { ...open, allowOrigins: [`${app}/`] }, 'allowOrigins'],
  ['no origin', { ...open, allowOrigins: ['app.example.com'] }, 'allowOrigins'],
  ['null as an origin', { ...open, allowOrigins: ['null'] }, 'allowOrigins'],
  ['a star in a list', { ...open, allowOrigins: ['*'] }, 'allowOrigins'],
  ['a star in an origin', { ...open, allowOrigins: ['https://*.example.com/'] }, 'allowOrigins'],
  ['a text', { ...open, allowOrigins: app }, 'allowOrigins'],
  ['a number', { ...open, allowOrigins: [1] }, 'allowOrigins'],
  ['an operator as select', { ...open, select: {} }, 'select'],
  ...[0, -1, NaN, '5'].map((ms): [string, unknown, string] => [
    `a timeout of ${ms}`,
    { ...open, authorizeTimeoutMs: ms },
    'authorizeTimeoutMs',
  ]),
])('relayHandler refuses %s at once, and names the option', (_what, options, name) => {
  const make = () => relayHandler(createRelay(NEVER), options as RelayHandlerOptions);
  expect(make).toThrow(TradeFeedError);
  expect(make).toThrow(name);
});

describe('relayHandler: a request that is answered without calling authorize', () => {
  // Browsers send no credentials with a preflight.
  it.each<[string, string | undefined, AllowedOrigins, number]>([
    ['POST', undefined, [], 405],
    ['HEAD', undefined, [], 405],
    ['POST', app, '*', 405],
    ['GET', evil, [app], 403],
    ['POST', evil, [app], 403],
    ['OPTIONS', evil, [app], 403],
    ['OPTIONS', app, [app], 204],
    ['OPTIONS', app, '*', 204],
  ])(
    '%s of the origin %s, allowed %j: %d, readable for allowed pages',
    async (method, origin, allowOrigins, status) => {
      const authorize = jest.fn(() => true);
      const { port, source } = await serve({ authorize, allowOrigins });
      const { headers, ...answer } = await ask(port, origin ? { origin } : {}, method);
      expect([answer.status, authorize.mock.calls, source.subscriptions]).toEqual([status, [], 0]);
      expect(headers.allow).toBe(status === 405 ? 'GET, OPTIONS' : undefined);
      const readable = allowOrigins === '*' ? '*' : origin;
      expect(headers['access-control-allow-origin']).toBe(status === 403 ? undefined : readable);
    },
  );

  it('takes no slot when it is pipelined: all requests but the first are answered with 400', async () => {
    const authorize = jest.fn(() => true);
    const { port, relay, web } = await serve({ authorize });
    const raw = await Raw.open(port, 'GET /feed HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_000));
    atEnd(() => raw.socket.destroy());
    await raw.until((text) => text.includes('event: hello'));
    await waitFor(() => web.requests.length > 100);
    const { clients, authorizing } = relay.status();
    expect([authorize.mock.calls.length, clients.length, authorizing]).toEqual([1, 1, 0]);
    expect(web.responses.slice(1).every(({ statusCode }) => statusCode === 400)).toBe(true);
  });

  it('takes no slot when its connection has ended before the handler is called', async () => {
    let called = false;
    const { port, relay, source, web } = await serve(open, {}, (feed) => (request, response) => {
      response.once('close', () => {
        feed(request, response);
        called = true;
      });
    });
    const raw = await Raw.get(port);
    await waitFor(() => web.responses.length === 1);
    raw.socket.destroy();
    await waitFor(() => called);
    expect(relay.status().authorizing).toBe(0);
    await nextTurn();
    expect([relay.status().authorizing, relay.status().clients, source.subscriptions]).toEqual([0, [], 0]);
  });
});

describe('relayHandler: authorize and select', () => {
  it.each<[string, unknown, number]>([
    ['true', true, 200],
    ['true, later', Promise.resolve(true), 200],
    ['a user', { id: 'u1' }, 200],
    ['a user with more fields, later', Promise.resolve({ id: 'u1', name: 'x' }), 200],
    ['a user whose id is the number 0', { id: 0 }, 200],
    ['false', false, 403],
    ['false, later', Promise.resolve(false), 403],
    ['undefined', undefined, 403],
    ['null', null, 403],
  ])('answers an authorize whose result is %s', async (_what, result, status) => {
    const select = jest.fn(() => undefined);
    const { port, relay, reports, source } = await serve({
      ...{ authorize: () => result as boolean, select, allowOrigins: [app] },
    });
    const { body, headers, ...answer } = await ask(port, { origin: app });
    const streams = status === 200 ? 1 : 0;
    expect([answer.status, source.subscriptions, select.mock.calls.length]).toEqual([status, streams, streams]);
    expect(headers['access-control-allow-origin']).toBe(app);
    expect(relay.status().authorizing).toBe(0);
    expect(reports.filter(({ type }) => type === 'client-failed')).toEqual([]);
    if (status === 200) {
      const { id } = Object(await result) as { id?: string | number };
      expect(relay.status().clients.map(({ user }) => user)).toEqual([id?.toString()]);
      if (id !== undefined) expect([relay.disconnect(id), relay.disconnect(String(id))]).toEqual([1, 0]);
      return;
    }
    expect(relay.status().clients).toEqual([]);
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
    expect(JSON.parse(body)).toEqual({ error: { status, code: 'relay-refused', message: expect.any(String) } });
  });

  const fail = (): never => {
    throw new Error('private');
  };
  const withId = (id: unknown) => ({ authorize: () => ({ id }) as { id: string } });
  const returning = (answer: unknown) => ({ authorize: () => answer as boolean });
  const selecting = (topic: unknown) => ({ select: () => topic as RelayTopic });

  it.each<[string, Partial<RelayHandlerOptions>, string]>([
    ['authorize throws', { authorize: fail }, 'private'],
    ['authorize rejects', { authorize: () => Promise.reject(new Error('private')) }, 'private'],
    ['reading the id throws', { authorize: () => Object.defineProperty({ id: '' }, 'id', { get: fail }) }, 'private'],
    ['the id is empty', withId(''), 'returned an object whose `id` is an empty text. Return true'],
    ['the id is empty, later', returning(Promise.resolve({ id: '' })), 'an object whose `id` is an empty text. Return'],
    ['the id is not finite', withId(NaN), 'an object whose `id` is NaN. Return true'],
    ['the id is a String object', withId(new String('u-7')), 'an object whose `id` is of the type object. Return true'],
    ['the id is true', withId(true), 'an object whose `id` is of the type boolean. Return true'],
    ['the id is null', withId(null), 'an object whose `id` is of the type null. Return true'],
    ['there is no id', returning({}), 'an object whose `id` is missing. Return true'],
    ['authorize returns an array', returning(['u-7']), 'an object whose `id` is missing. Return true'],
    ['authorize returns a text', returning('u-7'), 'returned a string. Return true'],
    ['select throws', { select: fail }, 'private'],
    ['select returns a text', selecting('u-7'), '`select` returned string'],
    ['select returns null', selecting(null), '`select` returned object'],
    ['select returns a promise', selecting(Promise.resolve(filter(Boolean))), '`select` returned object'],
    ['sinceMs throws', { sinceMs: fail }, 'private'],
    ['sinceMs returns a text', { sinceMs: () => '1h' as unknown as number }, '`sinceMs` returned string'],
  ])(
    'answers 500 when %s; only the events and one warning of the process have the reason',
    async (_what, options, reason) => {
      const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
      atEnd(() => emitWarning.mockRestore());
      const { port, relay, reports, source } = await serve({ ...open, ...options });
      const [{ status, body }] = [await ask(port), await ask(port)];
      const error = {
        status: 500,
        code: 'relay-failed',
        message: expect.stringMatching(/^(?:Auth|Sel)\w+ failed: /),
      };
      expect([status, JSON.parse(body)]).toEqual([500, { error }]);
      const failed = { type: 'client-failed', error: { message: expect.stringContaining(reason) } };
      expect(reports).toMatchObject([failed, failed]);
      const warning = { type: 'TradeFeedWarning', code: 'relay-failed' };
      expect(emitWarning.mock.calls).toEqual([[expect.stringContaining(reason), warning]]);
      expect(body).not.toContain('private');
      expect(`${body}${JSON.stringify(emitWarning.mock.calls)}`).not.toContain('u-7');
      expect([relay.status(), source.subscriptions]).toMatchObject([{ clients: [], authorizing: 0, topics: 0 }, 0]);
    },
  );
});

describe('relayHandler: a refusal for now', () => {
  const user = { id: 'ann-7' };
  const closes = (relay: Relay): boolean => {
    relay.close();
    return true;
  };

  it.each<[RelayRefusal, RelayOptions, (relay: Relay) => ReturnType<Authorize>]>([
    ['full', { maxClients: 1 }, () => true],
    ['topics', { maxTopics: 1 }, () => true],
    ['user', { maxClientsPerUser: 1 }, () => user],
    ['session-ended', {}, (relay) => relay.disconnect('ann-7') === 1 && user],
    ['closed', {}, closes],
    ['authorize-timeout', {}, () => new Promise(() => 0)],
  ])(
    'is 503 with Retry-After, which allowed pages can read, and frees its slot: %s',
    async (reason, relayOptions, second) => {
      const select = () => filter<RelayedEvent>(() => true);
      const authorize: Authorize = ({ headers }) => (headers['x-second'] ? second(served.relay) : user);
      const served = await serve(
        { ...{ authorize, select, authorizeTimeoutMs: 20, allowOrigins: [app] } },
        { ...relayOptions },
      );
      await openStream(served.port);
      const { status, headers, retryAfter, body } = await ask(served.port, { origin: app, 'x-second': '1' });
      expect([status, retryAfter]).toEqual([503, reason === 'closed' ? '1' : '5']);
      expect(headers).toMatchObject({
        'access-control-allow-origin': app,
        'access-control-expose-headers': 'Retry-After',
      });
      const code = reason === 'authorize-timeout' ? reason : 'full';
      const { message } = refusals[reason];
      expect(JSON.parse(body)).toEqual({ error: { status, code: `relay-${code}`, message } });
      const refused = served.reports.filter(({ type }) => type === 'client-refused');
      expect(refused).toEqual([{ type: 'client-refused', at: expect.any(Number), reason }]);
      expect([served.relay.status().authorizing, body.includes('ann-7')]).toEqual([0, false]);
    },
  );
});

describe('relayHandler: the stream', () => {
  it('has headers against caches, compression and buffering proxies', async () => {
    const { port } = await serve(open, {}, (feed) => (request, response) => {
      response.setHeader('x-frame-options', 'DENY');
      feed(request, response);
    });
    const { status, headers, body } = await ask(port);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      // Set by a middleware.
      'x-frame-options': 'DENY',
    });
    for (const name of ['content-encoding', 'transfer-encoding']) expect(headers).not.toHaveProperty(name);
    expect(body).toMatch(/^event: hello\ndata: \{"at":\d+\}\nid: l_[\da-f]{12}-0\.0\.0\.\d+\n\n$/);
  });

  it.each<[string, string[]]>([
    ['one', ['l_x-0.1.1.1']],
    ['a hostile one', ['l_x-0.1.1.1%0d%0aset-cookie: a=b']],
    ['a huge one', ['9'.repeat(8_000)]],
    ['two', ['l_x-0.1.1.1', 'l_y-0.1.1.1']],
    ['none', []],
  ])('accepts any Last-Event-ID: %s', async (_what, ids) => {
    const { port, reports } = await serve();
    const { status, body, headers } = await ask(port, ids.length ? { 'last-event-id': ids } : {});
    expect([status, headers['set-cookie']]).toEqual([200, undefined]);
    expect(body).toContain('event: hello\n');
    expect(reports[0]).toMatchObject({ joined: ids.join() === 'l_x-0.1.1.1' ? 'behind' : 'new' });
  });

  it('has one gap if its client does not read, in bounded memory, and delays no other client', async () => {
    const { port, source, relay } = await serve(open, { capacity: 10 });
    const [stuck, reader] = [await openStream(port), await openStream(port)];
    stuck.socket.pause();
    // 24 MB in all: more than the socket buffers of the kernel.
    for (let n = 1; n <= 240; n += 1) {
      source.frames(`<${n}>`.padEnd(100_000));
      await reader.until((text) => text.includes(`<${n}>`));
      reader.text = '';
    }
    expect(relay.status()).toMatchObject({ stored: { events: 10 }, clients: [{}, { sent: 240, missed: 0 }] });
    stuck.socket.resume();
    const text = await stuck.until((so) => so.includes('<240>'));
    const { sent, missed } = relay.status().clients[0]!;
    expect([sent + missed, text.split('"type":"gap"').length]).toEqual([240, 2]);
    expect(text).toContain(`"missed":${missed}}`);
  });

  it('encodes a message for all clients once', async () => {
    const { port, source, web } = await serve();
    const clients = [await openStream(port), await openStream(port)];
    const writes = web.responses.map((response) => jest.spyOn(response, 'write'));
    source.frames('a');
    for (const client of clients) await client.until((text) => text.includes('"data":"a"'));
    const [first, second] = writes.map(({ mock }) => mock.calls.flat() as unknown[]);
    expect(first).toEqual([expect.any(Buffer), Buffer.from('\n\n')]);
    expect(second![0]).toBe(first![0]);
  });

  it('writes nothing after other code has ended the response', async () => {
    const messages = new Subject<RelayMessage>();
    const relay = { messages$: () => messages } as unknown as Relay;
    const { port, web } = await serve(open, {}, () => relayHandler(relay, open));
    const raw = await Raw.get(port, { connection: 'close' });
    await waitFor(() => messages.observed);
    messages.next({ id: '1', data: 'before' });
    web.responses[0]!.end();
    messages.next({ id: '2', data: 'after' });
    const text = await raw.closed();
    expect([text.includes('data: before'), text.includes('data: after')]).toEqual([true, false]);
  });

  it('closes the connection of a client when its stream fails with an unknown error', async () => {
    const broken = { messages$: () => throwError(() => new Error('secret-3')) } as unknown as Relay;
    const { port } = await serve(open, {}, () => relayHandler(broken, open));
    expect(await (await Raw.get(port)).closed()).toBe('');
  });
});

describe('relayHandler: a feed that has stopped', () => {
  const replaced = lost(5, { closeCode: 4001 });

  it('answers 503 with Retry-After and the reason to a client that has every event, so that a load balancer can try another replica', async () => {
    const { port, source } = await serve();
    const first = await openStream(port);
    source.frames('a');
    source.subject.error(replaced);
    const text = await first.closed();
    expect(text).toMatch(/^HTTP\/1.1 200 [^]*"data":"a"[^]*event: connect-again\n[^]*"connection-replaced"[^]*\n\n$/);
    for (const headers of [{}, { 'last-event-id': lastIdIn(text) }]) {
      const answer = await (await Raw.get(port, headers)).closed();
      expect(answer).toMatch(/^HTTP\/1.1 503 /);
      expect(answer.toLowerCase()).toContain('retry-after: 5\r\n');
      expect(answer.toLowerCase()).toContain('connection: close\r\n');
      expect(answer).toMatch(/\nevent: connect-again\ndata: {.*"code":"connection-replaced"/);
      expect(answer).not.toContain('event: hello');
    }
  });

  it('answers with the longer wait that the service demands, in the header and in the message', async () => {
    const { port, source } = await serve();
    const first = await openStream(port);
    source.subject.error(createTradeFeedError({ stage: 'ticket', status: 429, retryAfterMs: 29_500 }));
    await first.closed();
    const answer = await (await Raw.get(port)).closed();
    expect(answer.toLowerCase()).toContain('retry-after: 30\r\n');
    expect(answer).toMatch(/\nevent: connect-again\ndata: {.*"retryAfterMs":29500/);
  });
});

describe('relayHandler: a slow authorization', () => {
  it('counts for `maxClients` from the request on, until `authorizeTimeoutMs`', async () => {
    using _timers = fakeTimers();
    const { authorize, waiting } = decided();
    const { port, relay } = await serve({ authorize, authorizeTimeoutMs: 1_000 }, { maxClients: 1 });
    const first = ask(port);
    await waitFor(() => waiting.length === 1);
    expect(relay.status()).toMatchObject({ clients: [], authorizing: 1 });
    expect([(await ask(port)).status, waiting.length]).toEqual([503, 1]);
    jest.advanceTimersByTime(1_000);
    expect((await first).status).toBe(503);
    const again = ask(port);
    await waitFor(() => waiting.length === 2);
    waiting[1]!.resolve(true);
    expect((await again).status).toBe(200);
  });

  it.each([
    ['resolves', (one: ReturnType<typeof decided>['waiting'][0]) => one.resolve(true)],
    ['rejects', (one: ReturnType<typeof decided>['waiting'][0]) => one.reject(new Error('secret-9'))],
  ])('has no effect when it %s after that: no client, no unhandled rejection', async (_how, decide) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', note);
    atEnd(() => process.off('unhandledRejection', note));
    const { authorize, waiting } = decided();
    const { port, relay, source } = await serve({ authorize, authorizeTimeoutMs: 20 });
    expect((await ask(port)).status).toBe(503);
    decide(waiting[0]!);
    // Node reports unhandled rejections after the microtasks of a turn.
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    expect([unhandled, relay.status().clients, source.subscriptions]).toEqual([[], [], 0]);
  });

  it('is answered with 503 at once when the relay closes, so that the server can close', async () => {
    const { authorize, waiting } = decided();
    const { port, relay, source, web } = await serve({ authorize });
    const answer = ask(port);
    await waitFor(() => waiting.length === 1);
    relay.close();
    const closed = web.close();
    expect(await answer).toMatchObject({ status: 503, retryAfter: '1' });
    await closed;
    waiting[0]!.resolve(true);
    await nextTurn();
    expect(source.subscriptions).toBe(0);
  });

  it.each(['before the decision', 'in the turn of the decision', 'after the decision', 'before a refusal'])(
    'leaves no slot and no timer when the client disconnects %s',
    async (when) => {
      const { authorize, waiting } = decided();
      const { port, relay, reports, web, source } = await serve(
        { authorize, authorizeTimeoutMs: 600_000 },
        { maxClients: 1 },
      );
      const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
      const before = timers();
      const raw = await Raw.get(port);
      await waitFor(() => waiting.length === 1);
      expect(timers()).toBeGreaterThan(before);
      const [response] = web.responses;
      if (when.startsWith('after')) {
        waiting[0]!.resolve(true);
        await raw.until((text) => text.includes('event: hello'));
      }
      raw.socket.destroy();
      if (when.startsWith('in the turn')) waiting[0]!.resolve(true);
      await waitFor(() => response!.destroyed && relay.status().authorizing + relay.status().clients.length === 0);
      if (when.startsWith('before')) {
        waiting[0]!.resolve(!when.endsWith('refusal'));
        await nextTurn();
        expect([reports, source.subscriptions]).toEqual([[], 0]);
      }
      await waitFor(() => timers() <= before && source.active === 0);
      const next = ask(port);
      await waitFor(() => waiting.length === 2);
      waiting[1]!.resolve(true);
      expect((await next).status).toBe(200);
    },
  );
});

describe('relayHandler: a relay that is closed', () => {
  it('sends each client the remaining events, then `connect-again` with its position, then closes the connection', async () => {
    const { port, relay, source } = await serve(open, { batchMs: 1_000_000 });
    const raw = await openStream(port);
    source.frames('a', 'b');
    relay.close();
    const text = await raw.closed();
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(text).toMatch(/"data":"a"[^]*"data":"b"[^]*event: connect-again\ndata: \{.*\nid: \S+\.2\.2\.[\d.]+\n\n$/);
    expect(text).toContain('"code":"relay-closing","verdict":"backoff"');
    expect(text).not.toContain('complete');
    const refused = await (await Raw.get(port)).closed();
    expect(refused).toMatch(/^HTTP\/1.1 503 [^]*\r\nconnection: close\r\n/i);
    expect(refused).toMatch(/\r\nretry-after: 1\r\n[^]*Retry later\./i);
  });

  it('lets `server.close()` finish even if a client does not read', async () => {
    const { source, relay, web, port } = await serve(open, { capacityBytes: 64 * 1024 * 1024 });
    const [reader, stuck] = [await openStream(port), await openStream(port)];
    stuck.socket.pause();
    // More than the socket buffers of the kernel take.
    for (let n = 0; n < 20; n += 1) source.frames('x'.repeat(1_000_000));
    await waitFor(() => relay.status().clients.every(({ sent }) => sent > 0) && reader.text.length > 20_000_000);
    relay.close();
    await web.close();
    expect((await reader.closed()).split('"type":"frame"')).toHaveLength(21);
    stuck.socket.resume();
    expect(await stuck.closed()).not.toContain('connect-again');
  });
});

describe('relayHandler over HTTP/2', () => {
  const serve = async (authorize: Authorize, options: RelayOptions = {}) => {
    const source = new Source();
    const relay = createRelay(source.events$, { batchMs: 0, ...options });
    const types: string[] = [];
    relay.events$.subscribe(({ type }) => types.push(type));
    const handler = relayHandler(relay, { authorize });
    const server = createHttp2Server((request, response) => handler(request as never, response as never));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const open = () => {
      const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      atEnd(() => session.destroy());
      const stream = session.request({ ':path': '/feed' }).on('error', () => undefined);
      return { session, stream };
    };
    atEnd(() => {
      relay.close();
      server.close();
    });
    return { source, relay, types, server, open };
  };

  it.each<[string, Authorize, (stream: ClientHttp2Stream) => void]>([
    ['closes its stream', () => true, (stream) => stream.close()],
    ['destroys its stream', () => true, (stream) => stream.destroy()],
    ['cancels its stream', () => true, (stream) => stream.close(constants.NGHTTP2_CANCEL)],
    ['closes its stream during its authorization', pending, (stream) => stream.close()],
  ])(
    'frees the slot of a client at once when it %s, also before it has read everything',
    async (_how, authorize, leave) => {
      const { source, relay, open } = await serve(authorize, { maxClients: 1, heartbeatMs: 600_000 });
      const { session, stream } = open();
      const taken = () => relay.status().clients.length + relay.status().authorizing;
      await waitFor(() => taken() === 1);
      // Fills the stream's window, so that a write waits for a client that never reads it.
      for (let n = 0; n < 100; n += 1) source.frames('x'.repeat(4_096));
      if (authorize !== pending) await waitFor(() => stream.readableLength > 0);
      leave(stream);
      await waitFor(() => taken() === 0);
      expect(session.destroyed).toBe(false);
    },
  );

  it.each<[string, RelayOptions, boolean]>([
    ['after the grace period', {}, false],
    ['when it is stuck', { heartbeatMs: 20 }, true],
  ])('lets `server.close()` finish even if a client does not read: %s', async (_when, options, isStuck) => {
    const { source, relay, types, server, open } = await serve(() => true, options);
    const { session, stream } = open();
    const isOver = once(stream, 'close');
    await once(stream, 'response');
    // More than the flow-control window of the stream.
    for (let n = 0; n < 100; n += 1) source.frames('x'.repeat(5_000));
    await waitFor(() => (isStuck ? types.includes('client-left') : relay.status().clients[0]!.sent > 0));
    const closed = once(server, 'close');
    relay.close();
    session.close();
    server.close();
    await closed;
    await isOver;
    expect(stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
    expect(types).toEqual(['client-joined', ...(isStuck ? ['client-stuck'] : []), 'client-left']);
  });

  it('a relay that is closed allows no further stream on the connection', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    atEnd(() => process.off('warning', note));
    const { relay, open } = await serve(() => true);
    const { session, stream } = open();
    await once(stream, 'response');
    let text = '';
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
    const isOver = Promise.all([once(stream, 'close'), once(session, 'close')]);
    relay.close();
    await isOver;
    expect(text).toMatch(/event: connect-again\ndata: .*"relay-closing".*\nid: .*\n\n$/);

    const other = open();
    const isRefused = once(other.session, 'close');
    const [head] = (await once(other.stream, 'response')) as [Record<string, unknown>];
    expect([head[':status'], head['retry-after']]).toEqual([503, '1']);
    other.stream.resume();
    await isRefused;
    expect(warnings).toEqual([]);
  });
});

describe('checkCors', () => {
  const methods = { 'access-control-allow-methods': 'GET', 'access-control-expose-headers': 'Retry-After' };
  const anyone = { 'access-control-allow-origin': '*', ...methods };
  const cookies = {
    vary: 'Origin',
    'access-control-allow-origin': app,
    'access-control-allow-credentials': 'true',
    ...methods,
  };
  const preflight = { 'access-control-allow-headers': 'authorization, last-event-id', 'access-control-max-age': '600' };
  const answers = {
    refused: { vary: 'Origin' },
    allowed: { vary: 'Origin' },
    'with cookies': cookies,
    'with cookies, preflight': { ...cookies, ...preflight },
    anyone,
    'anyone, preflight': { ...anyone, ...preflight },
  };
  const requested = {
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'authorization, last-event-id',
  };
  const site = (name: string) => ({ 'sec-fetch-site': name });
  const server = 'https://relay.example.com';

  it.each<[string, Record<string, string>, AllowedOrigins, keyof typeof answers]>([
    ['a request without an origin', {}, [], 'allowed'],
    ['a request that a browser makes for a page of the server', site('same-origin'), [], 'allowed'],
    ['an address that a person typed', site('none'), [], 'allowed'],
    ['a request without CORS of another site', site('cross-site'), [], 'refused'],
    ['a request without CORS of another site, where an origin is allowed', site('cross-site'), [app], 'refused'],
    ['a request without CORS of another subdomain', site('same-site'), [app], 'refused'],
    ['a request without CORS where every page is allowed', site('cross-site'), '*', 'allowed'],
    ['an allowed page in a browser', { origin: app, ...site('cross-site') }, [app], 'with cookies'],
    ['a page of the server itself', { origin: server }, [], 'allowed'],
    ['a page of a server behind a proxy that terminates TLS', { origin: 'http://relay.example.com' }, [], 'allowed'],
    ['a page of the server itself where others are allowed', { origin: server }, [app], 'allowed'],
    ['an allowed page', { origin: app }, [app], 'with cookies'],
    ['its preflight', { origin: app, ...requested }, ['https://b.example', app], 'with cookies, preflight'],
    ['any page', { origin: app }, '*', 'anyone'],
    ['its preflight', { origin: app, ...requested }, '*', 'anyone, preflight'],
    ['a page with an opaque origin', { origin: 'null' }, '*', 'anyone'],
    ['a page with an opaque origin', { origin: 'null' }, [], 'refused'],
    ['a page with an opaque origin', { origin: 'null' }, [app], 'refused'],
    ['another page', { origin: evil }, [], 'refused'],
    ['another page', { origin: evil }, [app], 'refused'],
    ['its preflight', { origin: evil, ...requested }, [app], 'refused'],
    ['another scheme', { origin: 'http://app.example.com' }, [app], 'refused'],
    ['another port', { origin: `${app}:8443` }, [app], 'refused'],
    ['another port of the server', { origin: `${server}:8443` }, [], 'refused'],
    ['a host that starts with the allowed one', { origin: `${app}.evil.example` }, [app], 'refused'],
    ['a host that ends with the allowed one', { origin: 'https://evilrelay.example.com' }, [], 'refused'],
    ['an invalid origin', { origin: 'relay.example.com' }, [], 'refused'],
    ['a request without a host', { origin: evil, host: undefined as never }, [], 'refused'],
    ['an origin and a server without a host', { origin: 'data:text/plain,x', host: '' }, [], 'allowed'],
  ])('%s: %j, allowed %j: %s', (_what, headers, allowed, expected) => {
    const { refusal, headers: answer } = checkCors({ headers: { host: 'relay.example.com', ...headers } }, allowed);
    expect([refusal?.includes('`allowOrigins`'), answer]).toEqual([
      expected === 'refused' ? true : undefined,
      answers[expected],
    ]);
  });
});
