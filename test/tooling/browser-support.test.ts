import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
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
const loaded = [page, 'src/angular/provide-trade-feed.ts', 'src/operators/frames.ts', 'src/protocol/frame.ts'];
const ofNode = ['src/operators/node/to-readable.ts', 'src/relay/relay.ts'];
// One line for each of the newer features.
const all = Object.values(newer).join('\n');
const texts = [
  [page, old] as const,
  ...[...loaded, 'src/feed/backoff.ts', ...ofNode].map((path) => [path, all] as const),
];

// The paths of the texts, and no other files: the rules need only the types of the language.
const tsconfig = (folder: string) => ({
  extends: relative(folder, join(cwd, 'tsconfig.json')),
  compilerOptions: { noResolve: true },
  files: texts.map(([path]) => relative(folder, join(cwd, path))),
  include: [],
});

// Lints each text under the path of an existing file, so that the rules of that path apply. Under jest this is much slower, so use a process.
const program = `
  import { ESLint } from 'eslint';
  const [project] = process.argv.slice(1);
  const eslint = new ESLint({
    // The other rules need many more types.
    ruleFilter: ({ ruleId }) => /^(es-x|compat)[/]|^no-restricted-prop/.test(ruleId),
    overrideConfig: {
      languageOptions: { parserOptions: { projectService: false, project, disallowAutomaticSingleRunInference: true } },
    },
  });
  const lines = [];
  for (const [filePath, text] of ${JSON.stringify(texts)}) {
    const [{ messages }] = await eslint.lintText(text, { filePath });
    lines.push(messages.map(({ line }) => line));
  }
  console.log(JSON.stringify(lines));`;

describe('the rules about browsers', () => {
  let found: readonly (readonly number[])[];
  const linesOf = (path: string, text: string) => found[texts.findIndex(([p, t]) => p === path && t === text)]!;
  beforeAll(async () => {
    await mkdir(join(cwd, 'temp'), { recursive: true });
    const folder = await mkdtemp(join(cwd, 'temp/browser-support-'));
    const project = join(folder, 'tsconfig.json');
    await writeFile(project, JSON.stringify(tsconfig(folder)));
    const args = ['--input-type=module', '-e', program, project];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
    found = JSON.parse(stdout) as number[][];
    await rm(folder, { recursive: true });
  }, 120_000);

  it.each(Object.keys(newer).map((name, index) => [name, index + 1] as const))(
    'refuse %s in a file that a page loads',
    (_name, line) => {
      expect(linesOf(page, all)).toContain(line);
    },
  );

  it('apply to every file that a page loads, and not to files for Node', () => {
    const lines = Object.keys(newer).map((_, index) => index + 1);
    for (const path of [...loaded, 'src/feed/backoff.ts'])
      expect([...new Set(linesOf(path, all))].sort((a, b) => a - b)).toEqual(lines);
    for (const path of ofNode) expect(linesOf(path, all)).toEqual([]);
  });

  it('accept what the oldest supported browser has', () => {
    expect(linesOf(page, old)).toEqual([]);
  });
});
