import { type CanActivate, Controller, type ExecutionContext, Injectable, Req, Sse, UseGuards } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Agent, get as httpGet, type IncomingMessage } from 'node:http';
import { filter, firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import type { RelayTopic } from '../../src/relay/index.js';
import {
  type SseRequest,
  TradeFeed,
  TradeFeedTesting,
  TradeFeedTestingModule,
  type TradeFeedTestingOptions,
} from '../../src/nestjs/index.js';
import { Raw } from '../relay/support.js';
import { type App, eventsIn, get, openSse, type SseClient, type SseMessage, startApp, when } from './support.js';

@Injectable()
class BearerGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<SseRequest>();
    return headers.authorization === 'Bearer of-the-app';
  }
}

const even: RelayTopic = filter((event) => event.type !== 'frame' || Number(event.text()) % 2 === 0);

@Controller()
class FeedController {
  readonly #tradeFeed: TradeFeed;
  constructor(tradeFeed: TradeFeed) {
    this.#tradeFeed = tradeFeed;
  }

  @Sse('feed')
  feed(@Req() request: SseRequest) {
    return this.#tradeFeed.sse(request, { authorize: 'everybody' });
  }

  @Sse('even')
  even(@Req() request: SseRequest) {
    return this.#tradeFeed.sse(request, { authorize: 'everybody', select: even });
  }

  @Sse('guarded')
  @UseGuards(BearerGuard)
  guarded(@Req() request: SseRequest) {
    return this.#tradeFeed.sse(request, { authorize: 'guard', user: 'ann' });
  }
}

let started: App;
let feed: TradeFeed;
let testing: TradeFeedTesting;
const clients: SseClient[] = [];

