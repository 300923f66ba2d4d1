// What an application that was made by the guide must do: stream frames to its log and to browsers, and end cleanly.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { filter, firstValueFrom } from 'rxjs';
import { marketBatches$, startTradeFeedService } from '../../../dist/testing/index.js';
import { freePort, start } from './app.mjs';

/** Runs the built application against the local service, from its start to SIGTERM. */
export const streamsFrames = async (app) => {
  const service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 50 }) } });
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const port = await freePort();
  const { PATH } = process.env;
  const env = {
    PATH,
    PORT: String(port),
    TRADE_FEED_BASE_URL: service.baseUrl,
    TRADE_FEED_API_KEY: apiKey,
    NO_COLOR: '1',
  };
  const program = start(process.execPath, ['dist/main.js'], app, env);
  try {
    await program.printed(/Nest application successfully started/);
    await program.printed(/\[TradeFeed\] Connected to market \(connection 1\)/);
    await program.printed(/\[FeedService\] The first frame has \d+ bytes/);

    const url = `http://127.0.0.1:${port}`;
    assert.equal((await fetch(`${url}/feed`)).status, 403);
    const health = await (await fetch(`${url}/health`)).json();
    assert.equal(health.details['trade-feed'].state, 'live');

    const response = await fetch(`${url}/feed`, { headers: { authorization: 'Bearer of-your-app' } });
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    const sent = await textUntil(response, /"type":"frame"/);
    assert.match(sent, /"type":"opened","at":\d+,"feed":"market","connection":1/);

    // With a browser that stays: it must not hold the end up.
    const stays = await fetch(`${url}/feed`, { headers: { authorization: 'Bearer of-your-app' } });
    const closed = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'connection-closed')));
    const ended = once(program.child, 'close');
    const askedAt = performance.now();
    program.child.kill('SIGTERM');
    const [code, signal] = await ended;
    assert.deepEqual([code, signal], [null, 'SIGTERM']);
    assert.ok(performance.now() - askedAt < 10_000, 'it took too long to end');
    const { by, code: closeCode } = await closed;
    assert.deepEqual([by, closeCode], ['client', 1000]);
    await stays.text(); // ended, not broken off
    assert.match(program.output(), /\[TradeFeed\] Closed: the application shuts down/);
    assert.ok(!(program.output() + sent).includes(apiKey), 'the key was shown');
  } finally {
    program.child.kill('SIGKILL');
    await service.shutdown();
  }
};

const textUntil = async (response, pattern) => {
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (pattern.test(text)) return text;
  }
  throw new Error(`The answer ended without ${pattern}:\n${text}`);
};
