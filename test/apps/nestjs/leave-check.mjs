// Runs in the folder of an application: `node leave-check.mjs express|fastify`. A page leaves while a handler or an interceptor of its route
// still waits; then they go on in every order. No place of the relay may stay taken.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { Controller, Module, Req, Sse, UseGuards, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { delay, EMPTY, from, of, shareReplay, switchMap } from 'rxjs';
import { TradeFeed, TradeFeedTestingModule } from 'rx-trade-feed/nestjs';

const [, , adapter] = process.argv;

/** Where the current route waits: `reached` resolves there, and `go` lets it continue. */
let gate;
const newGate = () => {
  gate = {};
  gate.reached = new Promise((resolve) => (gate.reach = resolve));
  gate.left = new Promise((resolve) => (gate.go = resolve));
};
const waitHere = async () => {
  gate.reach();
  await gate.left;
};

const interceptors = {
  'waits first': async (next) => {
    await waitHere();
    return next.handle();
  },
  'waits for the stream': (next) => from(waitHere()).pipe(switchMap(() => next.handle())),
  'never unsubscribes': (next) => next.handle().pipe(shareReplay({ bufferSize: 1, refCount: false })),
  'never handles': async () => {
    await waitHere();
    return EMPTY;
  },
};
const handlers = {
  async: async (stream) => {
    await waitHere();
    return stream();
  },
  'async, called before': async (stream) => {
    const messages$ = stream();
    await waitHere();
    return messages$;
  },
  'async, throws': async () => {
    await waitHere();
    throw new Error('of the handler');
  },
  'a delayed stream': async (stream) => {
    await waitHere();
    return of(0).pipe(
      delay(1),
      switchMap(() => stream()),
    );
  },
};
const guard = {
  canActivate: async () => {
    await waitHere();
    return true;
  },
};
const rows = ['no interceptor', 'a guard waits', ...Object.keys(interceptors)].flatMap((interceptor) =>
  Object.keys(handlers).map((handler) => ({ interceptor, handler })),
);

class FeedController {
  constructor(tradeFeed) {
    this.tradeFeed = tradeFeed;
  }
}
let subscribed = 0;
for (const [n, { interceptor, handler }] of rows.entries()) {
  const name = `feed${n}`;
  FeedController.prototype[name] = function (request) {
    return handlers[handler](() => {
      subscribed += 1;
      return this.tradeFeed.sse(request, { authorize: 'everybody' });
    });
  };
  Sse(name)(FeedController.prototype, name, Object.getOwnPropertyDescriptor(FeedController.prototype, name));
  Req()(FeedController.prototype, name, 0);
  const intercept = (_context, next) => interceptors[interceptor](next);
  const before = {
    'no interceptor': [],
    'a guard waits': [UseGuards(guard)],
  }[interceptor] ?? [UseInterceptors({ intercept })];
  for (const decorate of before)
    decorate(FeedController.prototype, name, Object.getOwnPropertyDescriptor(FeedController.prototype, name));
}
Reflect.defineMetadata('design:paramtypes', [TradeFeed], FeedController);
Controller()(FeedController);

class AppModule {}
Module({ imports: [TradeFeedTestingModule.forRoot({ relay: { lingerMs: 1 } })], controllers: [FeedController] })(
  AppModule,
);

const options = { logger: false };
const app =
  adapter === 'fastify'
    ? await NestFactory.create(AppModule, new (await import('@nestjs/platform-fastify')).FastifyAdapter(), options)
    : await NestFactory.create(AppModule, options);
await app.listen(0, '127.0.0.1');
const { relay } = app.get(TradeFeed);

const leaks = [];
for (const [n, { interceptor, handler }] of rows.entries()) {
  newGate();
  const page = request(`${await app.getUrl()}/feed${n}`).on('error', () => undefined);
  const answered = once(page.end(), 'response').catch(() => undefined);
  await Promise.race([gate.reached, answered]);
  page.destroy();
  // Until the server has noticed.
  const server = app.getHttpServer();
  while ((await new Promise((resolve) => server.getConnections((_, count) => resolve(count)))) > 0) await turn();
  gate.go();
  for (let n = 0; n < 20; n += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  const places = relay.status().clients.length + relay.status().authorizing;
  if (places > leaks.length) leaks.push(`${interceptor} / ${handler}`);
}
assert.ok(subscribed > 0);
assert.deepEqual(leaks, []);
await app.close();
console.log(`${adapter} passed`);
process.exit();
