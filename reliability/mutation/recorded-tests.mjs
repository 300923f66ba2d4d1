import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

// The workers of Stryker share the sandbox.
const path = 'temp/recorded-tests.json';

/** Records the names of the tests of each file and how long the file took, for the later runs with a mutant. */
export const recordTests = (results) => {
  const files = results.map(({ testFilePath, perfStats, testResults }) => ({
    path: testFilePath,
    ms: perfStats === undefined ? 0 : perfStats.end - perfStats.start,
    names: testResults.map(({ fullName }) => fullName),
  }));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(files));
};

let recorded;

/** Reads what the first run, without a mutant, recorded: a map by the path of the test file. */
export const recordedTests = () => {
  recorded ??= new Map(JSON.parse(readFileSync(path, 'utf8')).map((file) => [file.path, file]));
  return recorded;
};
