// Runs all checks of the project and ends with the line `N passed, N failed`. Each test counts, and each other check counts as one.
//
//   npm test                            what a change must pass
//   npm test -- --ci                    what CI runs: also all test files and cases, coverage, the linter and the format of unchanged files, whole apps and other Node versions
//   npm test -- --only lint,types       these checks alone
//   npm test -- --ci --only nodes       what runs on the other Node versions
//
// With --ci, what fails in a lane (scripts/lanes.mjs) runs once more alone at the end, and the line `retried: …` names it.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { basename, delimiter, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import jestConfig from '../jest.config.mjs';
import { installNode, installUndici8, nodeVersions } from './install.mjs';
import { failuresIn, failuresOf, filesForCi, retry } from './lanes.mjs';

const { values: options } = parseArgs({ options: { only: { type: 'string' }, ci: { type: 'boolean' } } });
// The limits of the tests are longer in CI.
if (options.ci) process.env.CI = 'true';
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
const temp = mkdtempSync(join(tmpdir(), 'rx-trade-feed-test-'));
const readJson = (file) => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined);

// Ends a command that hangs. In CI a command can be slow, because other commands run at the same time.
const LIMIT_MINUTES = 20;
const running = new Set();
/** Kills the process group, because a command may have started other programs. */
const kill = ({ pid }) => {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended before.
  }
};

/**
 * Runs a command as npm runs a script: in a shell, with `node_modules/.bin` in the PATH. Resolves with whether it succeeded, what it wrote, and the
 * CPU time of all its programs in seconds, which a killed command doesn't tell.
 *
 * @param settings - `env`: more environment variables; `bin`: a folder that comes first in the PATH; `priority`: as in `os.setPriority`
 */
const run = (line, { env = {}, bin = [], priority = 0 } = {}) =>
  new Promise((done) => {
    const path = [bin, resolve('node_modules/.bin'), process.env.PATH].flat().join(delimiter);
    const child = spawn(`{ ${line}\n} 2>&1 3>&-; code=$?; times >&3; exit $code`, {
      ...{ shell: true, detached: true, stdio: ['ignore', 'pipe', 'inherit', 'pipe'] },
      env: { ...process.env, ...env, PATH: path },
    });
    running.add(child);
    if (priority !== 0) setPriority(child.pid, priority);
    let [output, times] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    child.stdio[3].setEncoding('utf8').on('data', (text) => (times += text));
    const timer = setTimeout(() => {
      output += `\nStopped: the command was still running after ${LIMIT_MINUTES} minutes.\n`;
      kill(child);
    }, LIMIT_MINUTES * 60_000);
    child.on('close', (code) => {
      clearTimeout(timer);
      running.delete(child);
      const parts = [...times.matchAll(/(\d+)m([\d.]+)s/g)].map(([, minutes, seconds]) => minutes * 60 + +seconds);
      done({ ok: code === 0, output, cpu: parts.length > 0 ? parts.reduce((sum, each) => sum + each) : NaN });
    });
  });

/** A check that succeeds or fails as a whole. In a lane, it runs again if it fails. */
const command = (line, settings, lane) => async () => {
  const { ok, ...rest } = await run(line, settings);
  const failures = ok ? [] : [{ title: line, lane, again: command(line, settings) }];
  return { passed: Number(ok), failed: Number(!ok), failures, ...rest };
};

/** Runs jest and counts its tests. A file that fails as a whole (it leaks, or it doesn't load) counts as one failed test. */
const jest = async (id, args, settings) => {
  const file = join(temp, `${id}.json`);
  const { ok, ...rest } = await run([scripts.unit, '--ci --json --outputFile', file, ...args].join(' '), settings);
  const report = readJson(file);
  if (report === undefined) return { passed: 0, failed: 1, failures: [{ title: id }], ...rest };
  const [passed, skipped] = [report.numPassedTests, report.numPendingTests + report.numTodoTests];
  const inFiles = report.testResults.flatMap((result) => failuresIn(relative('', result.name), result));
  // Jest can fail although no test does.
  const failures = ok || inFiles.length > 0 ? inFiles : [{ title: id }];
  const again = (path) => () => jest(`${id}-again`, ['--runTestsByPath', path], settings);
  return {
    ...{ passed, failed: Math.max(report.numFailedTests + report.numRuntimeErrorTestSuites, failures.length) },
    failures: failures.map((failure) => ({ ...failure, again: again(failure.file) })),
    note: `${passed} tests${skipped > 0 ? `, ${skipped} skipped` : ''}`,
    ...rest,
  };
};

