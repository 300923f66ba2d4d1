// Runs in the folder of an application: `node checks.mjs express|fastify 11|12`. Checks streams over that adapter: resume, refusal, shutdown; pages that
// leave while their handler or an interceptor waits; and a hook of the application that throws at the shutdown.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as requestPage } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { Controller, Module, Req, Sse, UseGuards, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { delay, EMPTY, filter, firstValueFrom, from, of, shareReplay, switchMap } from 'rxjs';
import { TradeFeed, TradeFeedModule, TradeFeedTesting, TradeFeedTestingModule } from 'rx-trade-feed/nestjs';
import { startTradeFeedService } from 'rx-trade-feed/testing';

const [, , adapter, version] = process.argv;

/** Starts an application with a route for each name: `handle` gets the name and the stream of the feed. `decorators` are those of its routes. */
const startApp = async (options, names, handle, decorators = () => []) => {
  class FeedController {
    constructor(tradeFeed) {
      this.tradeFeed = tradeFeed;
    }
  }
  // What decorators compile to.
  for (const name of names) {
    FeedController.prototype[name] = function (request) {
      return handle(name, () => this.tradeFeed.sse(request, { authorize: 'everybody' }));
    };
    for (const decorate of [Sse(name), ...decorators(name)])
      decorate(FeedController.prototype, name, Object.getOwnPropertyDescriptor(FeedController.prototype, name));
    Req()(FeedController.prototype, name, 0);
  }
  Reflect.defineMetadata('design:paramtypes', [TradeFeed], FeedController);
  Controller()(FeedController);
  class AppModule {}
  Module({ imports: [TradeFeedTestingModule.forRoot(options)], controllers: [FeedController] })(AppModule);
  const server = adapter === 'fastify' ? [new (await import('@nestjs/platform-fastify')).FastifyAdapter()] : [];
  const app = await NestFactory.create(AppModule, ...server, { logger: false });
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl(), relay: app.get(TradeFeed).relay };
};

/** Streams resume, are refused when the relay is full, and end with the application. */
const checkStreams = async () => {
  const limits = { backlogBytes: 64 * 1024 * 1024 };
  const options = { relay: { maxClients: 1, batchMs: 0 }, service: { limits } };
  const { app, url, relay } = await startApp(options, ['feed'], (_, stream) => stream());
  const testing = app.get(TradeFeedTesting);

  const open = async (headers = {}) => {
    const leave = new AbortController();
    const response = await fetch(`${url}/feed`, { headers, signal: leave.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    return { response, leave, reader, text: '', newest: '' };
  };
  const read = async (client, pattern) => {
    for (;;) {
      // Searches only the newest part: the whole text is megabytes long, and a search would copy it into one piece each time.
      const [found] = pattern.exec(client.newest) ?? [];
      if (found !== undefined) return found;
      const { done, value } = await client.reader.read();
      assert.ok(!done, `the response ended without ${pattern}`);
      client.text += value;
      client.newest = (client.newest + value).slice(-300_000);
    }
  };

  const first = await open();
  assert.equal(first.response.headers.get('content-type'), 'text/event-stream');
  await testing.push('one');
  const [, id] = /^id: (\S+)$/m.exec(await read(first, /id: \S+\n(?:data: .*\n)*data: .*"data":"one"/));

  const refused = await fetch(`${url}/feed`);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '5']);
  assert.equal((await refused.json()).statusCode, 503);

  const left = firstValueFrom(relay.events$.pipe(filter(({ type }) => type === 'client-left')));
  first.leave.abort();
  await left;
  await testing.push('two');

  // A client that resumes gets a long history but doesn't read at first. Nest mustn't get more than it can queue.
  const long = 'x'.repeat(100_000);
  for (let n = 0; n < 100; n += 1) await testing.push(long);
  const second = await open({ 'last-event-id': id });
  await testing.push('last');
  await read(second, /"data":"last"/);
  assert.equal(second.text.split('"type":"frame"').length - 1, 102);
  assert.ok(!second.text.includes('"type":"gap"'));

  const ended = second.reader.closed;
  void read(second, /never/).catch(() => undefined);
  // An open response would hold this up indefinitely.
  await app.close();
  await ended;
};

