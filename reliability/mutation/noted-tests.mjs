import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

// Stryker starts its workers in the sandbox, which they share.
const path = 'temp/noted-tests.json';

/** Notes which test file holds which tests, and how long it took, for the runs with a mutant that follow. */
export const noteTests = (results) => {
  const files = results.map(({ testFilePath, perfStats, testResults }) => ({
    path: testFilePath,
    ms: perfStats === undefined ? 0 : perfStats.end - perfStats.start,
    names: testResults.map(({ fullName }) => fullName),
  }));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(files));
};

let noted;

/** Reads what the first run, the one without a mutant, has noted: a map by the path of the test file. */
export const notedTests = () => {
  noted ??= new Map(JSON.parse(readFileSync(path, 'utf8')).map((file) => [file.path, file]));
  return noted;
};