/** Coverage and all random cases are for CI: coverage doubles the time to load the files of src, and fewer cases reach fewer branches. */
const covered = async () => {
  const folder = join(temp, 'coverage');
  const reporters = '--coverageReporters=json-summary --coverageReporters=text';
  // Jest would fail for the limit as well.
  const args = ['--coverage', `--coverageDirectory=${folder}`, "--coverageThreshold='{}'", reporters];
  const result = await jest('jest', args, { env: { RX_TRADE_FEED_ALL_CASES: '1' } });
  const { pct = 0 } = readJson(join(folder, 'coverage-summary.json'))?.total.branches ?? {};
  const least = jestConfig.coverageThreshold.global.branches;
  const note = `${result.note}, ${pct} % of branches`;
  if (pct >= least) return { ...result, passed: result.passed + 1, note };
  const failure = { title: `${pct} % of the branches are covered, of at least ${least} %` };
  return { ...result, failed: result.failed + 1, failures: [...result.failures, failure], note };
};

// Scripts mustn't build again, because other checks are reading `dist`. They share the example app.
const env = { RX_TRADE_FEED_IS_BUILT: '1', RX_TRADE_FEED_EXAMPLE_IN: join(temp, 'example') };

/** A suite of Node's test runner: one file, if it runs again. */
const suite = (name) => async () => {
  const { ok, ...rest } = await run(`node scripts/run-tests.mjs ${name}`, { env });
  const [, passed = 0, failed = 1] = /^(\d+) passed, (\d+) failed$/m.exec(rest.output) ?? [];
  const inFiles = failuresOf(rest.output);
  // Something that it installs or builds can fail too.
  const failures = ok || inFiles.length > 0 ? inFiles : [{ title: name, lane: 'browsers' }];
  const again = (file) => suite(file === undefined ? name : `${name.split(' ')[0]} ${basename(file)}`);
  return {
    ...{ passed: Number(passed), failed: Math.max(Number(failed), Number(!ok)), note: `${passed} tests` },
    failures: failures.map((failure) => ({ ...failure, again: again(failure.file) })),
    ...rest,
  };
};

// A change in one of these files can change the result of the linter, and of the format, for every file.
const decidesAll = /^(\.prettier|\.editorconfig$|eslint\.config|tsconfig\.json$|package-lock\.json$)/;

/** Returns the files that differ from `main`, because CI has checked all others; `['.']` for all, also where there is no `main`. */
const changedFiles = () => {
  const git = (...args) => execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    // The last one is the branch of the remote repository, if there is one.
    const main = git('for-each-ref', '--format=%(refname)', 'refs/heads/main', 'refs/remotes/origin/main');
    const changed = git('diff', '--name-only', '-z', git('merge-base', 'HEAD', main.split('\n').at(-1)));
    const paths = `${changed}${git('ls-files', '--others', '--exclude-standard', '-z')}`.split('\0').filter(existsSync);
    return paths.some((path) => decidesAll.test(path)) ? ['.'] : paths;
  } catch {
    return ['.'];
  }
};
const changed = options.ci ? ['.'] : changedFiles();
const linted = changed[0] === '.' ? changed : ['src', ...changed.filter((file) => /\.(ts|cts|mjs|cjs|js)$/.test(file))];
const quoted = (files) => files.map((file) => `'${file}'`).join(' ');
const lint = scripts.lint.replace(/ \. /, ` --no-warn-ignored ${quoted(linted)} `);
// The other checks take the CPU time that jest leaves, because some tests measure time.
const beside = (line, env = {}) => command(line, { env, priority: constants.priority.PRIORITY_LOW });

/** What differs between Node versions: sockets, TLS, threads, processes and files, but not a simulated disk. undici 8 runs on newer versions only. */
const ofNode = ['transport/', 'worker/', 'operators/node/', 'log/(?!simulation)', 'e2e/programs'];
const nodes = nodeVersions.map((version) => {
  const major = version.split('.')[0];
  const files = ['e2e/built-package', ...(major === '24' ? ofNode : ['transport/dispatcher'])];
  const testOn = (bin) => jest(`node-${major}`, [quoted(files.map((file) => `test/${file}`))], { bin: [bin] });
  return [`node ${major}`, () => (installUndici8(), testOn(installNode(version)))];
});

