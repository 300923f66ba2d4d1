import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http';
import { filter, NEVER, of, Subject } from 'rxjs';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import {
  createRelay,
  type Relay,
  type RelayActivity,
  relayHandler,
  type RelayHandlerOptions,
  type RelayOptions,
  type RelayTopic,
} from '../../src/relay/index.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { lost } from '../operators/stream.js';
import { frame, range, Raw, Source, Web } from './support.js';
import { waitFor } from '../support/wait-for.js';

const app = 'https://app.example.com';
const open = { authorize: () => true };

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

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
  closing.push(
    () => web[Symbol.asyncDispose](),
    () => relay.close(),
  );
  return { source, relay, reports, web, port: web.port };
};

/** Sends one request, and reads the answer, or the first part of a stream. */
const ask = async (port: number, method = 'GET', headers: Readonly<Record<string, string | string[]>> = {}) => {
  const request = httpRequest({ host: '127.0.0.1', port, path: '/feed', method, headers, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.setEncoding('utf8');
  const isStream = response.headers['content-type']?.startsWith('text/event-stream') === true;
  let body = '';
  if (isStream) [body] = (await once(response, 'data')) as [string];
  else for await (const part of response) body += String(part);
  response.destroy();
  return { status: response.statusCode, headers: response.headers, body };
};

const openStream = async (port: number, headers?: Readonly<Record<string, string>>): Promise<Raw> => {
  const raw = await Raw.get(port, headers);
  closing.push(() => raw.socket.destroy());
  await raw.until((text) => text.includes('event: hello'));
  return raw;
};

describe('relayHandler: the options', () => {
  const relay = createRelay(NEVER);
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
  ])('refuses %s at once, and names the option', (_what, options, name) => {
    const make = () => relayHandler(relay, options as RelayHandlerOptions);
    expect(make).toThrow(TradeFeedError);
    expect(make).toThrow(name);
  });
});

describe('relayHandler: authorize', () => {
  const decisions: readonly (readonly [string, () => unknown, number])[] = [
    ['returns true', () => true, 200],
    ['resolves to true', () => Promise.resolve(true), 200],
    ['returns false', () => false, 403],
    ['resolves to false', () => Promise.resolve(false), 403],
    ['returns a text', () => 'no', 403],
    ['returns 1', () => 1, 403],
    ['resolves to 1', () => Promise.resolve(1), 403],
    ['returns an object', () => ({}), 403],
    ['returns undefined', () => undefined, 403],
    [
      'throws',
      () => {
        throw new Error('secret-2');
      },
      500,
    ],
    ['rejects', () => Promise.reject(new Error('secret-2')), 500],
  ];
  it.each(decisions)('when authorize %s', async (_what, authorize, status) => {
    const { port, source } = await serve({ authorize: authorize as () => boolean, allowOrigins: [app] });
    const answer = await ask(port, 'GET', { origin: app });
    expect(answer.status).toBe(status);
    expect(answer.headers['access-control-allow-origin']).toBe(app);
    expect(source.subscriptions).toBe(status === 200 ? 1 : 0);
    if (status === 200) return;
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
    expect(answer.body).not.toContain('secret-2');
    expect(JSON.parse(answer.body)).toEqual({ error: { status, message: expect.any(String) } });
  });

  it('calls authorize with the request', async () => {
    const { port } = await serve({
      authorize: ({ headers, url }) => headers.authorization === 'Bearer t' && url === '/feed',
    });
    expect((await ask(port)).status).toBe(403);
    expect((await ask(port, 'GET', { authorization: 'Bearer t' })).status).toBe(200);
  });
});

