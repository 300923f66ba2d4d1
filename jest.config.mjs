import { availableParallelism } from 'node:os';
import { bundledPackages } from './test/support/bundled-packages.mjs';

export default {
  roots: ['<rootDir>/src', '<rootDir>/test', '<rootDir>/reliability/test'],
  testMatch: ['<rootDir>/{test,reliability/test}/**/*.test.ts', '<rootDir>/reliability/test/*.test.mjs'],
  testEnvironment: '<rootDir>/test/support/leak-gate.ts',
  runtime: '<rootDir>/test/support/jest-runtime.cjs',
  waitForUnhandledRejections: true,
  workerIdleMemoryLimit: '1GB',
  // One more than the cores: the tests wait for sockets and timers for half of their time.
  maxWorkers: availableParallelism() + 1,
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^rx-trade-feed$': '<rootDir>/src/index.ts',
    '^rx-trade-feed/(\\w+)$': '<rootDir>/src/$1/index.ts',
    ...bundledPackages,
    // A worker thread cannot run TypeScript.
    '/start-worker\\.js$': '<rootDir>/test/support/start-worker.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^(\\.{1,2}/.*load-(native-lock|telemetry))\\.cjs$': '$1.cts',
  },
  transform: {
    '^.+\\.c?ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
        sourceMaps: 'inline',
      },
    ],
  },
  collectCoverageFrom: ['src/**/*.{ts,cts}', '!src/**/index.ts'],
  // Istanbul counts the implicit branch of an `if` without `else`, and each default and `??`. The ranges of V8 do not.
  coverageProvider: 'babel',
  coverageReporters: ['text', 'lcovonly'],
  coverageThreshold: { global: { branches: 97 } },
  // Longer than `waitFor`, which says what is missing. A test that hangs still fails.
  testTimeout: process.env.CI ? 120_000 : 30_000,
};
