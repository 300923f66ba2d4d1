const { mutate, file, timeoutMS, isAll, isKept } = JSON.parse(process.env.MUTATION);

/** index.mjs says what is mutated, and which tests run. */
export default {
  mutate: [...mutate, '!src/**/index.ts'],
  // Programs that the tests start load dist, which no mutant is in.
  ignorePatterns: ['/coverage', '/site', '/temp'],
  testRunner: 'jest',
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  plugins: ['@stryker-mutator/jest-runner'],
  jest: { configFile: 'reliability/mutation/jest.config.mjs', enableFindRelatedTests: false },
  coverageAnalysis: isAll ? 'off' : 'perTest',
  concurrency: 2,
  // More than a test needs. Stryker adds 1.5 times the duration of the first run.
  timeoutMS,
  dryRunTimeoutMinutes: 10,
  // ES modules that jest loads stay in memory.
  maxTestRunnerReuse: 60,
  incremental: isKept,
  incrementalFile: `${file}.incremental.json`,
  reporters: ['json', 'progress-append-only'],
  jsonReporter: { fileName: `${file}.json` },
  tempDirName: 'temp/stryker',
  allowConsoleColors: false,
  thresholds: { high: 95, low: 85, break: null },
};
