import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { proseOf, read, root } from './fences.js';
import { type Row, tablesUnder } from './tables.js';

const page = 'docs/security.md';

/** The required sections of the threat model. */
const headings = [
  'Theft of the key',
  'Theft of a ticket',
  'Redirects and downgrades',
  'A hostile service',
  'Hostile frames',
  'Logs and terminals',
  'The relay and pages',
  'On this machine',
  'Dependencies and the package',
];

const rowsUnder = (heading: string): readonly Row[] => tablesUnder(page, heading)[0] ?? [];

interface Named {
  readonly file: string;
  readonly title: string;
}

/** Reads the tests of a row, separated by semicolons. Each has the form: `file`: title. */
const testsOf = (row: Row): readonly Named[] =>
  (row['Test'] ?? '')
    .split(/; (?=`test\/)/)
    .map((one) => /^`(test\/[\w./-]+\.test\.ts)`: (.+)$/.exec(one))
    .flatMap((match) => (match ? [{ file: match[1] ?? '', title: match[2] ?? '' }] : []));

/** Returns the test titles of a file: the first string argument of each call of a test function. */
const titlesIn = (file: string): readonly string[] => {
  const quoted = String.raw`('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`;
  const calls = [String.raw`\b(?:it|test)\(\s*`, String.raw`\b(?:it|test)\.each[\s\S]*?\)\(\s*`];
  return calls.flatMap((call) =>
    [...read(file).matchAll(new RegExp(call + quoted, 'g'))].map(([, title = '']) => unquoted(title)),
  );
};

const unquoted = (literal: string): string => literal.slice(1, -1).replace(/\\(.)/g, '$1');

const problemsOf = (row: Row): readonly string[] => {
  const tests = testsOf(row);
  const count = (row['Test'] ?? '').split('`test/').length - 1;
  if (tests.length === 0 || tests.length !== count)
    return [`"${row['Threat']}" has no test, or a test that cannot be parsed`];
  return tests.flatMap(({ file, title }) => {
    if (!existsSync(join(root, file))) return [`${file} does not exist`];
    return titlesIn(file).includes(title) ? [] : [`${file} has no test "${title}"`];
  });
};

describe('the threat model', () => {
  it.each(headings)('has a defence and existing tests for each threat under "%s"', (heading) => {
    const rows = rowsUnder(heading);
    expect(rows.flatMap(problemsOf)).toEqual([]);
    expect(rows.filter((row) => !row['Threat'] || !row['What holds it'])).toEqual([]);
  });

  it('has no table of threats outside these sections', () => {
    const tables = proseOf(page).match(/^\| Threat /gm) ?? [];
    expect(tables).toHaveLength(headings.length);
  });

  it('lists what is not defended', () => {
    const [, defended = ''] = proseOf(page).split('## Not defended');
    expect(defended.match(/^- /gm)?.length).toBeGreaterThan(5);
  });

  it('is checked by a test that detects errors', () => {
    const row = (test: string): Row => ({ Threat: 'x', 'What holds it': 'y', Test: test });
    expect(problemsOf(row(''))).toHaveLength(1);
    expect(problemsOf(row('the tests'))).toHaveLength(1);
    expect(problemsOf(row('`test/nothing.test.ts`: x'))).toEqual(['test/nothing.test.ts does not exist']);
    expect(problemsOf(row('`test/docs/security.test.ts`: no such title'))).toHaveLength(1);
    expect(problemsOf(row('`test/docs/security.test.ts`: lists what is not defended'))).toEqual([]);
    expect(problemsOf(row('`test/docs/security.test.ts`: lists what is not defended; `test/x`: y'))).toHaveLength(1);
  });

  it('shows the locked versions', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { version: string }> };
    const [, compared = []] = tablesUnder(page, 'Dependencies and the package');
    const inPage = compared.flatMap(({ Package = '', Locked = '' }) => {
      const versions = Locked.split(', ');
      return [...Package.matchAll(/@?[a-z][\w/-]+(?=`|$)/g)].map(([name], at) => [name, versions[at]]);
    });
    expect(inPage.length).toBeGreaterThan(5);
    for (const [name, version] of inPage)
      expect([name, version]).toEqual([name, packages[`node_modules/${name}`]?.version]);
  });
});
