// Checks an application of the guide: it streams frames to its log and to browsers, and stops cleanly.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { filter, firstValueFrom } from 'rxjs';
import { marketBatches$, startTradeFeedService } from '../../../dist/testing/index.js';
import { freePort, start } from './app.mjs';

/** Runs the built application with the local service, from its start to SIGTERM. */
export const checkStreams = async (app) => {
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

    // A connected browser must not delay the shutdown.
    const connected = await fetch(`${url}/feed`, { headers: { authorization: 'Bearer of-your-app' } });
    const closed = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'connection-closed')));
    const ended = once(program.child, 'close');
    const signalledAt = performance.now();
    program.child.kill('SIGTERM');
    const [code, signal] = await ended;
    assert.deepEqual([code, signal], [null, 'SIGTERM']);
    assert.ok(performance.now() - signalledAt < 10_000, 'the shutdown took too long');
    const { by, code: closeCode } = await closed;
    assert.deepEqual([by, closeCode], ['client', 1000]);
    await connected.text(); // the response ended normally
    assert.match(program.output(), /\[TradeFeed\] Closed: the application shuts down/);
    assert.ok(!(program.output() + sent).includes(apiKey), 'the output contains no key');
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
  throw new Error(`The response ended without ${pattern}:\n${text}`);
};
