import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { type Goal, reliabilityModule } from './library.js';

interface Result {
  readonly name: string;
  readonly command: string;
  readonly goals: readonly Goal[];
  readonly charts?: readonly object[];
  readonly tables?: readonly object[];
  readonly facts?: object;
  readonly keep?: boolean;
}
type Rule = (what: string, measured: number | undefined, than: number, unit?: string) => Goal;
const { atMost, atLeast, exactly, holds } = await reliabilityModule<{
  atMost: Rule;
  atLeast: Rule;
  exactly: Rule;
  holds: (what: string, met: boolean, measured?: string) => Goal;
}>('lib/goal.mjs');
const { report } = await reliabilityModule<{ report: (of: Result) => Promise<unknown> }>('lib/report.mjs');
const { sectionOf } = await reliabilityModule<{ sectionOf: (result: object) => string }>('lib/section.mjs');

const metOf = (...goals: readonly Goal[]) => goals.map(({ met }) => met);
const chart = { id: 'try-report', title: 'T', kind: 'columns', series: [{ name: 'n', points: [[0, 1], [5, 2]] }] }; // prettier-ignore

describe('a rule', () => {
  it('is met by a value within its limit', () => {
    expect(metOf(atMost('', 5, 5), atMost('', 6, 5), atLeast('', 5, 5), atLeast('', 4, 5))).toEqual([true, false, true, false]); // prettier-ignore
    expect(metOf(exactly('', 0, 0), exactly('', 1, 0), holds('', true), holds('', false))).toEqual([true, false, true, false]); // prettier-ignore
  });

  it.each([NaN, undefined])('is not met by %p', (nothing) => {
    expect(metOf(atMost('', nothing, 5), atLeast('', nothing, 5), exactly('', nothing, 5))).toEqual([false, false, false]); // prettier-ignore
  });
});

describe('a section', () => {
  it('contains the command, the rules, the charts, the tables and the facts', () => {
    const machine = { cpu: 'a CPU', cores: 2, memoryGiB: 4, node: 'v20.0.0', platform: 'linux x64', load: [0.1, 0.2] };
    const section = sectionOf({
      command: 'npm run try',
      machine,
      goals: [atMost('growth', 3, 5, 'MB'), exactly('losses', 2, 0)],
      charts: [chart],
      tables: [{ title: 'A table', columns: ['who'], rows: [['we']] }],
      facts: { seen: 'all' },
    });
    for (const part of [
      '`npm run try`: a CPU, 2 cores',
      /\| growth \| at most 5 MB \| +3 \| met +\|/,
      /\| losses \| 0 +\| +2 \| \*\*broken\*\* \|/,
      '![T](reliability/try-report.svg)',
      'A table:',
      '- seen: all',
    ])
      expect(section).toMatch(part);
  });
});

describe('a report of a short run', () => {
  const files = ['try-report.json', 'try-report.svg'].map((name) => `temp/reliability/${name}`);
  afterEach(() => {
    files.forEach((file) => rmSync(file, { force: true }));
    jest.restoreAllMocks();
  });

  it.each([
    [0, undefined],
    [1, 1],
  ])('with %d losses writes its files to temp and sets the exit code to %p', async (losses, code) => {
    const log = jest.spyOn(console, 'log').mockImplementation(() => {});
    const before = process.exitCode;
    await report({ name: 'try-report', command: 'x', goals: [exactly('losses', losses, 0)], charts: [chart], keep: false }); // prettier-ignore
    const after = process.exitCode;
    process.exitCode = before;
    expect(after).toBe(code);
    expect(log.mock.calls.join()).toContain('SHORT RUN, NOT A RESULT');
    expect(files.map((file) => existsSync(file))).toEqual([true, true]);
    expect(readFileSync(files[0]!, 'utf8')).toContain(`"measured": ${losses}`);
  });
});
