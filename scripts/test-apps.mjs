// Runs the tests with whole apps: NestJS and Angular apps that install the packed package, and the example app in Chromium.
// Installs what is missing on the machine: Chromium from Debian, a newer Node from npm. Ends with the line `N passed, N failed`.
//
//   npm run test:apps
//   npm run test:apps -- example-app               the files with this in their name
//   npm run test:apps -- example-app --without speed
//
// With RX_TRADE_FEED_SCREENSHOTS=folder the tests of the example app save screenshots there.
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
// They measure, so they run alone, at the end.
const measuring = examples.filter((file) => file.includes('speed'));
const pages = examples.filter((file) => !measuring.includes(file));

/** Prints a step before it begins, because it may take a minute, and its duration. */
const step = async (what, action) => {
  const started = performance.now();
  console.log(`… ${what}`);
  const result = await action();
  console.log(`✓ ${what} (${((performance.now() - started) / 1_000).toFixed(1)} s)`);
  return result;
};

const shared = process.env.RX_TRADE_FEED_EXAMPLE_IN;
const isExampleBuilt = shared !== undefined && existsSync(join(shared, 'dist'));

await prepare(async () => {
  await step('building the package', buildPackage);
  if (others.length > 0 || !isExampleBuilt)
    process.env.RX_TRADE_FEED_TARBALL = await step('packing the package', tarball);
  process.env.RX_TRADE_FEED_NODE = await step('installing a Node version that Angular supports', newerNode);
  process.env.CHROMIUM_PATH = await step('installing Chromium', chromium);
});

/** Runs files one at a time. */
const run = async (list) =>
  list.length === 0 ? { passed: 0, failed: 0 } : runTests(list, { concurrency: 1, timeoutMs: 10 * 60_000 });

/** Builds the example app for all its tests. A failed build counts as a failed test. */
const buildExample = async () => {
  if (examples.length === 0) return { passed: 0, failed: 0 };
  try {
    const folder = isExampleBuilt ? shared : (await step('building the example app', buildApp)).folder;
    process.env.RX_TRADE_FEED_EXAMPLE = folder;
    return { passed: 0, failed: 0 };
  } catch (error) {
    console.error(`\n${error.message}`);
    return { passed: 0, failed: 1 };
  }
};

const runExamples = async () => {
  const built = await buildExample();
  return built.failed > 0 ? built : run(pages);
};

// Two files at a time, because they often wait for downloads, pages or timers.
const beside = await Promise.all([run(others), runExamples()]);
const results = [...beside, ...(process.env.RX_TRADE_FEED_EXAMPLE ? [await run(measuring)] : [])];
const total = (kind) => results.reduce((sum, result) => sum + result[kind], 0);
finish({ passed: total('passed'), failed: total('failed') });
