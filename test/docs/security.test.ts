import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { proseOf, read, root } from './fences.js';
import { tablesUnder } from './tables.js';

const page = 'docs/security.md';
const testsPage = 'docs/security/tests.md';

/** The sections with threats. */
const headings = [...proseOf(page).matchAll(/^## (.+)$/gm)]
  .map(([, heading = '']) => heading)
  .filter((heading) => !['What is protected', 'Not defended'].includes(heading));

/** Returns the list items under a heading: the threat, in bold, and the text after it. */
const threatsUnder = (file: string, heading: string): readonly (readonly [threat: string, text: string])[] => {
  const [, section = ''] = proseOf(file).split(`## ${heading}\n`);
  const [list = ''] = section.split(/^## /m);
  // An item is its first line and the indented lines below.
  return [...list.matchAll(/^- (.*\n(?: .*\n)*)/gm)].map(([, item = '']) => {
    const [, threat = '', text = ''] = /^\*\*(.+?)\.\*\* ?(.*)$/.exec(item.replaceAll(/\s+/g, ' ').trim()) ?? [];
    return [threat, text];
  });
};

interface Named {
  readonly file: string;
  readonly title: string;
}

/** Parses the tests of a threat. Each has the form: - `file`: title. */
const testsOf = (text: string): readonly Named[] =>
  text
    .split(/(?:^|\s)- (?=`test\/)/)
    .map((one) => /^`(test\/[\w./-]+\.test\.ts)`: (.+)$/.exec(one.trim()))
    .flatMap((match) => (match ? [{ file: match[1] ?? '', title: match[2] ?? '' }] : []));

/** Returns the test titles of a file: the first string argument of each call to a test function. */
const titlesIn = (file: string): readonly string[] => {
  const quoted = String.raw`('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`;
  const calls = [String.raw`\b(?:it|itInCi)\(\s*`, String.raw`\b(?:it|itInCi)\.each[\s\S]*?\)\(\s*`];
  return calls.flatMap((call) =>
    [...read(file).matchAll(new RegExp(call + quoted, 'g'))].map(([, title = '']) => unquoted(title)),
  );
};

const unquoted = (literal: string): string => literal.slice(1, -1).replace(/\\(.)/g, '$1');

const problemsOf = ([threat, text]: readonly [string, string]): readonly string[] => {
  const tests = testsOf(text);
  const count = text.split('`test/').length - 1;
  if (tests.length === 0 || tests.length !== count) return [`"${threat}" has no test, or a test that cannot be parsed`];
  return tests.flatMap(({ file, title }) => {
    if (!existsSync(join(root, file))) return [`${file} does not exist`];
    return titlesIn(file).includes(title) ? [] : [`${file} has no test "${title}"`];
  });
};

describe('the threat model', () => {
  it.each(headings)('has a defense and existing tests for each threat under "%s"', (heading) => {
    const threats = threatsUnder(page, heading);
    const tested = threatsUnder(testsPage, heading);
    expect(threats.length).toBeGreaterThan(1);
    expect(threats.filter(([, defense]) => defense === '')).toEqual([]);
    expect(tested.map(([threat]) => threat)).toEqual(threats.map(([threat]) => threat));
    expect(tested.flatMap(problemsOf)).toEqual([]);
  });

  it('shows the locked versions', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { version: string }> };
    const [compared = []] = tablesUnder(page, 'Dependencies and the package');
    const inPage = compared.flatMap(({ Package = '', Locked = '' }) => {
      const versions = Locked.split(', ');
      return [...Package.matchAll(/@?[a-z][\w/-]+(?=`|$)/g)].map(([name], at) => [name, versions[at]]);
    });
    expect(inPage.length).toBeGreaterThan(5);
    for (const [name, version] of inPage)
      expect([name, version]).toEqual([name, packages[`node_modules/${name}`]?.version]);
  });
});
