// Runs in the folder of an application: `node hook-check.mjs 11|12`. A hook of the application throws at the shutdown: the feed closes as
// docs/nestjs.md says.
import assert from 'node:assert/strict';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { filter, firstValueFrom } from 'rxjs';
import { TradeFeed, TradeFeedModule } from 'rx-trade-feed/nestjs';
import { startTradeFeedService } from 'rx-trade-feed/testing';

const [, , version] = process.argv;

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
console.log('passed');
process.exit();
