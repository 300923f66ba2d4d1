// Follows docs/nestjs.md in a new application of a version of NestJS: it installs, compiles, streams frames to its log and to browsers, and stops cleanly.
import assert from 'node:assert/strict';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { filter, firstValueFrom } from 'rxjs';
import { marketBatches$, startTradeFeedService } from '../../../dist/testing/index.js';
import { freePort } from '../../peers/program.mjs';
import { buildLimitMs, launchChromium, newPage, run, start, temporaryFolder } from '../support.mjs';
import { createApp } from './app.mjs';

/** Defines the tests of a version. `prepare` changes the application before it's `compiled` into this, and `passed` is the last line of `npm test`. */
export const testGuide = ({ version, section, prepare, compiled, passed, testArgs = [] }) =>
  test(`NestJS ${version}`, async (t) => {
    const { app, addFastify } = await createApp(temporaryFolder('rx-trade-feed-nestjs-'), version, section);
    const env = { ...process.env, NO_COLOR: '1', CI: 'true' };
    const inApp = (program, ...args) => run(program, args, { cwd: app, env, timeout: buildLimitMs });

    await t.test('compiles with the settings of its template, without a type error', async () => {
      await prepare?.(app);
      await inApp(join(app, 'node_modules/.bin/nest'), 'build');
      assert.match(await readFile(join(app, 'dist/app.module.js'), 'utf8'), compiled);
    });
    await t.test('streams frames to its log, to browsers and to the page of the guide, and stops on SIGTERM', () =>
      checkStreams(app),
    );
    await t.test('passes the tests of the guide and of `nest new` with `npm test`', async () =>
      // On a busy machine a test can take longer than the 5 s of jest and vitest.
      assert.match(await inApp('npm', 'test', '--', '--testTimeout=60000', ...testArgs), passed),
    );
    await t.test(
      'streams over Express and over Fastify, frees the places of pages that leave, and closes the feed if a hook throws',
      async () => {
        await addFastify();
        await copyFile(new URL('checks.mjs', import.meta.url), join(app, 'checks.mjs'));
        for (const adapter of ['express', 'fastify'])
          assert.match(await inApp(process.execPath, 'checks.mjs', adapter, String(version)), /passed/);
      },
    );
  });

/** Runs the built application with the local service, from its start to SIGTERM. */
const checkStreams = async (app) => {
  const service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 50 }) } });
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const feed = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: apiKey };
  const env = { PATH: process.env.PATH, PORT: String(port), NO_COLOR: '1', ...feed };
  const program = start(undefined, process.execPath, ['dist/main.js'], { cwd: app, env });
  const browser = await launchChromium();
  try {
    await program.printed(/Nest application successfully started/);
    await checkPage(browser, `${url}/page`);
    await program.printed(/\[TradeFeed\] Connected to market \(connection 1\)/);
    await program.printed(/\[FeedService\] The first frame has \d+ bytes/);

    assert.equal((await fetch(`${url}/feed`)).status, 403);
    const health = await (await fetch(`${url}/health`)).json();
    assert.equal(health.details['trade-feed'].state, 'live');

    // A connected browser would hold up the shutdown indefinitely.
    const connected = await fetch(`${url}/feed`, { headers: { authorization: 'Bearer of-your-app' } });
    assert.equal(connected.headers.get('content-type'), 'text/event-stream');
    const reader = connected.body.pipeThrough(new TextDecoderStream()).getReader();
    let sent = '';
    while (!/"type":"frame"/.test(sent)) sent += (await reader.read()).value;
    const closed = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'connection-closed')));
    assert.equal(await program.stop(), 'SIGTERM');
    const { by, code: closeCode } = await closed;
    assert.deepEqual([by, closeCode], ['client', 1000]);
    while (!(await reader.read()).done); // the response ends normally
    assert.match(sent, /"type":"opened","at":\d+,"feed":"market","connection":1/);
    const { stdout, stderr } = program.output;
    assert.match(stdout, /\[TradeFeed\] Closed: the application shuts down/);
    assert.ok(!(stdout + stderr + sent).includes(apiKey), 'the output contains no key');
  } finally {
    await program.stop('SIGKILL');
    await browser.close();
    await service.shutdown();
  }
};

/** Opens the guide's page in Chromium and waits for frames. */
const checkPage = async (browser, url) => {
  const { page, errors, close } = await newPage(browser);
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector('#list').textContent.trim().split('\n').length === 20);
  assert.equal(await page.textContent('#state'), 'opened');
  const newest = await page.evaluate(() => document.querySelector('#list').firstChild.textContent);
  assert.equal(typeof JSON.parse(newest), 'object');
  await page.waitForFunction((old) => document.querySelector('#list').firstChild.textContent !== old, newest);
  assert.deepEqual(errors, []);
  await close();
};