describe('relayHandler: select', () => {
  const even: RelayTopic = (events$) =>
    events$.pipe(filter((event) => event.type !== 'frame' || Number(event.text()) % 2 === 0));

  it('sends each client the topic that its request selects', async () => {
    const { port, source } = await serve({
      ...open,
      select: ({ headers }) => (headers['x-only'] === 'even' ? even : undefined),
    });
    const [some, all] = [await openStream(port, { 'x-only': 'even' }), await openStream(port)];
    source.frames(1, 2, 3, 4);
    for (const raw of [some, all]) await raw.until((text) => text.includes('"data":"4"'));
    expect([some.text.includes('"data":"1"'), all.text.includes('"data":"1"')]).toEqual([false, true]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('secret-3');
      },
    ],
    ['returns a text', () => 'even'],
    ['returns null', () => null],
    ['returns a promise', () => Promise.resolve(even)],
  ])('answers 500 without a reason when select %s', async (_what, select) => {
    const { port, source, relay } = await serve({ ...open, select: select as () => undefined });
    const { status, body } = await ask(port);
    expect([status, body.includes('secret-3'), source.subscriptions]).toEqual([500, false, 0]);
    expect(relay.status()).toMatchObject({ clients: [], topics: 0 });
  });

  it('is not called for a client that is not authorized', async () => {
    let calls = 0;
    const { port } = await serve({ authorize: () => false, select: () => void (calls += 1) });
    expect([(await ask(port)).status, calls]).toEqual([403, 0]);
  });

  it('answers 503 with Retry-After when there are maxTopics', async () => {
    const { port, reports } = await serve({ ...open, select: () => (events$) => events$ }, { maxTopics: 1 });
    await openStream(port);
    const { status, headers } = await ask(port);
    expect([status, headers['retry-after']]).toEqual([503, '5']);
    expect(reports.at(-1)).toMatchObject({ type: 'client-refused', reason: 'topics' });
  });
});

describe('relayHandler: methods and origins', () => {
  it.each(['POST', 'PUT', 'DELETE', 'HEAD', 'PATCH'])('answers %s with 405', async (method) => {
    const { port, source } = await serve();
    const { status, headers } = await ask(port, method);
    expect([status, headers.allow, source.subscriptions]).toEqual([405, 'GET, OPTIONS', 0]);
  });

  it('answers a preflight without a call of authorize, because browsers send no credentials with it', async () => {
    const { port } = await serve({ authorize: () => false, allowOrigins: [app] });
    const requested = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };
    const { status, headers, body } = await ask(port, 'OPTIONS', { origin: app, ...requested });
    expect([status, body]).toEqual([204, '']);
    expect(headers).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': 'authorization',
      'access-control-allow-methods': 'GET',
      vary: 'Origin',
    });
    const simple = await ask(port, 'OPTIONS', { origin: app });
    expect(simple.headers).not.toHaveProperty('access-control-allow-headers');
  });

  it.each(['GET', 'OPTIONS', 'POST'])(
    'refuses %s of an origin that is not allowed, so that the page can read nothing',
    async (method) => {
      const { port, source } = await serve({ ...open, allowOrigins: [app] });
      const { status, headers } = await ask(port, method, { origin: 'https://evil.example' });
      expect([status, source.subscriptions]).toEqual([403, 0]);
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    },
  );

  it('lets allowed pages read every refusal', async () => {
    const { port } = await serve({ authorize: () => false, allowOrigins: '*' });
    for (const [method, status] of [
      ['GET', 403],
      ['POST', 405],
    ] as const) {
      const answer = await ask(port, method, { origin: 'null' });
      expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([status, '*']);
      expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
    }
  });
});