// The longest first. One program of all files instead of the project service saves the linter a sixth of the time, a larger young generation a tenth.
const checks = [
  ['lint', beside(lint, { NODE_OPTIONS: '--max-semi-space-size=64' })],
  ['imports', beside('depcruise . --config')],
  ['api', beside('node scripts/api.mjs')],
  // CI also builds the site, which reports what this reports.
  ...(options.ci ? [] : [['docs', beside('typedoc --emit none')]]),
  ['package', beside('node scripts/package.mjs')],
  ['types', beside(scripts.types)],
  ['format', beside(changed.length === 0 ? 'true' : `prettier --check --ignore-unknown ${quoted(changed)}`)],
];
const unlessForCi = () => filesForCi().map((file) => `--testPathIgnorePatterns='<rootDir>/${file}'`);
const tests = ['jest', options.ci ? covered : () => jest('jest', unlessForCi())];
const build = ['build', command('node scripts/build.mjs')];
// Before jest, which tests the engines of a cluster with these servers. It can't run at the same time as another check that installs packages.
const debian = ['debian', command('node scripts/install.mjs debian')];
const download = ['download', beside('node scripts/install.mjs nodes')];
const apps = ['apps', suite('apps --without example-app')];
const example = ['example', suite('apps example-app')];
const peers = ['peers', suite('peers')];
const site = ['site', suite('site')];
const cluster = ['cluster', command('node reliability/cluster/index.mjs --quick', {}, 'brokers')];

// The lanes of a stage run side by side, the checks of a lane one after the other. A lane that has ended takes the next of `more`. No app or page runs
// next to jest: four lanes at once made each of them wait for ten others.
const stages = options.ci
  ? [
      { lanes: [[build, debian]] },
      // The other Node versions begin when the checks are done, next to the rest of jest.
      { lanes: [[tests], [download]], more: [...checks, ...nodes] },
      // Their tests wait for states, and for half of the time the example and the peers wait: for pages, downloads and timers.
      { lanes: [[apps], [example, peers], [site, cluster]] },
    ]
  : [{ lanes: [[build]] }, { lanes: [[tests], []], more: checks }];
const all = stages.flatMap(({ lanes, more = [] }) => [...lanes.flat(), ...more]).map(([name]) => name);
const groups = { nodes: ['build', ...nodes.map(([name]) => name)] };
const only = options.only?.split(',').flatMap((name) => groups[name] ?? [name]) ?? all;
const unknown = only.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`Unknown check: ${unknown.join(', ')}. The checks are ${all.join(', ')}; more run with --ci.`);
  process.exit(2);
}

const total = { passed: 0, failed: 0 };
/** The checks that failed only in lanes. */
const retried = [];

const check = async ([name, run]) => {
  if (!only.includes(name)) return;
  console.log(`… ${name}`);
  const started = performance.now();
  const crashed = (error) => ({ passed: 0, failed: 1, failures: [{ title: name }], output: error.stack });
  const { passed, failed, failures, output, cpu = NaN, note = '' } = await run().catch(crashed);
  const seconds = (performance.now() - started) / 1000;
  total.passed += passed;
  total.failed += failed;
  if (failed > 0) console.log(`\n${output.trimEnd()}\n`);
  if (options.ci && failed > 0 && failures.every(({ lane }) => lane !== undefined))
    retried.push({ failed, failures: failures.map((each) => ({ ...each, key: `${name} ${each.file}` })) });
  const [took, used] = [seconds, cpu].map((each) => (Number.isNaN(each) ? '–' : each.toFixed(1)).padStart(6));
  console.log(`${failed > 0 ? '✗' : '✓'} ${name.padEnd(8)} ${took} s ${used} s CPU  ${note}`.trimEnd());
};

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
process.once('exit', () => {
  running.forEach(kill);
  rmSync(temp, { recursive: true, force: true });
});

for (const { lanes, more = [] } of stages) {
  const left = [...more];
  const runLane = async (lane) => {
    for (const each of lane) await check(each);
    while (left.length > 0) await check(left.shift());
  };
  await Promise.all(lanes.map(runLane));
}

const red = await retry(retried.flatMap(({ failures }) => failures));
for (const { failed, failures } of retried)
  if (!failures.some((each) => red.includes(each))) {
    total.passed += failed;
    total.failed -= failed;
  }
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;
