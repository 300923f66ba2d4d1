import { beforeAll, describe, expect, it } from '@jest/globals';
import { read } from '../docs/fences.js';
import { type BenchLibrary, benchLibrary, benchModule, type Goal } from './library.js';

interface Result {
  readonly command: string;
  readonly rounds: number;
  readonly machine: object;
  readonly goals: readonly Goal[];
  readonly charts: readonly {
    readonly id: string;
    readonly title: string;
    readonly alt?: string;
    readonly opens?: true;
  }[];
  readonly tables: readonly object[];
  readonly facts: Readonly<Record<string, string>>;
}

interface Fill {
  readonly fill: (document: string, sections: Readonly<Record<string, string>>) => string;
  readonly sectionOf: (name: string, result?: Result) => string;
  readonly summaryOf: (results: readonly Result[]) => string;
}

let fill: Fill;
let bench: BenchLibrary;
beforeAll(async () => {
  fill = (await benchModule('lib/fill.mjs')) as Fill;
  bench = await benchLibrary();
});

const result = (...goals: Goal[]): Result => ({
  command: 'npm run bench -- x',
  rounds: 9,
  machine: { cpu: 'a CPU', cores: 2, memoryGiB: 4, node: 'v20.0.0', platform: 'linux x64', load: [0.1, 0.2] },
  goals,
  charts: [{ id: 'x-bars', title: 'Bars' }],
  tables: [{ title: 'A table', columns: ['who', 'ns'], rows: [['ws', 1234]] }],
  facts: { missing: 'nobody' },
});
const goalOf = (what: string, ratio: number) => bench.goal({ id: what, what, ratio, atLeast: 2 });

describe('the guide', () => {
  it('changes only between the marks of a section', () => {
    const document = 'a\n<!-- bench:x -->\nold\n<!-- /bench -->\nb\n<!-- bench:y -->\nold\n<!-- /bench -->\nc';
    expect(fill.fill(document, { y: 'new' })).toBe(
      'a\n<!-- bench:x -->\nold\n<!-- /bench -->\nb\n<!-- bench:y -->\n\nnew\n\n<!-- /bench -->\nc',
    );
  });

  it('must have a section for each result', () => {
    expect(() => fill.fill('nothing', { x: 'new' })).toThrow('no section x');
  });

  it('has a section for each benchmark', async () => {
    const { benchmarks } = (await benchModule('programs.mjs')) as { benchmarks: object };
    const places = [...read('docs/performance.md').matchAll(/<!-- bench:(\w+) -->/g)].map(([, name]) => name);
    expect([...places].sort()).toEqual(['goals', 'opening', ...Object.keys(benchmarks)].sort());
  });
});

describe('a section', () => {
  it('contains the command, the machine, the goals, the charts, the tables and the facts', () => {
    const section = fill.sectionOf('x', result(goalOf('ws over ours', 3)));
    for (const part of [
      '`npm run bench -- x`: a CPU, 2 cores, 4 GiB, linux x64, Node 20.0.0, load average 0.1 to 0.2; 9 rounds.',
      /\| ws over ours \| at least 2 \|\s+3 \|\s+3 \|\s+3 \|\s+1 \| met \|/,
      '![Bars](performance/x-bars.svg)',
      /\| ws +\| 1 234 \|/,
      '- missing: nobody',
    ])
      expect(section).toMatch(part);
  });

  it('has the alternative text of a chart, and not what the guide opens with', () => {
    const all = result(goalOf('ws over ours', 3));
    const [table = {}] = all.tables;
    const section = fill.sectionOf('x', {
      ...all,
      charts: [
        { id: 'first', title: 'First', opens: true },
        { id: 'later', title: 'Later', alt: 'Bars: 3 and 4' },
      ],
      tables: [{ ...table, title: 'First table', opens: true }, table],
    });
    expect(section).toContain('![Bars: 3 and 4](performance/later.svg)');
    expect(section).toContain('A table:');
    expect(section).not.toMatch(/First/);
  });

  it('of a benchmark that has not run says so', () => {
    expect(fill.sectionOf('x')).toBe('Not measured yet: `npm run bench -- x`.');
  });
});

describe('the summary', () => {
  it('lists the missed goals and by how much', () => {
    const text = fill.summaryOf([result(goalOf('one', 3)), result(goalOf('two', 1.5))]);
    expect(text).toContain('1 of 2 goals are met.');
    expect(text).toMatch(/two .* \*\*missed by 25 %\*\*/);
    expect(text).not.toMatch(/\| one /);
  });

  it('lists the reasons of the missed goals only', () => {
    const noted = (what: string, ratio: number) => ({ ...goalOf(what, ratio), note: `why ${what}` });
    const text = fill.summaryOf([result(noted('one', 3), noted('two', 1.5))]);
    expect(text).toMatch(/\n\n- two: why two$/);
    expect(text).not.toContain('why one');
  });

  it('reports that all goals are met, or that nothing was measured', () => {
    expect(fill.summaryOf([result(goalOf('one', 2))])).toBe('All 1 goals are met.');
    expect(fill.summaryOf([])).toContain('Not measured');
  });
});
