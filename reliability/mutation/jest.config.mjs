import config from '../../jest.config.mjs';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** The configuration of jest under Stryker: one process, the tests of the run, and no leak gate, which needs more processes. */
export default {
  ...config,
  // With a limit jest starts worker processes.
  workerIdleMemoryLimit: undefined,
  rootDir: fileURLToPath(new URL('../..', import.meta.url)),
  testMatch: JSON.parse(process.env.MUTATION).tests.map((path) => `<rootDir>/${path}`),
  testEnvironment: here('jest-environment.mjs'),
  runner: here('jest-runner.mjs'),
};
