import { TestEnvironment } from 'jest-environment-node';

/** Skips what is left of a test file once a test of it has failed: one failure is enough to call a mutant killed. */
export default class StopAtFailure extends TestEnvironment {
  #failed = false;

  async handleTestEvent(event) {
    if (event.name === 'test_fn_failure' || event.name === 'hook_failure') this.#failed = true;
    if (event.name === 'test_start' && this.#failed) event.test.mode = 'skip';
  }
}
