// What `npm run test:apps` and `npm run test:peers` share: test files of Node's own test runner, selected by name.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Returns the test files of a folder. Names on the command line select the files that contain one of them. */
export const testFiles = (folder, names, without = []) => {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.test.mjs'))
    .filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
    .filter((file) => !without.some((name) => file.includes(name)));
  if (files.length > 0) return files.map((file) => join(folder, file));
  console.error(`No test file in ${folder} has ${names.join(' or ')} in its name.`);
  process.exit(2);
};

/** Runs the preparation of the tests. If it fails, prints why and exits: no test can run. */
export const prepare = async (action) => {
  try {
    return await action();
  } catch (error) {
    console.error(`\n${error.message}\n0 passed, 1 failed`);
    process.exit(1);
  }
};

/** Builds the package, unless a caller has built it. */
export const buildPackage = () => {
  if (process.env.RX_TRADE_FEED_IS_BUILT) return;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The build failed:\n${stdout}${stderr}`);
};

/**
 * Runs test files.
 *
 * @param options - `concurrency`: files at a time; `timeoutMs`: a test that takes longer fails; `env`: the environment
 * @returns how many tests passed and failed, and the report as TAP
 */
export const runTests = async (files, { concurrency, timeoutMs, env = process.env }) => {
  const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-tap-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const report = join(folder, 'report.tap');
  const args = [
    ...['--test', `--test-concurrency=${concurrency}`, `--test-timeout=${timeoutMs}`],
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
  ];
  const code = await new Promise((done, fail) => {
    const tests = spawn(process.execPath, [...args, ...files], { env, stdio: ['ignore', 'inherit', 'inherit'] });
    tests.once('close', done).once('error', fail);
  });
  const tap = readFileSync(report, 'utf8');
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(tap)?.[1] ?? 0);
  const failed = Math.max(count('fail') + count('cancelled'), code === 0 ? 0 : 1);
  return { passed: count('pass'), failed, tap };
};

/** Prints the last line of a test script and sets the exit code. */
export const finish = ({ passed, failed }) => {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
};
