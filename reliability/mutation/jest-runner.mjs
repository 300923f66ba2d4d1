import JestRunner from 'jest-runner';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** What the first run, without a mutant, records of each test file. The workers of Stryker share the sandbox. */
const recordedIn = 'temp/recorded-tests.json';

/** Runs the test files that cover the active mutant, the quickest first, and stops at the first file that fails. */
export default class QuickestFirstRunner extends JestRunner {
  async runTests(tests, watcher, options) {
    const ran = [];
    this.on('test-file-success', ([, result]) => ran.push(result));
    if (process.env.__STRYKER_ACTIVE_MUTANT__ === undefined) {
      await super.runTests(tests, watcher, options);
      recordTests(ran);
      return;
    }
    for (const test of quickestFirst(tests, this._globalConfig.testNamePattern)) {
      const done = ran.length;
      await super.runTests([test], watcher, options);
      // A file that doesn't load has no result.
      if (ran.length === done || ran.at(-1).numFailingTests > 0) return;
    }
  }

  on(event, listener) {
    if (event !== 'test-file-success') return super.on(event, listener);
    return super.on(event, ([test, result]) => listener([test, asFailure(result)]));
  }
}

/** Records the names of the tests of each file, and how long the file took. */
const recordTests = (results) => {
  const files = results.map(({ testFilePath, perfStats, testResults }) => [
    testFilePath,
    {
      ms: perfStats === undefined ? 0 : perfStats.end - perfStats.start,
      names: testResults.map((test) => test.fullName),
    },
  ]);
  mkdirSync(dirname(recordedIn), { recursive: true });
  writeFileSync(recordedIn, JSON.stringify(files));
};

let recorded;

/** Orders test files. Leaves out those without a test of the pattern, which names the tests that cover the mutant. */
const quickestFirst = (tests, testNamePattern) => {
  recorded ??= new Map(JSON.parse(readFileSync(recordedIn, 'utf8')));
  const pattern = new RegExp(testNamePattern ?? '', 'i');
  const msOf = ({ path }) => recorded.get(path)?.ms ?? 0;
  return tests
    .filter(({ path }) => recorded.get(path)?.names.some((name) => pattern.test(name)) ?? true)
    .toSorted((one, other) => msOf(one) - msOf(other));
};

/**
 * Turns an uncaught error of a file into a failure of one of its tests. Jest fails the whole file, and Stryker would then count the
 * mutant as one that doesn't load.
 */
const asFailure = (result) => {
  const test = result.testResults.find(({ status }) => status === 'passed' || status === 'failed');
  if (result.testExecError && test && process.env.__STRYKER_ACTIVE_MUTANT__ !== undefined) {
    test.status = 'failed';
    test.failureMessages = [...test.failureMessages, result.testExecError.message];
    result.testExecError = undefined;
    result.numFailingTests += 1;
  }
  return result;
};