describe('relayHandler: the stream', () => {
  it('has headers against caches, compression and buffering proxies', async () => {
    const { port } = await serve();
    const { status, headers, body } = await ask(port);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'transfer-encoding': 'chunked',
    });
    expect(headers).not.toHaveProperty('content-encoding');
    expect(body).toMatch(/^event: hello\nid: [\w-]{8}\.0\.0\.\d+\ndata: \{"at":\d+\}\n\n$/);
  });

  it('sends hello before the first event of the source, and heartbeats as comments', async () => {
    const { port } = await serve(open, { heartbeatMs: 1 });
    const raw = await openStream(port);
    await raw.until((text) => text.split(': heartbeat\n\n').length > 3);
  });

  it.each<[string, string[]]>([
    ['one', ['x.1.1.1']],
    ['a hostile one', ['x.1.1.1%0d%0aset-cookie: a=b']],
    ['a huge one', ['9'.repeat(8_000)]],
    ['two', ['x.1.1.1', 'y.1.1.1']],
    ['none', []],
  ])('accepts any Last-Event-ID: %s', async (_what, ids) => {
    const { port, reports } = await serve();
    const { status, body, headers } = await ask(port, 'GET', ids.length ? { 'last-event-id': ids } : {});
    expect([status, headers['set-cookie']]).toEqual([200, undefined]);
    expect(body).toContain('event: hello\n');
    expect(reports[0]).toMatchObject({ joined: ids.join() === 'x.1.1.1' ? 'behind' : 'new' });
  });

  it('encodes a message for all clients once', async () => {
    const { port, source, web } = await serve();
    const clients = [await openStream(port), await openStream(port)];
    const written: unknown[] = [];
    for (const response of web.responses) {
      const write = response.write.bind(response) as (bytes: unknown) => boolean;
      response.write = (bytes: unknown) => {
        written.push(bytes);
        return write(bytes);
      };
    }
    source.frames('a');
    for (const client of clients) await client.until((text) => text.includes('"data":"a"'));
    expect(written).toEqual([expect.any(Buffer), written[0]]);
    expect(written[1]).toBe(written[0]);
  });

  it('sends connect-again after a stop, and ends', async () => {
    const { port, source } = await serve();
    const raw = await openStream(port);
    source.frames('a');
    source.subject.error(createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' }));
    const text = await raw.until((so) => so.includes('\r\n0\r\n\r\n'));
    expect(text.indexOf('event: connect-again')).toBeGreaterThan(text.indexOf('"data":"a"'));
    expect(text).toContain('"code":"connection-replaced"');
  });

  it('answers 503 with Retry-After when there is no room, readable for allowed pages', async () => {
    const { port, reports, relay } = await serve({ ...open, allowOrigins: [app] }, { maxClients: 1 });
    const first = await openStream(port);
    const { status, headers, body } = await ask(port, 'GET', { origin: app });
    expect([status, headers['retry-after'], headers['access-control-expose-headers']]).toEqual([
      503,
      '5',
      'Retry-After',
    ]);
    expect(headers['access-control-allow-origin']).toBe(app);
    expect(JSON.parse(body)).toEqual({ error: { status: 503, message: 'The relay has no room. Retry later.' } });
    first.socket.destroy();
    await waitFor(() => relay.status().clients.length === 0);
    expect((await ask(port)).status).toBe(200);
    expect(reports.map(({ type }) => type).slice(0, 2)).toEqual(['client-joined', 'client-refused']);
  });

  it('answers 503 once the relay is closed', async () => {
    const { port, relay } = await serve();
    const raw = await openStream(port);
    relay.close();
    await raw.until((text) => text.includes('\r\n0\r\n\r\n'));
    expect((await ask(port)).status).toBe(503);
  });

  it('releases a client that has disconnected, and the source after the last one', async () => {
    const { port, source, relay } = await serve();
    const raw = await openStream(port);
    expect([source.active, relay.status().clients.length]).toEqual([1, 1]);
    raw.socket.destroy();
    await waitFor(() => source.active === 0);
    expect(relay.status().clients).toEqual([]);
  });

  it.each([true, false])('ignores a client that disconnected during its authorization (%s)', async (isIn) => {
    const decided = new Subject<boolean>();
    const { port, source, reports, web } = await serve({
      authorize: () => new Promise((resolve) => decided.subscribe((is) => resolve(is))),
    });
    const raw = await Raw.get(port);
    await waitFor(() => decided.observed);
    raw.socket.destroy();
    await waitFor(() => web.responses[0]!.destroyed);
    decided.next(isIn);
    await new Promise((resolve) => setImmediate(resolve));
    expect([source.subscriptions, reports]).toEqual([0, []]);
  });

  it('releases the client when other code destroys the response', async () => {
    const { port, web, relay } = await serve();
    await openStream(port);
    web.responses[0]!.destroy();
    await waitFor(() => relay.status().clients.length === 0);
  });

  it('preserves the headers of an earlier middleware', async () => {
    const { port } = await serve(open, {}, (feed) => (request, response) => {
      response.setHeader('x-frame-options', 'DENY');
      feed(request, response);
    });
    expect((await ask(port)).headers['x-frame-options']).toBe('DENY');
  });

  it.each([true, false])('does nothing when other code has answered during the authorization (%s)', async (isIn) => {
    const { port, reports } = await serve(
      { authorize: () => Promise.resolve(isIn) },
      {},
      (feed) => (request, response) => {
        feed(request, response);
        response.writeHead(418).end();
      },
    );
    expect((await ask(port)).status).toBe(418);
    expect(reports).toEqual([]);
  });

  it('writes nothing after other code has ended the response', async () => {
    const { port, web, source, relay } = await serve();
    const raw = await openStream(port, { connection: 'close' });
    raw.socket.pause();
    // More than the socket buffers take, so that the response is not sent completely when it ends.
    source.frames('x'.repeat(16_000_000));
    await waitFor(() => web.responses[0]!.writableNeedDrain);
    web.responses[0]!.end();
    source.frames('after the end');
    raw.socket.resume();
    const text = await raw.closed();
    expect([text.endsWith('\r\n0\r\n\r\n'), text.includes('"data":"after the end"')]).toEqual([true, false]);
    expect(relay.status().clients).toEqual([]);
  });

  it('closes the connection of a client when its stream fails with an unknown error', async () => {
    const { port } = await serve(open, {}, () => {
      const broken = { messages$: () => NEVER } as unknown as Relay;
      const failing = new Subject<never>();
      broken.messages$ = () => failing;
      queueMicrotask(() => undefined);
      const feed = relayHandler(broken, open);
      return (request, response) => {
        feed(request, response);
        setImmediate(() => failing.error(new Error('secret-3')));
      };
    });
    const raw = await Raw.get(port);
    expect(await raw.closed()).not.toContain('secret-3');
  });
});

