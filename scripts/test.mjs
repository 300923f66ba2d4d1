// Runs everything that checks the project and ends with the line `N passed, N failed`: the tests of jest, and one for each
// other check. The commands are the scripts of package.json.
//
//   npm test                            all of it
//   npm test -- --only lint,types       these alone
//   npm test -- --nodes                 the test suite on other Nodes, too
//   npm test -- --apps                  whole apps in Chromium, and peers from Debian, too
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { installNode, nodeVersions } from './node-matrix.mjs';

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, nodes: { type: 'boolean' }, apps: { type: 'boolean' } },
});
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
const temp = mkdtempSync(join(tmpdir(), 'rx-trade-feed-test-'));
const limitMs = 10 * 60_000;
const running = new Set();

/** Runs a script of package.json as npm would; resolves with its exit code and all that it wrote. */
const runScript = (name, args = [], bin = []) =>
  new Promise((done) => {
    const path = [...bin, resolve('node_modules/.bin'), process.env.PATH].join(delimiter);
    const command = [scripts[name], ...args].join(' ');
    // A group of its own, so that what hangs can be ended together with all that it started.
    const child = spawn(command, {
      shell: true,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PATH: path },
    });
    running.add(child);
    let output = '';
    const timer = setTimeout(() => {
      output += `\nStill running after ${limitMs / 60_000} minutes: ended.\n`;
      end(child);
    }, limitMs);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('close', (code) => {
      clearTimeout(timer);
      running.delete(child);
      done({ ok: code === 0, output });
    });
  });

const end = (child) => {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
};

const script = (name) => async () => {
  const { ok, output } = await runScript(name);
  return { passed: Number(ok), failed: Number(!ok), output };
};

/** Runs jest and counts its tests; a file that fails as a whole (it leaks, or does not load) counts as one failed. */
const jest = async (id, args, bin) => {
  const file = join(temp, `${id}.json`);
  const { ok, output } = await runScript('unit', ['--ci', '--json', '--outputFile', file, ...args], bin);
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

/** The suite with coverage: too little of it is one failure more. */
const covered = async () => {
  const folder = join(temp, 'coverage');
  const reporters = ['json-summary', 'text'].map((name) => `--coverageReporters=${name}`);
  const result = await jest('jest', ['--coverage', `--coverageDirectory=${folder}`, ...reporters]);
  if (result.failed > 0) return result;
  const { branches } = JSON.parse(readFileSync(join(folder, 'coverage-summary.json'), 'utf8')).total;
  const note = `${result.note}, ${branches.pct} % of branches`;
  return result.ok ? { ...result, passed: result.passed + 1, note } : { ...result, failed: 1, note };
};

const onNode = (version) => async () => {
  const result = await jest(`node-${version}`, [], [installNode(version)]);
  return result.ok === false && result.failed === 0 ? { ...result, failed: 1 } : result;
};

/** Tests that count themselves: those of whole apps, and those with peers. */
const counted = (name) => async () => {
  const { ok, output } = await runScript(name);
  const [, passed, failed] = /^(\d+) passed, (\d+) failed$/m.exec(output) ?? [];
  const failures = Math.max(Number(failed ?? 1), Number(!ok));
  return { passed: Number(passed ?? 0), failed: failures, output, note: `${passed ?? 0} tests` };
};

// Two at a time while they last, then jest, which has workers of its own and tests that watch the clock.
const besides = [
  ['build', script('build')],
  ['lint', script('lint')],
  ['types', script('types')],
  ['format', script('format:check')],
  ['imports', script('imports')],
  ['docs', script('docs')],
  ['api', script('api')],
  ['package', script('check:package')],
];
const alone = [
  // On a machine that does nothing else.
  ['bench', script('bench:check')],
  ['jest', covered],
  ...(options.apps
    ? [
        ['peers', counted('test:peers')],
        ['apps', counted('test:apps')],
      ]
    : []),
  ...(options.nodes ? nodeVersions.map((version) => [`node ${version.split('.')[0]}`, onNode(version)]) : []),
];

const names = [...besides, ...alone].map(([name]) => name);
const only = options.only?.split(',') ?? names;
const unknown = only.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`No check is called ${unknown.join(', ')}; there are: ${names.join(', ')}`);
  process.exit(2);
}

const total = { passed: 0, failed: 0 };

const check = async ([name, run]) => {
  if (!only.includes(name)) return;
  console.log(`… ${name}`);
  const started = performance.now();
  const {
    passed,
    failed,
    output,
    note = '',
  } = await run().catch((error) => ({ passed: 0, failed: 1, output: `${error.stack}` }));
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  total.passed += passed;
  total.failed += failed;
  if (failed > 0) console.log(`\n${output.trimEnd()}\n`);
  console.log(`${failed > 0 ? '✗' : '✓'} ${name.padEnd(8)} ${seconds.padStart(6)} s  ${note}`.trimEnd());
};

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
process.once('exit', () => {
  running.forEach(end);
  rmSync(temp, { recursive: true, force: true });
});

const built = check(besides[0]);
// These read dist.
const ready = { api: built, package: built };
const waiting = besides.slice(1);
const lane = async () => {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    await ready[next[0]];
    await check(next);
  }
};
await Promise.all([built.then(lane), lane()]);
for (const each of alone) await check(each);

console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;
