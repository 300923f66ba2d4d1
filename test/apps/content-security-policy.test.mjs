// Checks decoders in a page of Chromium whose Content-Security-Policy disallows code generation: their values, and the reported violations.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { build } from 'esbuild';
import { chromium as chromiumDriver } from 'playwright-core';
import { chromium, chromiumArgs } from './support.mjs';

/** Decodes with ten decoders. The result contains the values and the reported violations. */
const program = `
  import * as t from 'io-ts';
  import { of } from 'rxjs';
  import { Frame } from './src/browser/index.ts';
  import { decodeEither, decodeWith } from './src/operators/index.ts';

  const encoder = new TextEncoder();
  const texts = ['{"n":1}', '{"n":"x"}', '{"n":2}'];
  const frames$ = of(...texts.map((text) => new Frame('raw', encoder.encode(text), false, 0, 1)));

  // Starts here, because code that a driver evaluates may use eval under any policy.
  const options = JSON.parse(decodeURIComponent(location.search.slice(1)));
  globalThis.result = new Promise((done) => {
    const violations = [];
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
      if (effectiveDirective === 'img-src') done({ values, violations });
      else violations.push(effectiveDirective);
    });
    const values = [];
    for (let n = 0; n < 5; n += 1) {
      const codec = t.type({ n: t.number });
      frames$.pipe(decodeWith(codec, options)).subscribe(({ value }) => values.push(value.n));
      frames$.pipe(decodeEither(codec, options)).subscribe((either) => values.push(either.right?.value.n ?? either._tag));
    }
    // Violations are reported in order, so all those of the decoders precede this one.
    new Image().src = '/image';
  });`;

const values = Array.from({ length: 5 }, () => [1, 2, 1, 'Left', 2]).flat();

let policy;
let server;
let browser;

before(async () => {
  const { outputFiles } = await build({
    ...{ stdin: { contents: program, resolveDir: process.cwd(), loader: 'ts' }, bundle: true, write: false },
    ...{ format: 'iife', platform: 'browser', logLevel: 'silent' },
  });
  server = createServer(({ url }, response) => {
    if (url === '/program.js') response.setHeader('content-type', 'text/javascript').end(outputFiles[0].text);
    else
      response
        .setHeader('content-type', 'text/html')
        .setHeader('content-security-policy', `${policy}; img-src 'none'`)
        .end('<!doctype html><title>decoders</title><script src="/program.js"></script>');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  browser = await chromiumDriver.launch({ executablePath: chromium(), args: chromiumArgs });
});
after(async () => {
  await browser?.close();
  server?.close();
  server?.closeAllConnections();
});

const decodeAll = async (pagePolicy, options = {}) => {
  policy = pagePolicy;
  const page = await browser.newPage();
  // A machine can be busy.
  page.setDefaultTimeout(60_000);
  try {
    const query = encodeURIComponent(JSON.stringify(options));
    await page.goto(`http://127.0.0.1:${server.address().port}/?${query}`);
    return await page.evaluate(() => globalThis.result);
  } finally {
    await page.close();
  }
};

const strict = "script-src 'self'";
const trustedTypes = "script-src 'self' 'unsafe-eval'; require-trusted-types-for 'script'";

test('ten decoders report one violation where eval is disallowed', async () => {
  assert.deepEqual(await decodeAll(strict), { values, violations: ['script-src'] });
});

test('ten decoders report one violation where Trusted Types are required', async () => {
  assert.deepEqual(await decodeAll(trustedTypes), { values, violations: ['require-trusted-types-for'] });
});

test('decoders with `compile: false` report no violation', async () => {
  for (const pagePolicy of [strict, trustedTypes])
    assert.deepEqual(await decodeAll(pagePolicy, { compile: false }), { values, violations: [] });
});

test('decoders report no violation where eval is allowed', async () => {
  assert.deepEqual(await decodeAll("script-src 'self' 'unsafe-eval'"), { values, violations: [] });
});
