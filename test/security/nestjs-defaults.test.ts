import { Controller, Req, Sse } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type SseOptions, type SseRequest, TradeFeed, TradeFeedTestingModule } from '../../src/nestjs/index.js';
import { type App, get, startApp } from '../nestjs/support.js';

const app = 'https://app.example';

@Controller()
class FeedController {
  readonly #tradeFeed: TradeFeed;
  constructor(tradeFeed: TradeFeed) {
    this.#tradeFeed = tradeFeed;
  }

  @Sse('open')
  open(@Req() request: SseRequest) {
    return this.#tradeFeed.sse(request, undefined as unknown as SseOptions);
  }

  @Sse('feed')
  feed(@Req() request: SseRequest) {
    return this.#tradeFeed.sse(request, { authorize: 'everybody' });
  }

  @Sse('other')
  other(@Req() request: SseRequest) {
    return this.#tradeFeed.sse(request, { authorize: 'everybody', allowOrigins: [app] });
  }
}

let started: App;
afterEach(async () => started.app.close());

/** Requests a stream. Returns the status and the CORS headers. */
const ask = async (path: string, headers: Record<string, string> = {}) => {
  const response = await get(started.url + path, headers);
  const cors = Object.keys(response.headers).filter((name) => name.startsWith('access-control-'));
  response.resume().destroy();
  return { status: response.statusCode, cors };
};

describe('the module of NestJS', () => {
  it('creates no route: a page cannot read before the application defines one', async () => {
    started = await startApp({ imports: [TradeFeedTestingModule.forRoot()] });
    for (const path of ['/', '/feed', '/relay', '/events', '/status', '/health'])
      expect(await ask(path)).toMatchObject({ status: 404 });
  });

  it('answers a page of another origin with 403, unless `sse()` allows the origin', async () => {
    started = await startApp({ imports: [TradeFeedTestingModule.forRoot()], controllers: [FeedController] });
    for (const origin of [app, 'null', 'http://127.0.0.1'])
      expect(await ask('/feed', { origin })).toEqual({ status: 403, cors: [] });
    expect(started.app.get(TradeFeed).status.state).toBe('idle');
    expect(await ask('/feed')).toMatchObject({ status: 200 });
    expect(await ask('/feed', { origin: started.url })).toMatchObject({ status: 200 });
    expect(await ask('/other', { origin: app })).toMatchObject({ status: 200 });
    expect(await ask('/other', { origin: 'https://app.example.evil' })).toMatchObject({ status: 403 });
  });

  it('refuses `sse()` without `authorize`, and says so', async () => {
    started = await startApp({ imports: [TradeFeedTestingModule.forRoot()], controllers: [FeedController] });
    expect(await ask('/open')).toMatchObject({ status: 500 });
    expect(started.app.get(TradeFeed).status.state).toBe('idle');
    expect(started.log.raw).toContain("`authorize` must be 'guard' or 'everybody': it decides who may read");
  });

  it.each<[string, unknown]>([
    ['authorize', undefined],
    ['authorize', {}],
    ['authorize', { authorize: true }],
    ['authorize', { allowOrigins: [app] }],
    ['allowOrigins', { authorize: 'guard', allowOrigins: ['app.example'] }],
    ['cors', { authorize: 'guard', cors: '*' }],
  ])('refuses invalid options in the call itself, and names the wrong one: %s', async (name, options) => {
    started = await startApp({ imports: [TradeFeedTestingModule.forRoot()] });
    const call = () => started.app.get(TradeFeed).sse({ headers: {} }, options as SseOptions);
    expect(call).toThrow(`\`${name}\` must be`);
  });
});
