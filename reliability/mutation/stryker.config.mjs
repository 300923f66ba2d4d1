const folder = process.env.MUTATION_FOLDER;

/** Mutates one folder of src and runs the tests of the same folder. `npm run reliability -- mutation` does this for each folder. */
export default {
  mutate: [`src/${folder}/**/*.ts`, '!src/**/index.ts'],
  // Programs that the tests start load dist, which no mutant is in.
  ignorePatterns: ['/coverage', '/site', '/temp'],
  testRunner: 'jest',
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  plugins: ['@stryker-mutator/jest-runner'],
  jest: { configFile: 'reliability/mutation/jest.config.mjs', enableFindRelatedTests: false },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  // Far more than a test needs. Stryker adds 1.5 times the duration of the first run.
  timeoutMS: 15_000,
  dryRunTimeoutMinutes: 10,
  // ES modules that jest loads stay in memory.
  maxTestRunnerReuse: 60,
  incremental: process.env.MUTATION_KEEP === 'yes',
  incrementalFile: `temp/mutation/${folder}.incremental.json`,
  reporters: ['json', 'clear-text', 'progress-append-only'],
  jsonReporter: { fileName: `temp/mutation/${folder}.json` },
  clearTextReporter: { logTests: false, reportTests: false, reportMutants: false, reportScoreTable: true },
  tempDirName: 'temp/stryker',
  allowConsoleColors: false,
  thresholds: { high: 95, low: 85, break: null },
};
