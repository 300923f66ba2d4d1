import { relative } from 'node:path';
import { fileOfMutant } from './file-of-mutant.mjs';
import { notedTests } from './noted-tests.mjs';

/** Orders test files: the one that mirrors the mutated file, then those beside it, then the quick ones. Without a covering test: left out. */
export const nearestFirst = (tests, mutant, testNamePattern) => {
  const source = fileOfMutant(mutant).replace(/\.ts$/, '');
  const noted = notedTests();
  const pattern = testNamePattern && new RegExp(testNamePattern, 'i');
  const covers = ({ path }) => !pattern || (noted.get(path)?.names.some((name) => pattern.test(name)) ?? true);
  return tests
    .filter(covers)
    .map((test) => ({
      test,
      far: distance(relative(`${process.cwd()}/test`, test.path), source),
      ms: noted.get(test.path)?.ms ?? 0,
    }))
    .sort((a, b) => a.far - b.far || a.ms - b.ms)
    .map(({ test }) => test);
};

const distance = (testFile, source) => {
  const tested = testFile.replace(/(\.marbles)?\.test\.ts$/, '');
  if (tested === source) return 0;
  return folderOf(tested) === folderOf(source) ? 1 : 2;
};

const folderOf = (path) => path.slice(0, path.lastIndexOf('/'));
