// Which test files run on one Node version only. Every other test file runs on each version of the matrix, so a new file does too.

/** The files by the reason why another Node version cannot change their result. */
export const onOneNode = {
  'reads texts of this repository': [
    'test/docs/limits.test.ts',
    'test/docs/links.test.ts',
    'test/docs/proxies.test.ts',
    'test/docs/security.test.ts',
    'test/docs/tables.test.ts',
    'test/security/lockfile.test.ts',
    'test/security/sources.test.ts',
  ],
  'checks and runs code of documents; its operators and commands have tests that run on each version': [
    'test/docs/failure-pages.test.ts',
    'test/docs/fences.test.ts',
    'test/docs/operator-examples.test.ts',
  ],
  'runs or reads the tools of this repository': [
    'test/browser/bundle.test.ts',
    'test/docs/diagrams.test.ts',
    'test/docs/site.test.ts',
    'test/security/audit.test.ts',
    'test/security/browser-bundle.test.ts',
    'test/tooling/browser-support.test.ts',
    'test/tooling/check-format.test.ts',
    'test/tooling/import-rules.test.ts',
    'test/tooling/one-node.test.ts',
    'test/tooling/workflows.test.ts',
  ],
  'tests the programs of the benchmarks': [
    'charts',
    'fill',
    'guards',
    'measure',
    'opening',
    'receivers',
    'senders',
    'stats',
    'svg',
  ].map((name) => `test/bench/${name}.test.ts`),
  'tests the statistics and reports of the long checks': [
    'reliability/test/accounting.test.ts',
    'reliability/test/growth.test.ts',
    'reliability/test/report.test.ts',
    'reliability/test/service-limits.test.ts',
    'reliability/test/slope.test.ts',
    'reliability/test/spread.test.ts',
    'reliability/test/waves.test.ts',
  ],
};

/** Returns the patterns with which jest ignores these files. */
export const ignoredPatterns = () =>
  Object.values(onOneNode)
    .flat()
    .map((file) => `/${file.replaceAll('.', '\\.')}$`);
