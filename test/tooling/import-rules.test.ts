/**
 * @lane processes
 * @ci
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { tempFolder } from '../cli/support/temp-folder.js';

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
}

/** A project with stub packages that breaks the rules. */
const project: Readonly<Record<string, string>> = {
  'node_modules/ws/package.json': JSON.stringify({ name: 'ws', main: 'index.js' }),
  'node_modules/ws/index.js': '',
  'package.json': JSON.stringify({ type: 'module', dependencies: { ws: '*' } }),
  'tsconfig.json': '{ "compilerOptions": { "module": "NodeNext" } }',
  'src/index.ts': `export * from './feed/trade-feed.js';`,
  'src/feed/trade-feed.ts': `export * from '../protocol/a.js';`,
  'src/protocol/a.ts': `import { b } from './b.js'; export const a = b;`,
  'src/protocol/b.ts': `import type { a } from './a.js'; export const b = 1; export type A = typeof a;`,
  'src/protocol/up.ts': `import type { a } from '../feed/trade-feed.js'; export type B = typeof a;`,
  'src/protocol/dead.ts': `export const dead = 1;`,
  'src/utils/helper.ts': `import '../protocol/a.js';`,
  'src/browser/index.ts': `export * from '../operators/pure.js';`,
  'src/operators/pure.ts': `export * from './not-pure.js';`,
  'src/operators/not-pure.ts': `import 'node:fs'; import 'ws';`,
  'test/one.ts': `import './two.js'; import '../src/protocol/dead.js';`,
  'test/two.ts': `import './one.js';`,
};

const folder = tempFolder();
let oddities: readonly Violation[];

beforeAll(async () => {
  for (const [path, text] of Object.entries(project)) {
    await mkdir(dirname(folder.path(path)), { recursive: true });
    await folder.file(path, text);
  }
  const args = [join(import.meta.dirname, 'programs/cruise.mjs'), folder.path('.')];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
  [oddities = []] = JSON.parse(stdout) as Violation[][];
}, 120_000);

const found = (rule: string): readonly string[] =>
  [...new Set(oddities.filter(({ rule: { name } }) => name === rule).map(({ from, to }) => `${from} -> ${to}`))].sort();

describe('the import rules', () => {
  it('refuse an import that is missing from the row of its folder, even a type-only one', () => {
    expect(found('imports-of-protocol/')).toEqual(['src/protocol/up.ts -> src/feed/trade-feed.ts']);
  });

  it('refuse cycles, even of types and tests', () => {
    expect(found('no-cycles')).toEqual(['src/protocol/a.ts -> src/protocol/b.ts', 'test/one.ts -> test/two.ts']);
  });

  it('refuse a file that only a test imports', () => {
    const unreached = found('no-orphans').map((edge) => edge.split(' -> ')[1]);
    expect([...new Set(unreached)]).toEqual(['src/protocol/dead.ts', 'src/protocol/up.ts', 'src/utils/helper.ts']);
  });

  it('refuse a file in a folder that has no row', () => {
    expect(found('no-row')).toEqual(['src/utils/helper.ts -> src/protocol/a.ts']);
  });

  it('refuse a Node built-in or a socket library that the browser imports indirectly', () => {
    const reached = found('browser-without-node').map((edge) => edge.split(' -> ')[1]);
    expect(reached).toEqual(['fs', 'node_modules/ws/index.js']);
  });
});