describe('relayHandler: a client that does not read', () => {
  it('receives one gap and continues; other clients receive every frame, in bounded memory', async () => {
    const { port, source, relay, reports } = await serve(open, { capacity: 100, batchMs: 0 });
    const stuck = await openStream(port);
    const reader = await openStream(port);
    stuck.socket.pause();
    const total = 1_500;
    for (const n of range(1, total)) {
      // 24 MB in all: more than the socket buffers of the kernel.
      source.frames(`<${n}>`.padEnd(16_000));
      if (n % 10 > 0) continue;
      await reader.until((text) => text.includes(`<${n}>`));
      reader.text = '';
    }
    const [slow, fast] = relay.status().clients as [never, never];
    expect(fast).toMatchObject({ sent: total, missed: 0 });
    expect((slow as { sent: number }).sent).toBeLessThan(total - 100);
    expect(relay.status().stored.events).toBe(100);
    stuck.socket.resume();
    await waitFor(() => {
      const [client] = relay.status().clients;
      return client!.sent + client!.missed === total;
    });
    const text = await stuck.until((so) => so.includes(`<${total}>`));
    const { missed } = relay.status().clients[0]!;
    expect(text.split('"type":"gap"')).toHaveLength(2);
    expect(text).toContain(`"missed":${missed}}`);
    expect(reports.filter(({ type }) => type === 'client-behind')).toHaveLength(1);
  });

  it('is disconnected after four heartbeats', async () => {
    const { port, source, relay, reports } = await serve(open, { capacity: 10, heartbeatMs: 30 });
    const stuck = await openStream(port);
    stuck.socket.pause();
    const pushing = setInterval(() => source.frames('x'.repeat(1_000_000)), 2);
    closing.push(() => clearInterval(pushing));
    await waitFor(() => relay.status().clients.length === 0);
    expect(reports.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['client-joined', 'client-stuck', 'client-left']),
    );
    stuck.socket.resume();
    await stuck.closed();
  });
});

