import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const cwd = join(import.meta.dirname, '../..');

const newer: Readonly<Record<string, string>> = {
  'URL.canParse': "URL.canParse('x');",
  'AbortSignal.any': 'AbortSignal.any([]);',
  'Response.json': 'Response.json(1);',
  CompressionStream: "new CompressionStream('gzip');",
  'Array.prototype.findLast': '[1].findLast(Boolean);',
  'Array.prototype.toSorted': 'export const f = (all: number[]) => all.toSorted();',
  'Object.groupBy': 'Object.groupBy([1], String);',
  'Promise.withResolvers': 'Promise.withResolvers();',
  'a lookbehind': '/(?<=a)b/.test("x");',
  'the flag v': 'new RegExp("a", "v");',
};
const old = `structuredClone({});
[1].at(-1);
Object.hasOwn({}, 'a');
'a'.replaceAll('a', 'b');
new Error('x', { cause: 1 });
export class Own { readonly #x = 1; x = this.#x; }`;

const page = 'src/browser/page-globals.ts';
const loaded = [page, 'src/angular/feed-status.ts', 'src/operators/frames.ts', 'src/protocol/frame.ts'];
const ofNode = ['src/operators/node/replay.ts', 'src/relay/relay.ts'];
const cases = [
  ...Object.values(newer).map((text) => [page, text] as const),
  [page, old] as const,
  ...[...loaded, 'src/reconnect/backoff.ts', ...ofNode].map((path) => [path, Object.values(newer).join('\n')] as const),
];

// Lints each text as a file that is there, so that its types are known. In a process: types take seconds under jest.
const program = `
  import { ESLint } from 'eslint';
  // The other rules need many more types.
  const eslint = new ESLint({ ruleFilter: ({ ruleId }) => /^(es-x|compat)[/]|^no-restricted-prop/.test(ruleId) });
  const rules = [];
  for (const [filePath, text] of ${JSON.stringify(cases)}) {
    const [{ messages }] = await eslint.lintText(text, { filePath });
    rules.push(messages.map(({ ruleId }) => ruleId));
  }
  console.log(JSON.stringify(rules));`;

describe('the rules about browsers', () => {
  let found: readonly (readonly string[])[];
  const rulesOf = (path: string, text: string) => found[cases.findIndex(([p, t]) => p === path && t === text)];
  beforeAll(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd });
    found = JSON.parse(stdout) as string[][];
  }, 120_000);

  it.each(Object.entries(newer))('refuse %s in a file that a page loads', (_name, text) => {
    expect(rulesOf(page, text)).not.toEqual([]);
  });

  it('hold for every file that a page loads, and for none of Node', () => {
    const all = Object.values(newer).join('\n');
    for (const path of [...loaded, 'src/reconnect/backoff.ts'])
      expect(rulesOf(path, all)!.length).toBeGreaterThanOrEqual(Object.keys(newer).length);
    for (const path of ofNode) expect(rulesOf(path, all)).toEqual([]);
  });

  it('take what the oldest browser has', () => {
    expect(rulesOf(page, old)).toEqual([]);
  });
});
