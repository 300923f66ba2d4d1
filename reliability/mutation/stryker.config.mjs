const folder = process.env.MUTATION_FOLDER;

/** One folder of src against the tests of the same folder: `node reliability/mutation/run.mjs` runs this for each. */
export default {
  mutate: [`src/${folder}/**/*.ts`, '!src/**/index.ts'],
  ignorePatterns: ['/coverage', '/dist', '/site', '/temp'],
  testRunner: 'jest',
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  plugins: ['@stryker-mutator/jest-runner'],
  jest: { configFile: 'reliability/mutation/jest.config.mjs', enableFindRelatedTests: false },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  // Far above what a test needs; the default factor of 1.5 comes on top.
  timeoutMS: 15_000,
  dryRunTimeoutMinutes: 10,
  // Modules that jest loads as ESM stay in memory.
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
