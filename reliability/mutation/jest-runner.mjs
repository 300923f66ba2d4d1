import JestRunner from 'jest-runner';
import { nearestFirst } from './nearest-first.mjs';
import { recordTests } from './recorded-tests.mjs';

/** Runs the test files that cover the active mutant, the nearest first, and stops at the first file that fails. */
export default class NearestFirstRunner extends JestRunner {
  async runTests(tests, watcher, options) {
    const mutant = process.env.__STRYKER_ACTIVE_MUTANT__;
    const ran = [];
    this.on('test-file-success', ([, result]) => ran.push(result));
    if (mutant === undefined) {
      await super.runTests(tests, watcher, options);
      recordTests(ran);
      return;
    }
    for (const test of nearestFirst(tests, mutant, this._globalConfig.testNamePattern)) {
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