/** Where the current route waits: `reached` resolves there, and `go` lets it continue. */
let gate;
const newGate = () => {
  gate = {};
  gate.reached = new Promise((resolve) => (gate.reach = resolve));
  gate.left = new Promise((resolve) => (gate.go = resolve));
};
const wait = async (then) => {
  gate.reach();
  await gate.left;
  return then?.();
};

const interceptors = {
  'waits first': (next) => wait(() => next.handle()),
  'waits for the stream': (next) => from(wait()).pipe(switchMap(() => next.handle())),
  'never unsubscribes': (next) => next.handle().pipe(shareReplay({ bufferSize: 1, refCount: false })),
  'never handles': () => wait(() => EMPTY),
};
const failing = () => {
  throw new Error('of the handler');
};
const handlers = {
  async: (stream) => wait(stream),
  'async, called before': (stream) => {
    const messages$ = stream();
    return wait(() => messages$);
  },
  'async, throws': () => wait(failing),
  'a delayed stream': (stream) => wait(() => of(0).pipe(delay(1), switchMap(stream))),
};
const guard = { canActivate: () => wait(() => true) };

/** No place of the relay stays taken if a page leaves while something waits, in whatever order that goes on. */
const checkLeaving = async () => {
  const rows = ['no interceptor', 'a guard waits', ...Object.keys(interceptors)].flatMap((interceptor) =>
    Object.keys(handlers).map((handler) => [interceptor, handler]),
  );
  const names = rows.map((_, n) => `feed${n}`);
  const rowOf = (name) => rows[names.indexOf(name)];
  let subscribed = 0;
  const handle = (name, stream) =>
    handlers[rowOf(name)[1]](() => {
      subscribed += 1;
      return stream();
    });
  const decorators = (name) => {
    const [interceptor] = rowOf(name);
    if (interceptor === 'a guard waits') return [UseGuards(guard)];
    const intercept = (_context, next) => interceptors[interceptor](next);
    return interceptor === 'no interceptor' ? [] : [UseInterceptors({ intercept })];
  };
  const { app, url, relay } = await startApp({ relay: { lingerMs: 1 } }, names, handle, decorators);
  const server = app.getHttpServer();
  const leaks = [];
  for (const name of names) {
    newGate();
    const page = requestPage(`${url}/${name}`).on('error', () => undefined);
    const answered = once(page.end(), 'response').catch(() => undefined);
    await Promise.race([gate.reached, answered]);
    page.destroy();
    // Until the server has noticed.
    while ((await new Promise((resolve) => server.getConnections((_, count) => resolve(count)))) > 0) await turn();
    gate.go();
    for (let n = 0; n < 20; n += 1) await new Promise((resolve) => setTimeout(resolve, 1));
    const places = relay.status().clients.length + relay.status().authorizing;
    if (places > leaks.length) leaks.push(rowOf(name).join(' / '));
  }
  assert.ok(subscribed > 0);
  assert.deepEqual(leaks, []);
  await app.close();
};

/** The feed closes as docs/nestjs.md says. */
const checkHook = async () => {
  const service = await startTradeFeedService();
  const apiKey = service.createAccount().createApiKey();

  class Failing {
    async onModuleDestroy() {
      throw new Error('of the hook');
    }
  }
  class AppModule {}
  Module({
    imports: [TradeFeedModule.forRoot({ baseUrl: service.baseUrl, apiKey, connect: 'bootstrap' })],
    providers: [Failing],
  })(AppModule);

  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const feed = app.get(TradeFeed);
  await firstValueFrom(feed.status$.pipe(filter(({ state }) => state === 'live')));
  const closed = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'connection-closed')));
  const error = await app.close().catch((thrown) => thrown);
  if (version === '11') {
    assert.equal(error?.message, 'of the hook');
    assert.equal(feed.status.state, 'live');
    await feed.beforeApplicationShutdown();
  } else assert.equal(error, undefined);
  const { by, code } = await closed;
  assert.deepEqual([by, code, feed.status.state], ['client', 1000, 'idle']);
};

await checkStreams();
await checkLeaving();
await checkHook();
console.log('passed');
process.exit();
