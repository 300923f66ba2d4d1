// Runs in the folder of an application: `node adapter-check.mjs express|fastify`. Checks streams over that adapter: resume, refusal, shutdown.
import assert from 'node:assert/strict';
import { Controller, Module, Req, Sse } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { filter, firstValueFrom } from 'rxjs';
import { TradeFeed, TradeFeedTesting, TradeFeedTestingModule } from 'rx-trade-feed/nestjs';

const [, , adapter] = process.argv;

class FeedController {
  constructor(tradeFeed) {
    this.tradeFeed = tradeFeed;
  }
  feed(request) {
    return this.tradeFeed.sse(request, { authorize: 'everybody' });
  }
}
// What decorators compile to.
Sse('feed')(FeedController.prototype, 'feed', Object.getOwnPropertyDescriptor(FeedController.prototype, 'feed'));
Req()(FeedController.prototype, 'feed', 0);
Reflect.defineMetadata('design:paramtypes', [TradeFeed], FeedController);
Controller()(FeedController);

class AppModule {}
Module({
  imports: [
    TradeFeedTestingModule.forRoot({
      relay: { maxClients: 1, batchMs: 0 },
      service: { limits: { backlogBytes: 64 * 1024 * 1024 } },
    }),
  ],
  controllers: [FeedController],
})(AppModule);

const options = { logger: ['error', 'warn'] };
const app =
  adapter === 'fastify'
    ? await NestFactory.create(AppModule, new (await import('@nestjs/platform-fastify')).FastifyAdapter(), options)
    : await NestFactory.create(AppModule, options);
await app.listen(0, '127.0.0.1');
const url = `${await app.getUrl()}/feed`;
const testing = app.get(TradeFeedTesting);
const { relay } = app.get(TradeFeed);

const open = async (headers = {}) => {
  const leave = new AbortController();
  const response = await fetch(url, { headers, signal: leave.signal });
  return {
    response,
    leave,
    reader: response.body.pipeThrough(new TextDecoderStream()).getReader(),
    text: '',
    newest: '',
  };
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

const refused = await fetch(url);
assert.equal(refused.status, 503);
assert.equal(refused.headers.get('retry-after'), '5');
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

const end = (async () => {
  while (!(await second.reader.read()).done);
})();
// An open response would hold this up indefinitely.
await app.close();
await end;
console.log(`${adapter} passed`);
process.exit();
