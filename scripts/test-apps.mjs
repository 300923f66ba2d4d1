// Runs the tests with whole apps: NestJS and Angular apps that install the packed package, and the example app in Chromium.
// Installs what is missing on the machine: Chromium from Debian, a newer Node from npm. Ends with the line `N passed, N failed`.
//
//   npm run test:apps
//   npm run test:apps -- example-app               the files with this in their name
//   npm run test:apps -- example-app --without speed
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildApp } from '../test/apps/example-app/build-app.mjs';
import { chromium, newerNode, tarball } from '../test/apps/support.mjs';
import { buildPackage, finish, prepare, runTests, testFiles } from './run-tests.mjs';

const { values, positionals: names } = parseArgs({
  options: { without: { type: 'string', multiple: true } },
  allowPositionals: true,
});
const files = testFiles('test/apps', names, values.without);
const examples = files.filter((file) => file.includes('example-app'));
const others = files.filter((file) => !examples.includes(file));

/** Prints a step before it begins: it may take a minute. */
const step = async (what, action) => {
  const started = performance.now();
  process.stdout.write(`… ${what}`);
  const result = await action();
  console.log(` (${((performance.now() - started) / 1_000).toFixed(1)} s)`);
  return result;
};

await prepare(async () => {
  await step('building the package', buildPackage);
  process.env.RX_TRADE_FEED_TARBALL = await step('packing the package', tarball);
  process.env.RX_TRADE_FEED_NODE = await step('installing a Node version that Angular supports', newerNode);
  process.env.CHROMIUM_PATH = await step('installing Chromium', chromium);
  if (examples.length === 0) return;
  const shared = process.env.RX_TRADE_FEED_EXAMPLE_IN;
  const isBuilt = shared !== undefined && existsSync(join(shared, 'dist'));
  process.env.RX_TRADE_FEED_EXAMPLE = isBuilt ? shared : (await step('building the example app', buildApp)).folder;
});

const timeoutMs = 10 * 60_000;
const results = [
  ...(others.length > 0 ? [await runTests(others, { concurrency: 2, timeoutMs })] : []),
  // One at a time: they measure what a page does in a time.
  ...(examples.length > 0 ? [await runTests(examples, { concurrency: 1, timeoutMs })] : []),
];
const total = (kind) => results.reduce((sum, result) => sum + result[kind], 0);
finish({ passed: total('passed'), failed: total('failed') });
