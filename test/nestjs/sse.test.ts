/** @lane clock */
import { type CanActivate, Controller, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Req, Sse, UseGuards } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Agent, createServer as createHttpServer, get as httpGet, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer, type ServerHttp2Stream } from 'node:http2';
import { PassThrough } from 'node:stream';
import { filter, lastValueFrom, NEVER, throwError, toArray } from 'rxjs';
import { createRelay, type Relay, RelayFullError, type RelayTopic } from '../../src/relay/index.js';
import { isPipelined, responseOf, sseMessages$ } from '../../src/nestjs/sse.js';
import {
  type SseRequest,
  TradeFeed,
  TradeFeedTesting,
  TradeFeedTestingModule,
  type TradeFeedTestingOptions,
} from '../../src/nestjs/index.js';
import { Raw } from '../relay/support.js';
import { listen } from '../support/listen.js';
import { type App, FeedController, get, live, openSse, type SseClient, startApp, when } from './support.js';

@Injectable()
class BearerGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<SseRequest>();
    return headers.authorization === 'Bearer of-the-app';
  }
}

const even: RelayTopic = filter((event) => event.type !== 'frame' || Number(event.text()) % 2 === 0);

@Controller()
class OtherRoutes {
  @Inject(TradeFeed) readonly tradeFeed!: TradeFeed;

  @Sse('even')
  even(@Req() request: SseRequest) {
    return this.tradeFeed.sse(request, { authorize: 'everybody', select: even });
  }

  @Sse('guarded')
  @UseGuards(BearerGuard)
  guarded(@Req() request: SseRequest) {
    return this.tradeFeed.sse(request, { authorize: 'guard', user: 'ann' });
  }
}

let started: App;
let feed: TradeFeed;
let testing: TradeFeedTesting;
const clients: SseClient[] = [];

const start = async (options: TradeFeedTestingOptions = {}) => {
  const module = TradeFeedTestingModule.forRoot({ relay: { batchMs: 0 }, ...options });
  started = await startApp({ imports: [module], controllers: [FeedController, OtherRoutes] });
  feed = started.app.get(TradeFeed);
  testing = started.app.get(TradeFeedTesting);
};

const open = async (path = '/feed', headers?: Record<string, string>) => {
  const client = await openSse(started.url + path, headers);
  clients.push(client);
  return client;
};

/** Waits for a frame with this payload, and returns all received events. */
const eventsUntil = async (client: SseClient, payload: string) => {
  await client.frame(payload);
  return client.events;
};

const expectStop = async ({ messages$ }: SseClient) => {
  expect((await when(messages$, ({ event }) => event === 'connect-again')).data).toContain('not-entitled');
  await lastValueFrom(messages$);
};

/** Opens a stream of a live feed, which then stops. */
const stopWhileOpen = async () => {
  const client = await open();
  await live(feed);
  testing.account.revokeAccess();
  await expectStop(client);
};

const expectAgain = async () => {
  const again = await open();
  await testing.push('again');
  await again.frame('again');
};

afterEach(async () => {
  for (const client of clients.splice(0)) client.leave();
  await started.app.close();
});

