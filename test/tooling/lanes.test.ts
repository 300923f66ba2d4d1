import { describe, expect, it } from '@jest/globals';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { root } from '../docs/fences.js';

interface Failure {
  readonly title: string;
  readonly lane?: string;
}

interface Again extends Failure {
  readonly key: string;
  again(): Promise<{ readonly failed: number; readonly output: string }>;
}

interface Lanes {
  testFiles(): readonly string[];
  laneOf(file: string): string | undefined;
  failuresIn(file: string, result: object): readonly Failure[];
  retry(failures: readonly Again[], print: (line: string) => void): Promise<readonly Again[]>;
}

const lanes = (await import(pathToFileURL(join(root, 'scripts/lanes.mjs')).href)) as Lanes;
const { failuresIn, retry } = lanes;

it('test files have the lanes processes, brokers and clock, or none', () => {
  const used = new Set(lanes.testFiles().map(lanes.laneOf));
  expect([...used].sort()).toEqual(['brokers', 'clock', 'processes', undefined]);
});

describe('what failed in a file of jest', () => {
  const [inLane, other] = ['reliability/test/soak.test.ts', 'test/tooling/lanes.test.ts'];
  const failed = (fullName: string, message: string) => ({
    ...{ fullName, status: 'failed', failureMessages: [message] },
  });

  it('is a failure for each test, and one for all tests of a hook', () => {
    const hook = 'beforeAll: Error: the port is in use';
    const assertionResults = [
      { fullName: 'a', status: 'passed', failureMessages: [] },
      ...[failed('b', hook), failed('c', hook), failed('d', 'expected 1')],
    ];
    expect(failuresIn(inLane, { status: 'failed', message: hook, assertionResults })).toMatchObject([
      { title: `${inLane} › b`, lane: 'processes' },
      { title: `${inLane} › d`, lane: 'processes' },
    ]);
  });

  it('is one failure if a test ran out of time, with what it left behind', () => {
    const assertionResults = [
      failed('a', 'Exceeded timeout of 60000 ms for a test'),
      failed('b', 'expected 1 service'),
    ];
    const message = assertionResults.flatMap(({ failureMessages }) => failureMessages).join('\n');
    expect(failuresIn(other, { status: 'failed', message, assertionResults })).toMatchObject([
      { title: `${other} › a`, lane: 'time' },
    ]);
  });

  it.each([
    ['thrown: "Exceeded timeout of 60000 ms for a test.', 'time'],
    ['Error: Waited 50000 ms in vain for: isOpen', 'time'],
    ['expected 1', undefined],
  ])('has no lane without a mark, unless it ran out of time: %s', (message, lane) => {
    // In a test, or in a hook after all of them.
    for (const assertionResults of [[failed('a', message)], []])
      expect(failuresIn(other, { status: 'failed', message, assertionResults })[0]?.lane).toBe(lane);
  });
});

describe('what failed in lanes', () => {
  /** Failures of these files. Those with `red` in their name fail again. */
  const retried = async (files: readonly string[]) => {
    const printed: string[] = [];
    const runs: string[] = [];
    const failures = files.map((file, n) => ({
      ...{ title: `${file} › ${n}`, lane: 'clock', key: file },
      again: async () => {
        runs.push(file);
        return Promise.resolve({ failed: Number(file.includes('red')), output: `the output of ${file}` });
      },
    }));
    const red = await retry(failures, (line) => printed.push(line));
    return { red: red.map(({ title }) => title), printed, runs };
  };

  it('runs once more, each file once, and is named', async () => {
    expect(await retried(['a', 'a', 'red'])).toEqual({
      red: ['red › 2'],
      printed: [
        '\nthe output of red\n',
        'retried: a › 0 (clock): passed alone',
        'retried: a › 1 (clock): passed alone',
        'retried: red › 2 (clock): failed again',
      ],
      runs: ['a', 'red'],
    });
  });

  it('does not run again if it is more than three failures', async () => {
    const { red, printed, runs } = await retried(['a', 'b', 'c', 'd']);
    expect([red.length, runs.length]).toEqual([4, 0]);
    expect(printed).toEqual([
      ...['a › 0', 'b › 1', 'c › 2', 'd › 3'].map((title) => `failed: ${title}`),
      "More than 3 failed, so they don't run again.",
    ]);
  });
});
