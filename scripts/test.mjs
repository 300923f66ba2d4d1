// Runs all checks of the project and ends with the line `N passed, N failed`. Each test counts, and each other check counts as one.
//
//   npm test                            what a change must pass
//   npm test -- --ci                    what CI runs: also coverage, all cases of the properties, the format of unchanged files, benchmarks, whole apps and other Node versions
//   npm test -- --only lint,types       these checks alone
//   npm test -- --ci --only nodes       the test suite on the other Node versions
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installNode, nodeVersions } from './node-matrix.mjs';
import { ignoredPatterns } from './one-node.mjs';
import { killAll, runCommand } from './run-command.mjs';

const { values: options } = parseArgs({ options: { only: { type: 'string' }, ci: { type: 'boolean' } } });
const {
  unit: jestCommand,
  lint: lintCommand,
  types: typesCommand,
} = JSON.parse(readFileSync('package.json', 'utf8')).scripts;
const temp = mkdtempSync(join(tmpdir(), 'rx-trade-feed-test-'));

const command = (line, settings) => async () => {
  const { ok, output } = await runCommand(line, settings);
  return { passed: Number(ok), failed: Number(!ok), output };
};

/** Runs jest and counts its tests. A file that fails as a whole (it leaks, or it does not load) counts as one failed test. */
const jest = async (id, args, settings) => {
  const file = join(temp, `${id}.json`);
  const line = [jestCommand, '--ci', '--json', '--outputFile', file, ...args].join(' ');
  const { ok, output } = await runCommand(line, settings);
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 1, output };
  }
  const { numPassedTests: passed, numFailedTests, numRuntimeErrorTestSuites, numPendingTests, numTodoTests } = report;
  const failed = numFailedTests + numRuntimeErrorTestSuites;
  const skipped = numPendingTests + numTodoTests;
  return { ok, passed, failed, output, note: `${passed} tests${skipped > 0 ? `, ${skipped} skipped` : ''}` };
};

/** The test suite without coverage. It fails when jest fails, even if no test failed. */
const plain = async (id, settings, args = []) => {
  const result = await jest(id, args, settings);
  return result.ok === false && result.failed === 0 ? { ...result, failed: 1 } : result;
};

/**
 * The test suite with coverage and all cases of the properties. A coverage below the limit counts as one failure. Coverage doubles the
 * time to load the files of src, and fewer cases reach fewer branches, so only CI measures it.
 */
const covered = async () => {
  const folder = join(temp, 'coverage');
  const reporters = ['json-summary', 'text'].map((name) => `--coverageReporters=${name}`);
  const args = ['--coverage', `--coverageDirectory=${folder}`, ...reporters];
  const result = await jest('jest', args, { env: { RX_TRADE_FEED_ALL_CASES: '1' } });
  if (result.failed > 0) return result;
  const { branches } = JSON.parse(readFileSync(join(folder, 'coverage-summary.json'), 'utf8')).total;
  const note = `${result.note}, ${branches.pct} % of branches`;
  return result.ok ? { ...result, passed: result.passed + 1, note } : { ...result, failed: 1, note };
};

/** The test suite on another Node version, without the files whose result cannot differ. */
const onNode = (version) => async () => {
  const args = ignoredPatterns().map((pattern) => `--testPathIgnorePatterns='${pattern}'`);
  return plain(`node-${version}`, { bin: [installNode(version)] }, args);
};

// Scripts must not build again, because other checks are reading `dist`. They share the example app.
const env = { RX_TRADE_FEED_IS_BUILT: '1', RX_TRADE_FEED_EXAMPLE_IN: join(temp, 'example') };

/** A script that prints the line `N passed, N failed` itself. */
const counted = (line) => async () => {
  const { ok, output } = await runCommand(line, { env });
  const [, passed, failed] = /^(\d+) passed, (\d+) failed$/m.exec(output) ?? [];
  const failures = Math.max(Number(failed ?? 1), Number(!ok));
  return { passed: Number(passed ?? 0), failed: failures, output, note: `${passed ?? 0} tests` };
};

