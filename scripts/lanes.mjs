// The marks of test files, in the comment that a file begins with:
//
//   @ci                                  only CI runs it
//   @lane processes | brokers | clock    it waits for other processes, for servers of others, or for the real clock: CI runs what fails there once more
//
// test/support/leak-gate.ts fails a file that starts a process and has no lane.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A busy machine can make a few tests fail. More than these have a reason. */
export const MOST_RETRIED = 3;

const marksOf = (file) => /^\/\*\*[^]*?\*\//.exec(readFileSync(file, 'utf8'))?.[0] ?? '';
const isForCi = (file) => /@ci\b/.test(marksOf(file));

/** Returns the lane of a test file, if it has one. */
export const laneOf = (file) => /@lane (\w+)/.exec(marksOf(file))?.[1];

/** Returns the test files of jest. */
export const testFiles = () =>
  ['test', 'reliability/test'].flatMap((folder) =>
    readdirSync(folder, { recursive: true })
      .filter((name) => /\.test\.ts$/.test(name) || (folder !== 'test' && /\.test\.mjs$/.test(name)))
      .map((name) => join(folder, name)),
  );

/** Returns those that only CI runs. */
export const filesForCi = () => testFiles().filter(isForCi);

/** A test that had no time to end, as jest and `waitFor` say it. */
const isOfTime = (message) => /Exceeded timeout of \d+ ms|Waited \d+ ms in vain/.test(message);

/**
 * Returns what failed in a test file of jest, with its lane: a failure for each test, but one for all tests of a hook, one for a test that ran out of
 * time and what it left behind for others, and one for a file that leaks or doesn't load.
 */
export const failuresIn = (file, { status, message, assertionResults }) => {
  const lane = laneOf(file) ?? (isOfTime(message) ? 'time' : undefined);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (failed.length === 0) return status === 'failed' ? [{ file, title: file, lane }] : [];
  const late = failed.find(({ failureMessages }) => isOfTime(failureMessages.join()));
  if (late) return [{ file, title: `${file} › ${late.fullName}`, lane }];
  const first = new Map(failed.toReversed().map((test) => [test.failureMessages.join(), test]));
  return [...first.values()].reverse().map(({ fullName }) => ({ file, title: `${file} › ${fullName}`, lane }));
};

/** Returns what failed in a suite of Node's test runner, from the lines that scripts/run-tests.mjs prints. */
export const failuresOf = (output) =>
  [...output.matchAll(/^failed: (\S+)(?: › .*)?$/gm)].map(([line, file]) => ({
    ...{ file, title: line.slice('failed: '.length), lane: 'browsers' },
  }));

/**
 * Runs what failed once more, alone: each file once. Prints the line `retried: …` for each failure. Returns those that failed again, or all of them if
 * they are more than MOST_RETRIED.
 *
 * @param failures - `again` runs the file of the failure, and resolves with `failed` and `output`
 */
export const retry = async (failures, print = console.log) => {
  if (failures.length > MOST_RETRIED) {
    for (const { title } of failures) print(`failed: ${title}`);
    print(`More than ${MOST_RETRIED} failed, so they don't run again.`);
    return failures;
  }
  const results = new Map();
  for (const { key, again } of failures) if (!results.has(key)) results.set(key, await again());
  for (const { failed, output } of results.values()) if (failed > 0) print(`\n${output.trimEnd()}\n`);
  for (const { title, lane, key } of failures)
    print(`retried: ${title} (${lane}): ${results.get(key).failed > 0 ? 'failed again' : 'passed alone'}`);
  return failures.filter(({ key }) => results.get(key).failed > 0);
};
