// Checks decoders in a page of Chromium whose Content-Security-Policy disallows code generation: their values, and the reported violations.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { build } from 'esbuild';
import { launchChromium, newPage } from './support.mjs';

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
  globalThis.result = new Promise((done) => {
    const violations = [];
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
      if (effectiveDirective === 'img-src') done({ values, violations });
      else violations.push(effectiveDirective);
    });
    const values = [];
    for (let n = 0; n < 5; n += 1) {
      const codec = t.type({ n: t.number });
      frames$.pipe(decodeWith(codec)).subscribe(({ value }) => values.push(value.n));
      frames$.pipe(decodeEither(codec)).subscribe((either) => values.push(either.right?.value.n ?? either._tag));
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
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  server?.close();
  server?.closeAllConnections();
});

const decodeAll = async (pagePolicy) => {
  policy = pagePolicy;
  const { page, close } = await newPage(browser);
  try {
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    return await page.evaluate(() => globalThis.result);
  } finally {
    await close();
  }
};

const strict = "script-src 'self'";
const trustedTypes = "script-src 'self' 'unsafe-eval'; require-trusted-types-for 'script'";

test('decoders report no violation under a policy that disallows eval', async () => {
  for (const pagePolicy of [strict, trustedTypes])
    assert.deepEqual(await decodeAll(pagePolicy), { values, violations: [] });
});
