import { describe, expect, it } from '@jest/globals';
import { Controller, Req, Sse } from '@nestjs/common';
import { lastValueFrom, NEVER, take, toArray } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import { type SseOptions, type SseRequest, TradeFeed, TradeFeedTestingModule } from '../../src/nestjs/index.js';
import { frames } from '../../src/operators/index.js';
import { atEnd, serveFeed, serveRelay } from '../browser/support.js';
import { FeedController, get, startApp } from '../nestjs/support.js';
import { frame, Raw, type Web } from '../relay/support.js';
import { waitFor } from '../support/wait-for.js';

const allowed = 'https://app.example';

@Controller()
class Routes extends FeedController {
  @Sse('open')
  open(@Req() request: SseRequest) {
    return this.tradeFeed.sse(request, undefined as unknown as SseOptions);
  }

  @Sse('other')
  other(@Req() request: SseRequest) {
    return this.tradeFeed.sse(request, { authorize: 'everybody', allowOrigins: [allowed] });
  }
}

/** Starts an application with the module, until the end of the test. `ask` requests a stream. */
const start = async (...controllers: readonly (typeof Routes)[]) => {
  const started = await startApp({ imports: [TradeFeedTestingModule.forRoot()], controllers: [...controllers] });
  atEnd(() => started.app.close());
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const response = await get(started.url + path, headers);
    const cors = Object.keys(response.headers).filter((name) => name.startsWith('access-control-'));
    response.resume().destroy();
    return { status: response.statusCode, cors };
  };
  return { ...started, ask };
};

describe('the module of NestJS', () => {
  it('creates no route, so no page can read before the application defines one', async () => {
    const { ask } = await start();
    for (const path of ['/', '/feed', '/relay', '/events', '/status', '/health'])
      expect(await ask(path)).toMatchObject({ status: 404 });
  });

  it('answers a page of another origin with 403 unless `sse()` allows that origin', async () => {
    const { app, ask, url } = await start(Routes);
    for (const origin of [allowed, 'null', 'http://127.0.0.1'])
      expect(await ask('/feed', { origin })).toEqual({ status: 403, cors: [] });
    expect(app.get(TradeFeed).status.state).toBe('idle');
    expect(await ask('/feed')).toMatchObject({ status: 200 });
    expect(await ask('/feed', { origin: url })).toMatchObject({ status: 200 });
    expect(await ask('/other', { origin: allowed })).toMatchObject({ status: 200 });
    expect(await ask('/other', { origin: 'https://app.example.evil' })).toMatchObject({ status: 403 });
  });

  it('refuses `sse()` without `authorize`, and says so', async () => {
    const { app, ask, log } = await start(Routes);
    expect(await ask('/open')).toMatchObject({ status: 500 });
    expect(app.get(TradeFeed).status.state).toBe('idle');
    expect(log.raw).toContain("`authorize` must be 'guard' or 'everybody': it decides who may read");
  });
});

const headOf = async (web: Web, headers: Readonly<Record<string, string>>): Promise<string> => {
  const raw = await Raw.get(web.port, headers);
  const head = (await raw.until((all) => all.includes('\r\n\r\n'))).toLowerCase();
  raw.socket.destroy();
  return head;
};

describe('a relay with default options', () => {
  it('calls `authorize` again each time a page reconnects', async () => {
    let isIn = true;
    const { web } = await serveFeed(NEVER, {}, { authorize: () => isIn });
    expect(await headOf(web, {})).toMatch(/^http\/1\.1 200 /);
    isIn = false;
    expect(await headOf(web, { 'last-event-id': 'lx-0.1.1.1' })).toMatch(/^http\/1\.1 403 /);
  });
});

it('a payload cannot end its message and start another, whatever line ends it contains', async () => {
  const forged = [
    'a\n\nevent: complete\ndata: {}\n\n',
    'b\r\rid: 9\r\rdata: x',
    'c\u2028\u2029\u0000d',
    '{"type":"complete"}',
  ];
  const { relay, source, web } = await serveRelay({ lingerMs: 0 });
  const received = lastValueFrom(relayFeed$(web.url).pipe(frames(), take(forged.length), toArray()));
  const raw = await Raw.get(web.port);
  await raw.until((all) => all.includes('event: hello'));
  await waitFor(() => relay.status().clients.length === 2);
  for (const payload of forged) source.emit(frame(payload));
  expect((await received).map((each) => each.text())).toEqual(forged);
  const wire = await raw.until((all) => all.split('"type":"frame"').length > forged.length);
  expect(wire).not.toMatch(/^event: complete|^id: 9\s|\r(?!\n)/m);
  raw.socket.destroy();
});
