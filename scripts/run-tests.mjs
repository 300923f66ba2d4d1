// Runs test files of Node's own test runner, and installs what they need. Ends with the line `N passed, N failed`.
//
//   npm run test:apps                      whole apps: NestJS, Angular, bundlers, the example app in Chromium
//   npm run test:apps -- example-app       the files with this in their name
//   npm run test:apps -- example-app --without deploy
//   npm run test:peers                     programs of others: nginx, haproxy, python3-websockets, brokers, Anvil, jq, DuckDB
//   npm run test:site                      the built site: its search, links and plain pages, and its pages in Chromium at two sizes
//
// With RX_TRADE_FEED_SCREENSHOTS=folder the tests in Chromium save screenshots there.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { run as runTests } from 'node:test';
import { spec, tap } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { installAnvil } from '../examples/real-chain/anvil.mjs';
import { buildApp } from '../test/apps/example-app/app.mjs';
import { newerNode, tarball } from '../test/apps/support.mjs';
import { chromium, install } from '../test/peers/packages.mjs';

const { values, positionals } = parseArgs({
  options: { without: { type: 'string', multiple: true, default: [] }, report: { type: 'boolean' } },
  allowPositionals: true,
});
const [suite, ...names] = positionals;
const isAsked = (file) => names.length === 0 || names.some((name) => file.includes(name));
const isLeftOut = (file) => values.without.some((name) => file.includes(name));
const files = readdirSync(join('test', suite))
  .filter((file) => file.endsWith('.test.mjs') && isAsked(file) && !isLeftOut(file))
  .map((file) => join('test', suite, file));
if (files.length === 0) {
  console.error(`No test file in test/${suite} has ${names.join(' or ')} in its name.`);
  process.exit(2);
}

/** Runs a program of the project. A warning fails it too, if `isStrict`. npm may warn about the settings of the machine. */
const build = (command, args, isStrict = false) => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  const isWarning = (line) => /\(!\)|\bwarn/i.test(line) && !/^npm warn/.test(line);
  if (status !== 0 || (isStrict && `${stdout}\n${stderr}`.split('\n').some(isWarning)))
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`);
};
const { env } = process;
// CI builds once for all its checks.
const buildPackage = () => env.RX_TRADE_FEED_IS_BUILT || build(process.execPath, ['scripts/build.mjs']);
const buildSite = () => env.RX_TRADE_FEED_SITE_IS_BUILT || build('npm', ['run', 'docs', '--silent'], true);

/** Runs test files in this order, some at a time, and prints their reports. Resolves with the sum of their results, also as TAP. */
const run = async (files, concurrency = 1) => {
  if (files.length === 0) return { passed: 0, failed: 0, tap: '', titles: [] };
  const tests = runTests({ files: files.map((file) => resolve(file)), concurrency, timeout: 15 * 60_000 });
  const titles = new Set();
  tests.on('test:fail', ({ file, name, details: { error } }) => {
    // Others fail because of a test around them, or inside them.
    if (/subtestsFailed|cancelledByParent/.test(error.failureType)) return;
    const title = error.failureType === 'hookFailed' ? 'a hook' : name;
    // A file that doesn't load has its own name.
    titles.add([relative('', file), ...(name === file ? [] : [title])].join(' › '));
  });
  tests.compose(new spec()).pipe(process.stdout, { end: false });
  const report = await text(tests.compose(tap));
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(report)[1]);
  return { passed: count('pass'), failed: count('fail') + count('cancelled'), tap: report, titles };
};

/** Prints a step before it begins, because it may take a minute, and its duration. */
const step = async (what, action) => {
  const started = performance.now();
  console.log(`… ${what}`);
  const result = await action();
  console.log(`✓ ${what} (${((performance.now() - started) / 1_000).toFixed(1)} s)`);
  return result;
};

// The files that take longest start first, so that no long one is left at the end.
const longest = ['interop', 'typescript', 'nestjs-12', 'angular-20', 'tabs', 'bundlers', 'angular-22', 'nestjs-11'];
const rank = (file) => longest.indexOf(basename(file, '.test.mjs'));

const suites = {
  apps: async () => {
    const [examples, others] = [true, false].map((is) => files.filter((file) => file.includes('example-app') === is));
    const shared = env.RX_TRADE_FEED_EXAMPLE_IN;
    const isBuilt = shared !== undefined && existsSync(join(shared, 'dist'));
    await step('building and packing the package', async () => {
      buildPackage();
      if (others.length > 0 || !isBuilt) await tarball();
    });
    env.RX_TRADE_FEED_NODE = await step('installing a Node version that Angular supports', newerNode);
    env.CHROMIUM_PATH = await step('installing Chromium', chromium);
    const runPages = async () => {
      if (examples.length > 0)
        env.RX_TRADE_FEED_EXAMPLE = isBuilt ? shared : (await step('building the example app', buildApp)).folder;
      // Two at a time, because they mostly wait for pages and timers. The longest is the last by name.
      return run(examples.toReversed(), 2);
    };
    // Three apps at a time, because they often wait for downloads and pages, and nothing in CI takes longer.
    return Promise.all([
      run(
        others.toSorted((one, other) => rank(other) - rank(one)),
        3,
      ),
      runPages(),
    ]);
  },
  peers: async () => {
    buildPackage();
    installAnvil();
    const installed = install();
    if (installed.length > 0) console.log(`… installed ${installed.join(', ')}`);
    return [await run(files)];
  },
  site: async () => {
    buildSite();
    env.CHROMIUM_PATH = chromium();
    return [await run(files)];
  },
};

const results = await suites[suite]().catch((error) => {
  console.error(`\n${error.message}`);
  return [{ passed: 0, failed: 1, tap: '', titles: [] }];
});
const [passed, failed] = ['passed', 'failed'].map((kind) => results.reduce((sum, result) => sum + result[kind], 0));
for (const title of results.flatMap(({ titles }) => [...titles])) console.log(`failed: ${title}`);
if (values.report) {
  const { reportPeers } = await import('../reliability/peers.mjs');
  await reportPeers({ tap: results[0].tap, failed, keep: names.length === 0 });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