const start = async (options: TradeFeedTestingOptions = {}) => {
  const module = TradeFeedTestingModule.forRoot({ relay: { batchMs: 0 }, ...options });
  started = await startApp({ imports: [module], controllers: [FeedController] });
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

const idOf = async ({ messages$ }: SseClient, payload: string): Promise<string> => {
  const { id } = await when(messages$, (message: SseMessage) => message.data.includes(payload));
  return id ?? '';
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
    await when(feed.status$, ({ state }) => state === 'live');
    const client = await open();
    await testing.push('hello');
    await eventsUntil(client, 'hello');
    expect(client.events.map(({ type }) => type)).toEqual(['opened', 'frame']);
  });

  it('reports a current outage to the first browser', async () => {
    await start({ backoff: { initialDelayMs: 60_000, maxDelayMs: 60_000, jitter: 'none' } });
    feed.frames$.subscribe();
    await when(feed.status$, ({ state }) => state === 'live');
    testing.account.expireAccess();
    await when(feed.status$, ({ state }) => state === 'reconnecting');
    const client = await open();
    await when(client.messages$, (message) => eventsIn(message).some(({ type }) => type === 'reconnecting'));
    expect(client.events).toMatchObject([
      { type: 'disconnected', failure: { code: 'access-expired' } },
      { type: 'reconnecting', delayMs: 60_000 },
    ]);
  });

  it('resumes where a browser was when it reconnects', async () => {
    await start();
    const first = await open();
    await testing.push('one');
    const id = await idOf(first, '"one"');
    first.leave();
    await when(feed.relay.events$, ({ type }) => type === 'client-left');
    await testing.push('two');
    const second = await open('/feed', { 'Last-Event-ID': id });
    await testing.push('three');
    const events = await eventsUntil(second, 'three');
    expect(events.filter(({ type }) => type === 'frame').map(({ data }) => data)).toEqual(['two', 'three']);
    expect(events.map(({ type }) => type)).not.toContain('gap');
  });

  it('sends a gap to a browser that was away for too long', async () => {
    await start({ relay: { capacity: 2, batchMs: 0 } });
    const first = await open();
    await testing.push('one');
    const id = await idOf(first, '"one"');
    first.leave();
    await when(feed.relay.events$, ({ type }) => type === 'client-left');
    const last = when(feed.frames$, (frame) => frame.text() === 'five');
    await testing.push('two', 'three', 'four', 'five');
    await last;
    const second = await open('/feed', { 'Last-Event-ID': id });
    await testing.push('six');
    const events = await eventsUntil(second, 'six');
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'gap', failure: expect.objectContaining({ code: 'relay-behind' }) }),
    );
  });

  it('lets guards decide: Nest answers 403', async () => {
    await start();
    const refused = await get(`${started.url}/guarded`);
    refused.resume();
    expect(refused.statusCode).toBe(403);
    expect(feed.relay.status().clients).toHaveLength(0);
    expect(feed.status.state).toBe('idle');
    const client = await open('/guarded', { Authorization: 'Bearer of-the-app' });
    await testing.push('hello');
    await eventsUntil(client, 'hello');
  });

  it('answers 503 with Retry-After when the relay is full', async () => {
    await start({ relay: { maxClients: 1 } });
    await open();
    await when(feed.status$, ({ state }) => state === 'live');
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

  it('forwards a stop, and sends it to later browsers at once, without another ticket', async () => {
    await start();
    const client = await open();
    await when(feed.status$, ({ state }) => state === 'live');
    testing.account.revokeAccess();
    const stop = await when(client.messages$, ({ event }) => event === 'connect-again');
    expect(stop.data).toContain('not-entitled');
    await lastValueFrom(client.messages$);
    const tickets: unknown[] = [];
    testing.service.events$.subscribe((event) => tickets.push(event));
    const late = await open();
    await when(late.messages$, ({ event }) => event === 'connect-again');
    expect(tickets).toEqual([]);
    testing.account.restoreAccess();
    feed.frames$.subscribe({ error: () => undefined });
    const again = await open();
    await testing.push('again');
    await eventsUntil(again, 'again');
  });

  it('starts again with `restart`, for later browsers too', async () => {
    await start();
    feed.restart();
    expect(feed.status).toMatchObject({ state: 'idle' });
    const client = await open();
    await when(feed.status$, ({ state }) => state === 'live');
    testing.account.revokeAccess();
    await when(client.messages$, ({ event }) => event === 'connect-again');
    await lastValueFrom(client.messages$);
    testing.account.restoreAccess();
    feed.restart();
    feed.restart();
    const again = await open();
    await testing.push('again');
    await eventsUntil(again, 'again');
    expect(started.log.ofFeeds.filter((line) => line.startsWith('log Connected'))).toHaveLength(2);
  });

  it('does not restart a feed that stopped before the first browser', async () => {
    await start();
    testing.account.revokeAccess();
    await expect(firstValueFrom(feed.frames$)).rejects.toMatchObject({ code: 'not-entitled' });
    testing.account.restoreAccess();
    const tickets: unknown[] = [];
    testing.service.events$.subscribe((event) => tickets.push(event));
    const client = await open();
    expect((await when(client.messages$, ({ event }) => event === 'connect-again')).data).toContain('not-entitled');
    expect(tickets).toEqual([]);
  });

  it('sends no secret', async () => {
    await start();
    const client = await open();
    await testing.push('hello');
    await eventsUntil(client, 'hello');
    testing.account.expireAccess();
    await when(client.messages$, (message) => eventsIn(message).some(({ type }) => type === 'gap'));
    const output = client.text() + started.log.raw;
    expect(output).toContain('access expired');
    expect(output).not.toMatch(/bearer |x-api-key|wss?:\/\//i);
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
  const count = 2_000;

  it('receives a gap, needs a bounded amount of memory, and delays no other browser', async () => {
    await start({ relay: { capacityBytes: 1024 * 1024, batchMs: 0 } });
    const stuck = await open();
    stuck.response.pause();
    const reader = await open();
    const behind = when(feed.relay.events$, ({ type }) => type === 'client-behind');
    for (let n = 0; n < count; n += 50) {
      await testing.push(...Array.from({ length: 50 }, (_, m) => payload(n + m)));
      await eventsUntil(reader, payload(n + 49));
    }
    stuck.response.resume();
    await behind;
    const events = await eventsUntil(stuck, payload(count - 1));
    const frames = events.filter(({ type }) => type === 'frame').length;
    const gaps = events.filter(({ type }) => type === 'gap') as unknown as { missed: number }[];
    expect(gaps.length).toBeGreaterThan(0);
    expect(frames + gaps.reduce((sum, { missed }) => sum + missed, 0)).toBe(count);
    // Nest logs this when it drops a client with too many queued messages.
    expect(started.log.raw).not.toContain('not reading its events');
    expect((await started.log.line(/reads too slowly/)).level).toBe('warn');
  }, 30_000);

  it('is disconnected when it does not read for a few heartbeats', async () => {
    await start({ relay: { heartbeatMs: 20, batchMs: 0 } });
    const stuck = await open();
    stuck.response.pause();
    const reader = await open();
    for (let n = 0; n < 1_200; n += 50) {
      await testing.push(...Array.from({ length: 50 }, (_, m) => payload(n + m)));
      await eventsUntil(reader, payload(n + 49));
    }
    expect((await started.log.line(/^Client 1 does not read/)).level).toBe('warn');
    const ended = new Promise((resolve) => stuck.response.once('close', resolve));
    stuck.response.resume();
    await ended;
    expect(stuck.response.complete).toBe(false);
  }, 30_000);

  it('receives a long history in parts, because Nest drops a client at 4 Mi characters', async () => {
    await start({ relay: { batchMs: 0, maxReplayBytes: 1e8 } });
    const first = await open();
    await testing.push('one');
    const id = await idOf(first, '"one"');
    for (let n = 0; n < 2_000; n += 50) {
      await testing.push(...Array.from({ length: 50 }, (_, m) => payload(n + m)));
      await eventsUntil(first, payload(n + 49));
    }
    const slow = await open('/feed', { 'Last-Event-ID': id });
    slow.response.pause();
    await eventsUntil(await open('/feed', { 'Last-Event-ID': id }), payload(1_999));
    slow.response.resume();
    const events = await eventsUntil(slow, payload(1_999));
    expect(events.filter(({ type }) => type === 'frame')).toHaveLength(2_000);
    expect(started.log.raw).not.toContain('not reading its events');
  }, 30_000);
});

describe('the user of a stream', () => {
  it('is counted, and can be disconnected with the message to connect again', async () => {
    await start({ relay: { maxClientsPerUser: 1, batchMs: 0 } });
    const headers = { Authorization: 'Bearer of-the-app' };
    const [ann, other] = [await open('/guarded', headers), await open()];
    expect(feed.relay.status().clients.map(({ user }) => user)).toEqual(['ann', undefined]);
    expect((await open('/guarded', headers)).response.statusCode).toBe(503);
    expect((await started.log.line(/^A client was refused/)).text).toContain('relay.maxClientsPerUser');
    expect(feed.relay.disconnect('ann')).toBe(1);
    const last = await lastValueFrom(ann.messages$);
    expect([last.event, last.data]).toEqual(['connect-again', expect.stringContaining('"relay-session-ended"')]);
    expect(ann.response.complete).toBe(true);
    expect(feed.relay.status().clients).toHaveLength(1);
    other.leave();
  });
});

describe('pipelined requests', () => {
  it('after the first one receive 400, so that one connection cannot use up the limit', async () => {
    await start();
    const raw = await Raw.open(Number(new URL(started.url).port), 'GET /feed HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100));
    await raw.until((text) => text.includes('event: hello'));
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect([feed.relay.status().clients.length, feed.relay.status().authorizing]).toEqual([1, 0]);
    // Node sends the other responses after the first one has ended.
    feed.relay.disconnect('unknown');
    raw.socket.destroy();
    await when(feed.relay.events$, ({ type }) => type === 'client-left');
    expect(feed.relay.status().clients).toEqual([]);
  });
});

describe('a shutdown', () => {
  it('asks browsers to connect again, and closes their connections, so that they reach another server', async () => {
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
    await when(feed.status$, ({ state }) => state === 'live');
    const text = textOf(first.response);
    // The server still listens, like while a load balancer removes it.
    feed.relay.close();
    expect(await text).toMatch(/event: connect-again\nid: .*\ndata: .*"relay-closing".*\n\n$/);
    // The server closes the connection after the response, although the headers of Nest say keep-alive.
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

  it('closes the connections of browsers that do not read', async () => {
    await start({ relay: { batchMs: 0 } });
    const stuck = await open();
    stuck.response.pause();
    const reader = await open();
    for (let n = 0; n < 20; n += 1) {
      await testing.push(...Array.from({ length: 50 }, () => 'x'.repeat(10_000)), `last ${n}`);
      await eventsUntil(reader, `last ${n}`);
    }
    const gone = new Promise((resolve) => stuck.response.once('close', resolve));
    await started.app.close();
    stuck.response.resume();
    await gone;
    expect(stuck.response.complete).toBe(false);
  });

  it('accepts no new browser', async () => {
    await start();
    const request = { headers: {} };
    await started.app.close();
    await expect(firstValueFrom(feed.sse(request, { authorize: 'everybody' }))).rejects.toMatchObject({ status: 503 });
  });
});