describe('sse', () => {
  it('streams the feed to several browsers over one connection', async () => {
    await start();
    const [one, two] = [await open(), await open()];
    expect([one.response.statusCode, one.response.headers['content-type']]).toEqual([200, 'text/event-stream']);
    await testing.push('hello', Buffer.from([255, 0]));
    for (const client of [one, two]) {
      const events = await eventsUntil(client, Buffer.from([255, 0]).toString('base64'));
      expect(events.filter(({ type }) => type === 'frame')).toMatchObject([
        { feed: 'market', connection: 1, isBinary: false, encoding: 'utf8', data: 'hello' },
        { isBinary: true, encoding: 'base64' },
      ]);
      expect(events).toContainEqual(expect.objectContaining({ type: 'opened', connection: 1 }));
    }
    expect(feed.relay.status().clients).toHaveLength(2);
  });

  it('reports to the first browser that the feed is already open', async () => {
    await start();
    feed.frames$.subscribe();
    await live(feed);
    const client = await open();
    await testing.push('hello');
    await eventsUntil(client, 'hello');
    expect(client.events.map(({ type }) => type)).toEqual(['opened', 'frame']);
  });

  it('resumes after the last message of a browser that reconnects', async () => {
    await start();
    const first = await open();
    await testing.push('one');
    const { id = '' } = await when(first.messages$, ({ data }) => data.includes('"one"'));
    first.leave();
    await when(feed.relay.events$, ({ type }) => type === 'client-left');
    await testing.push('two');
    const second = await open('/feed', { 'Last-Event-ID': id });
    await testing.push('three');
    const events = await eventsUntil(second, 'three');
    expect(events.filter(({ type }) => type === 'frame').map(({ data }) => data)).toEqual(['two', 'three']);
    expect(events.map(({ type }) => type)).not.toContain('gap');
  });

  it('lets guards decide, and the limit of a user is that of the guard', async () => {
    await start({ relay: { maxClientsPerUser: 1, batchMs: 0 } });
    const refused = await get(`${started.url}/guarded`);
    refused.resume();
    expect(refused.statusCode).toBe(403);
    expect(feed.relay.status().clients).toHaveLength(0);
    expect(feed.status.state).toBe('idle');
    const client = await open('/guarded', { Authorization: 'Bearer of-the-app' });
    await testing.push('hello');
    await eventsUntil(client, 'hello');
    const other = await open();
    expect(feed.relay.status().clients.map(({ user }) => user)).toEqual(['ann', undefined]);
    expect((await open('/guarded', { Authorization: 'Bearer of-the-app' })).response.statusCode).toBe(503);
    expect((await started.log.line(/^A client was refused/)).text).toContain('relay.maxClientsPerUser');
    expect(feed.relay.disconnect('ann')).toBe(1);
    const last = await lastValueFrom(client.messages$);
    expect([last.event, last.data]).toEqual(['connect-again', expect.stringContaining('"relay-session-ended"')]);
    expect(client.response.complete).toBe(true);
    expect(feed.relay.status().clients).toHaveLength(1);
    await testing.push('on');
    await other.frame('on');
  });

  it('answers 503 with Retry-After when the relay is full', async () => {
    await start({ relay: { maxClients: 1 } });
    await open();
    await live(feed);
    const refused = await openSse(`${started.url}/feed`);
    await lastValueFrom(refused.messages$, { defaultValue: undefined });
    expect(refused.response.statusCode).toBe(503);
    expect(refused.response.headers['retry-after']).toBe('5');
    expect(JSON.parse(refused.text())).toMatchObject({
      statusCode: 503,
      message: 'The relay has no room. Retry later.',
    });
    expect((await started.log.line(/^A client was refused/)).level).toBe('warn');
  });

  it('tells browsers that the feed has stopped, later ones at once, without requesting another ticket', async () => {
    await start();
    await stopWhileOpen();
    testing.account.restoreAccess();
    const requests: unknown[] = [];
    testing.service.events$.subscribe((event) => requests.push(event));
    await expectStop(await open());
    expect(requests).toEqual([]);
    feed.frames$.subscribe({ error: () => undefined });
    await expectAgain();
  });

  it('starts again after `restart`, also for later browsers', async () => {
    await start();
    feed.restart();
    expect(feed.status).toMatchObject({ state: 'idle' });
    await stopWhileOpen();
    testing.account.restoreAccess();
    feed.restart();
    feed.restart();
    await expectAgain();
    expect(started.log.ofFeeds.filter((line) => line.startsWith('log Connected'))).toHaveLength(2);
  });
});

describe('a route with `select`', () => {
  it('sends the output of the operator; `select` must be an operator', async () => {
    await start();
    const [some, all] = [await open('/even'), await open()];
    for (const n of ['1', '2', '3', '4']) await testing.push(n);
    const payloadsOf = async (client: SseClient) =>
      (await eventsUntil(client, '4')).flatMap(({ type, data }) => (type === 'frame' ? [data] : []));
    expect([await payloadsOf(some), await payloadsOf(all)]).toEqual([
      ['2', '4'],
      ['1', '2', '3', '4'],
    ]);
    const wrong = { authorize: 'guard', select: 'even' } as never;
    expect(() => feed.sse({ headers: {} }, wrong)).toThrow(expect.objectContaining({ code: 'invalid-options' }));
  });
});