describe('relayHandler: a feed that has stopped', () => {
  const replaced = lost(5, { closeCode: 4001 });

  it('answers 503 with Retry-After and the reason to a client that has every event, so that a load balancer can try another replica', async () => {
    const { port, source } = await serve(open, { batchMs: 0 });
    const first = await openStream(port);
    source.frames('a');
    source.subject.error(replaced);
    const text = await first.closed();
    expect(text).toMatch(/^HTTP\/1.1 200 /);
    const [id] = /(?<=id: ).*/.exec(text.slice(text.indexOf('connect-again'))) ?? [];
    for (const headers of [{}, { 'last-event-id': id! }]) {
      const answer = await (await Raw.get(port, headers)).closed();
      expect(answer).toMatch(/^HTTP\/1.1 503 /);
      expect(answer.toLowerCase()).toContain('retry-after: 5\r\n');
      expect(answer.toLowerCase()).toContain('connection: close\r\n');
      expect(answer).toMatch(/\nevent: connect-again\nid: .*\ndata: {.*"code":"connection-replaced"/);
      expect(answer).not.toContain('event: hello');
    }
  });

  it('answers with the longer wait that the service demands, in the header and in the message', async () => {
    const { port, source } = await serve(open, { batchMs: 0 });
    const first = await openStream(port);
    source.subject.error(createTradeFeedError({ stage: 'ticket', status: 429, retryAfterMs: 29_500 }));
    await first.closed();
    const answer = await (await Raw.get(port)).closed();
    expect(answer.toLowerCase()).toContain('retry-after: 30\r\n');
    expect(answer).toMatch(/\nevent: connect-again\n.*\ndata: {.*"retryAfterMs":29500/);
  });

  it('first sends the events that the client has missed', async () => {
    const { port, source } = await serve(open, { batchMs: 0 });
    const first = await openStream(port);
    source.frames('a');
    const text = await first.until((so) => so.includes('"data":"a"'));
    const [id] = /(?<=id: ).*(?=\ndata: {"type":"frame")/.exec(text) ?? [];
    source.frames('b');
    source.subject.error(replaced);
    await first.closed();
    const before = id!.replace(/\.\d+\.\d+\.(\d+)$/, '.1.1.$1');
    const answer = await (await Raw.get(port, { 'last-event-id': before })).closed();
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(answer).toContain('"data":"b"');
    expect(answer).toMatch(/event: connect-again\nid: .*\ndata: {.*"retryAfterMs":5000/);
  });
});

describe('relayHandler: a source of events of all kinds', () => {
  it('writes each as a line of JSON that `listen --json` would write', async () => {
    const events: readonly RelayedEvent[] = [
      { type: 'ticket-requested', at: 1, feed: 'raw' },
      { type: 'opened', at: 2, feed: 'raw', connection: 1 },
      frame('a\nb\u2028c', 3),
    ];
    const web = await Web.start(relayHandler(createRelay(of(...events), { batchMs: 0 }), open));
    closing.push(() => web[Symbol.asyncDispose]());
    const raw = await Raw.get(web.port);
    const text = Buffer.from(await raw.until((so) => so.includes('event: complete')), 'latin1').toString();
    const lines = text.split('\n').filter((line) => line.startsWith('data: {"type"'));
    expect(lines.map((line) => JSON.parse(line.slice(6)) as unknown)).toEqual([
      events[0],
      events[1],
      expect.objectContaining({ type: 'frame', data: 'a\nb\u2028c', encoding: 'utf8' }),
      { type: 'watermark', at: expect.any(Number) },
    ]);
    raw.socket.destroy();
  });
});
