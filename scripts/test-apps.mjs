// Runs the tests of whole apps: apps of NestJS and Angular that are made from the packed package, and the example app in Chromium.
// Installs what is missing on the machine: Chromium from Debian, a newer Node from npm. Ends with the line `N passed, N failed`.
//
//   npm run test:apps
//   npm run test:apps -- example-app       those whose name has this in it
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildApp } from '../test/apps/example-app/build-app.mjs';
import { chromium, newerNode, tarball, temporaryFolder } from '../test/apps/support.mjs';

const folder = 'test/apps';
const wanted = process.argv.slice(2);
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.test.mjs'))
  .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
if (files.length === 0) {
  console.error(`No test of ${folder} has ${wanted.join(' or ')} in its name.`);
  process.exit(2);
}

/** Says what goes on, since each of these steps may take a minute. */
const step = (what, action) => {
  const started = performance.now();
  process.stdout.write(`… ${what}`);
  const result = action();
  console.log(` (${((performance.now() - started) / 1_000).toFixed(1)} s)`);
  return result;
};

const build = () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The build failed:\n${stdout}${stderr}`);
};

/** Gets what the tests need; without it there is nothing to run. */
const prepare = () => {
  step('building the package', build);
  return {
    ...process.env,
    RX_TRADE_FEED_TARBALL: step('packing it', tarball),
    RX_TRADE_FEED_NODE: step('getting a Node that Angular builds on', newerNode),
    CHROMIUM_PATH: step('getting Chromium', chromium),
  };
};

let env;
try {
  env = prepare();
} catch (error) {
  console.error(`\n${error.message}\n0 passed, 1 failed`);
  process.exit(1);
}
const temp = temporaryFolder('rx-trade-feed-apps-');

/** Runs test files, some at a time; gives how many tests passed and failed. */
const runTests = async (names, concurrency) => {
  if (names.length === 0) return { passed: 0, failed: 0 };
  const report = join(temp, `${names[0]}.tap`);
  const reporters = [
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
  ];
  const args = [
    '--test',
    `--test-concurrency=${concurrency}`,
    // What hangs fails.
    `--test-timeout=${10 * 60_000}`,
    ...reporters,
    ...names.map((name) => join(folder, name)),
  ];
  const code = await new Promise((done, fail) => {
    const tests = spawn(process.execPath, args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
    tests.once('close', done).once('error', fail);
  });
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(readFileSync(report, 'utf8'))?.[1] ?? 0);
  const failed = count('fail') + count('cancelled');
  return { passed: count('pass'), failed: Math.max(failed, code === 0 ? 0 : 1) };
};

// The one that measures how smooth a page is has the machine for itself.
const measuring = files.filter((name) => name.startsWith('example-app'));
const others = files.filter((name) => !measuring.includes(name));
const results = [await runTests(others, 2)];
if (measuring.length > 0) {
  try {
    Object.assign(process.env, env);
    console.log('… building the example app');
    env.RX_TRADE_FEED_EXAMPLE = (await buildApp()).folder;
    results.push(await runTests(measuring, 1));
  } catch (error) {
    console.error(error.message);
    results.push({ passed: 0, failed: 1 });
  }
}
const total = (kind) => results.reduce((sum, result) => sum + result[kind], 0);
console.log(`${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') === 0 ? 0 : 1;