describe('a browser that does not read', () => {
  const payload = (n: number) => `${n} `.padEnd(10_000, 'x');
  /** 10 MB: more than the sockets take, and Nest queues 4 Mi characters. */
  const count = 1_000;
  /** Sends frames as fast as a browser that keeps up can read them. */
  const flood = async (reader: SseClient) => {
    for (let n = 0; n < count; n += 50) {
      await testing.push(...Array.from({ length: 50 }, (_, m) => payload(n + m)));
      await reader.frame(payload(n + 49));
    }
  };
  const openStuck = async () => {
    const stuck = await open();
    stuck.response.pause();
    return stuck;
  };

  it('gets a gap, uses a bounded amount of memory, and delays no other browser', async () => {
    await start({ relay: { capacityBytes: 1024 * 1024, batchMs: 0 } });
    const stuck = await openStuck();
    const reader = await open();
    const behind = when(feed.relay.events$, ({ type }) => type === 'client-behind');
    await flood(reader);
    stuck.response.resume();
    await behind;
    const events = await eventsUntil(stuck, payload(count - 1));
    const frames = events.filter(({ type }) => type === 'frame').length;
    const gaps = events.filter(({ type }) => type === 'gap') as unknown as { missed: number }[];
    expect(gaps.length).toBeGreaterThan(0);
    expect(frames + gaps.reduce((sum, { missed }) => sum + missed, 0)).toBe(count);
    // Nest logs this when it drops a client that has too many messages queued.
    expect(started.log.raw).not.toContain('not reading its events');
    expect((await started.log.line(/reads too slowly/)).level).toBe('warn');
  }, 120_000);

  it('is disconnected after not reading for a few heartbeats', async () => {
    await start({ relay: { heartbeatMs: 20, batchMs: 0 } });
    const stuck = await openStuck();
    const reader = await open();
    await flood(reader);
    expect((await started.log.line(/^Client 1 doesn't read/)).level).toBe('warn');
    const ended = new Promise((resolve) => stuck.response.once('close', resolve));
    stuck.response.resume();
    await ended;
    expect(stuck.response.complete).toBe(false);
  }, 120_000);
});

describe('requests that are refused before the feed opens', () => {
  it('answers HEAD with 405 and the allowed method', async () => {
    await start();
    const client = request(`${started.url}/feed`, { method: 'HEAD' }).end();
    const [response] = (await once(client, 'response')) as [IncomingMessage];
    expect([response.statusCode, response.headers.allow]).toEqual([405, 'GET']);
    expect([feed.status.state, feed.relay.status().clients]).toEqual(['idle', []]);
  });

  it('answers pipelined requests with 400, so that one connection cannot use up the limit', async () => {
    await start();
    const raw = await Raw.open(Number(new URL(started.url).port), 'GET /feed HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100));
    await raw.until((text) => text.includes('event: hello'));
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect([feed.relay.status().clients.length, feed.relay.status().authorizing]).toEqual([1, 0]);
    // Node sends the other responses once the first one has ended.
    feed.relay.disconnect('unknown');
    raw.socket.destroy();
    await when(feed.relay.events$, ({ type }) => type === 'client-left');
    expect(feed.relay.status().clients).toEqual([]);
  });
});

describe('a shutdown', () => {
  it('tells browsers to connect again and closes their connections, so that they reach another server', async () => {
    await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const request = async () => {
      const outgoing = httpGet(`${started.url}/feed`, { agent });
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      return { response: response.setEncoding('utf8'), socket: response.socket };
    };
    const textOf = async (response: IncomingMessage) => {
      let text = '';
      for await (const part of response) text += String(part);
      return text;
    };
    const first = await request();
    await live(feed);
    const text = textOf(first.response);
    // The server is still listening, as it does while a load balancer removes it.
    feed.relay.close();
    expect(await text).toMatch(/event: connect-again\nid: .*\ndata: .*"relay-closing".*\n\n$/);
    // The server closes the connection after the response, although Nest's headers say keep-alive.
    if (!first.socket.destroyed) await once(first.socket, 'close');
    const second = await request();
    expect(second.socket).not.toBe(first.socket);
    expect(second.response).toMatchObject({ statusCode: 503, headers: { connection: 'close', 'retry-after': '1' } });
    await textOf(second.response);
    agent.destroy();
  });

  it('ends the responses to browsers before close() resolves, without the message `complete`', async () => {
    await start();
    const client = await open();
    await testing.push('hello');
    await eventsUntil(client, 'hello');
    const messages = lastValueFrom(client.messages$.pipe(toArray()));
    const ended = new Promise((resolve) => client.response.once('end', resolve));
    await started.app.close();
    await ended;
    expect(client.response.complete).toBe(true);
    expect((await messages).map(({ event }) => event)).not.toContain('complete');
  });
});

const relayWithError = (error: Error) => ({ messages$: () => throwError(() => error) }) as unknown as Relay;

it.each<[string, unknown, object]>([
  [
    'any other error without its text, and with its stack for the log',
    new RangeError('of something else'),
    { message: "The feed failed. See the server's log.", stack: expect.stringContaining('of something else') },
  ],
  ['a thrown text, too', 'of something else', { stack: 'of something else' }],
  [
    '503 without a response to set Retry-After on',
    new RelayFullError('There are 2 clients.'),
    { status: 503, message: 'The relay has no room. Retry later.' },
  ],
])('a failing relay answers %s', async (_, cause, error) => {
  await expect(lastValueFrom(sseMessages$(relayWithError(cause as Error), {}, undefined))).rejects.toMatchObject(error);
});

it('an HTTP/2 client that closes its stream frees its place, even while its session stays open', async () => {
  const relay = createRelay(NEVER);
  const server = createServer();
  await using listening = await listen(server);
  const session = connect(`http://127.0.0.1:${listening.port}`);
  const request = session.request({ ':path': '/' });
  const [stream] = (await once(server, 'stream')) as [ServerHttp2Stream];
  stream.respond();
  const messages = lastValueFrom(sseMessages$(relay, {}, stream), { defaultValue: undefined });
  expect(relay.status().clients).toHaveLength(1);
  request.close();
  await messages;
  expect([relay.status().clients, session.destroyed]).toEqual([[], false]);
  relay.close();
  session.close();
});

it('a browser that left before its handler was done takes no place, and a shutdown does not wait for it', async () => {
  await start();
  const server = createHttpServer();
  await using listening = await listen(server);
  const page = request({ port: listening.port }).on('error', () => undefined);
  const arrives = once(server, 'request') as Promise<[SseRequest, ServerResponse]>;
  page.end();
  const [incoming, response] = await arrives;
  const messages$ = feed.sse({ ...incoming, headers: incoming.headers, res: response }, { authorize: 'everybody' });
  page.destroy();
  await once(response, 'close');
  const messages = await lastValueFrom(messages$.pipe(toArray()));
  expect([messages, feed.relay.status().clients, feed.status.state]).toEqual([[], [], 'idle']);
});

it('sse finds the response of Express, Fastify or node:http, the stream of HTTP/2, or else the socket', () => {
  const headers = {};
  const socket = new PassThrough() as PassThrough & { _httpMessage?: unknown };
  const raw = { headers, socket };
  const response = { req: raw };
  const [res, stream] = [new PassThrough(), new PassThrough()];
  expect(responseOf({ headers, res })).toBe(res);
  expect(responseOf({ headers, raw: { headers, stream, socket: {} } })).toBe(stream);
  socket._httpMessage = response;
  expect([responseOf({ headers, raw }), responseOf(raw)]).toEqual([response, response]);
  socket._httpMessage = { req: 'another' };
  expect(responseOf({ headers, raw })).toBe(socket);
  expect(responseOf({ headers })).toBeUndefined();
});

it('a request counts as pipelined while its response has no socket or its socket sends another response', () => {
  const headers = {};
  const sending = (req: unknown) => ({ _httpMessage: req === null ? null : { req } });
  const express = (socket: unknown) => isPipelined({ headers, res: Object.assign(new PassThrough(), { socket }) });
  expect([express(null), express({})]).toEqual([true, false]);
  const raw = { headers, socket: sending('another') };
  expect([isPipelined({ headers, raw }), isPipelined(raw)]).toEqual([true, true]);
  const own = { headers, socket: {} };
  own.socket = sending(own);
  expect([isPipelined({ headers, raw: own }), isPipelined(own)]).toEqual([false, false]);
  // What it falls back to over HTTP/2, and for an unknown request.
  const others = [{ stream: {}, socket: sending('another') }, undefined, { socket: sending(null) }];
  expect(others.map((raw) => isPipelined({ headers, raw }))).toEqual([false, false, false]);
});
