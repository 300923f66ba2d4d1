import { relative } from 'node:path';
import { fileOfMutant } from './file-of-mutant.mjs';
import { recordedTests } from './recorded-tests.mjs';

/**
 * Orders test files: first the test of the mutated file, then those of its folder, then the others, the quickest first. Leaves out the files
 * without a test that covers the mutant.
 */
export const nearestFirst = (tests, mutant, testNamePattern) => {
  const source = fileOfMutant(mutant).replace(/\.ts$/, '');
  const recorded = recordedTests();
  const pattern = testNamePattern && new RegExp(testNamePattern, 'i');
  const covers = ({ path }) => !pattern || (recorded.get(path)?.names.some((name) => pattern.test(name)) ?? true);
  return tests
    .filter(covers)
    .map((test) => ({
      test,
      distance: distanceOf(relative(`${process.cwd()}/test`, test.path), source),
      ms: recorded.get(test.path)?.ms ?? 0,
    }))
    .sort((a, b) => a.distance - b.distance || a.ms - b.ms)
    .map(({ test }) => test);
};

const distanceOf = (testFile, source) => {
  const tested = testFile.replace(/(\.marbles)?\.test\.ts$/, '');
  if (tested === source) return 0;
  return folderOf(tested) === folderOf(source) ? 1 : 2;
};

const folderOf = (path) => path.slice(0, path.lastIndexOf('/'));