const build = ['build', command('node scripts/build.mjs')];
// Before jest, which tests the engines of a cluster with these servers. It cannot run beside another check that installs packages.
const debian = ['debian', command('node scripts/install-debian.mjs')];
// The other checks take the CPU time that jest leaves, because some tests measure time.
const beside = (line, env = {}) => command(line, { env, priority: constants.priority.PRIORITY_LOW });
// The programs of `npm run reliability` run for seconds each, so only CI tests them.
const withoutReliability = [`--testPathIgnorePatterns='<rootDir>/reliability/'`];
// Two at a time, in this order: the longest first.
const shared = [
  ['jest', options.ci ? covered : () => plain('jest', {}, withoutReliability)],
  // One program of all files instead of the project service saves a sixth of the time, a larger young generation a tenth.
  ['lint', beside(lintCommand, { NODE_OPTIONS: '--max-semi-space-size=64' })],
  ['types', beside(typesCommand)],
  ['format', beside(options.ci ? 'prettier --check .' : 'node scripts/check-format.mjs')],
  // CI also builds the site: see `site`.
  ['docs', beside('typedoc --emit none')],
  ['api', beside('node scripts/api.mjs')],
  ['imports', beside('depcruise . --config')],
  ['package', beside('node scripts/package.mjs')],
];
const nodeName = (version) => `node ${version.split('.')[0]}`;
const appsInCi = [
  ['download', beside('node scripts/install-nodes.mjs')],
  ['peers', counted('node scripts/test-peers.mjs')],
  ['site', counted('node scripts/test-site.mjs')],
  ['cluster', command('node reliability/cluster/index.mjs --quick')],
  ['apps', counted('node scripts/test-apps.mjs --without speed')],
];
const nodesInCi = nodeVersions.map((version) => [nodeName(version), onNode(version)]);
// These measure. Each uses about one core, and `bench` compares ratios, which other work on the machine hardly changes.
const measuringInCi = [
  ['speed', counted('node scripts/test-apps.mjs speed')],
  ['bench', command('node --expose-gc bench/check/index.mjs')],
];
const inCi = [debian, ...appsInCi, ...nodesInCi, ...measuringInCi];
const all = [build, ...shared, ...(options.ci ? inCi : [])];
const names = all.map(([name]) => name);
const groups = { nodes: ['build', 'debian', ...nodeVersions.map(nodeName)] };
const only = options.only?.split(',').flatMap((name) => groups[name] ?? [name]) ?? names;
const unknown = only.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`Unknown check: ${unknown.join(', ')}. The checks are ${names.join(', ')}; more run with --ci.`);
  process.exit(2);
}

const total = { passed: 0, failed: 0 };

const check = async ([name, run]) => {
  if (!only.includes(name)) return;
  console.log(`… ${name}`);
  const started = performance.now();
  const result = await run().catch((error) => ({ passed: 0, failed: 1, output: error.stack }));
  const { passed, failed, output, note = '' } = result;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  total.passed += passed;
  total.failed += failed;
  if (failed > 0) console.log(`\n${output.trimEnd()}\n`);
  console.log(`${failed > 0 ? '✗' : '✓'} ${name.padEnd(8)} ${seconds.padStart(6)} s  ${note}`.trimEnd());
};

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
process.once('exit', () => {
  killAll();
  rmSync(temp, { recursive: true, force: true });
});

/** Runs checks one after the other. Two lanes can share a list. */
const lane = async (checks) => {
  for (let next = checks.shift(); next; next = checks.shift()) await check(next);
};
await check(build);
if (options.ci) await check(debian);
// In CI only one jest runs at a time, because its tests measure time. The other checks and the apps run at the same time.
const [jestCheck, ...otherChecks] = shared;
const lanes = options.ci
  ? [
      [jestCheck, ...nodesInCi],
      [...otherChecks, ...appsInCi],
    ]
  : [shared, shared];
await Promise.all(lanes.map(lane));
if (options.ci) await Promise.all(measuringInCi.map(check));

console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;
