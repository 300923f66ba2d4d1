// One replica: a NestJS application with a feed for pages. `run.mjs` starts three of them.
import 'reflect-metadata';
import { Controller, Get, Inject, Module, Req, Sse } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { connect } from '@nats-io/transport-node';
import { natsEngine } from 'rx-trade-feed/nats';
import { TradeFeed, TradeFeedHealthIndicator, TradeFeedModule } from 'rx-trade-feed/nestjs';

class FeedController {
  /**
   * @param {TradeFeed} tradeFeed
   * @param {TradeFeedHealthIndicator} indicator
   */
  constructor(tradeFeed, indicator) {
    this.tradeFeed = tradeFeed;
    this.indicator = indicator;
  }

  /** @param {import('rx-trade-feed/nestjs').SseRequest} request */
  feed(request) {
    return this.tradeFeed.sse(request, { authorize: 'everybody' }); // use a guard in your application
  }

  health() {
    return this.indicator.isHealthy();
  }
}

// What the decorators `@Controller()`, `@Sse('feed')` and so on do in TypeScript.
/** @param {string} name */
const method = (name) => [
  FeedController.prototype,
  name,
  /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(FeedController.prototype, name)),
];
Controller()(FeedController);
Inject(TradeFeed)(FeedController, undefined, 0);
Inject(TradeFeedHealthIndicator)(FeedController, undefined, 1);
Reflect.apply(Sse('feed'), undefined, method('feed'));
Req()(FeedController.prototype, 'feed', 0);
Reflect.apply(Get('health'), undefined, method('health'));

const connection = await connect({
  servers: process.env['NATS_URL'] ?? '127.0.0.1:4222',
  waitOnFirstConnect: true, // the broker may start later
  maxReconnectAttempts: -1,
  ignoreAuthErrorAbort: true, // a wrong password for a while must not end the connection for good
  pingInterval: 2_000,
  timeout: 2_000,
});
const feedModule = TradeFeedModule.forRoot({
  feed: 'market', // the address and the key are in the environment
  cluster: { engine: natsEngine(connection), account: 'main', replica: process.env['REPLICA'] },
});
class AppModule {}
Module({ imports: [feedModule], controllers: [FeedController] })(AppModule);

const app = await NestFactory.create(AppModule, { forceCloseConnections: true, logger: ['error'] });
app.enableShutdownHooks(); // on SIGTERM the replica gives the ownership away, and its pages connect to another replica
await app.listen(Number(process.env['PORT']), '127.0.0.1');
process.send?.('ready');
