import { TestEnvironment } from 'jest-environment-node';

/** Skips the remaining tests of a file after one has failed: one failure is enough to kill a mutant. */
export default class StopAtFailure extends TestEnvironment {
  #failed = false;

  async handleTestEvent(event) {
    if (event.name === 'test_fn_failure' || event.name === 'hook_failure') this.#failed = true;
    if (event.name === 'test_start' && this.#failed) event.test.mode = 'skip';
  }
}
