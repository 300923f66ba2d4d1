import config from '../../jest.config.mjs';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Jest under Stryker: in one process, the tests of one folder, without the leak gate, which needs processes of its own. */
export default {
  ...config,
  // It would make jest start processes of its own.
  workerIdleMemoryLimit: undefined,
  rootDir: fileURLToPath(new URL('../..', import.meta.url)),
  testMatch: [`<rootDir>/test/${process.env.MUTATION_FOLDER}/**/*.test.ts`],
  testEnvironment: here('jest-environment.mjs'),
  runner: here('jest-runner.mjs'),
  // It kills programs that run the build: no mutant is in it.
  testPathIgnorePatterns: ['/node_modules/', '/operators/node/crash.test.ts'],
};
