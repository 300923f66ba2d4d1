/**
 * @lane processes
 * @ci
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
}

const folders: string[] = [];

/** Creates a project with these sources and stub packages. Returns its folder. */
const projectWith = async (sources: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'import-rules-'));
  folders.push(folder);
  const stubs = [
    ['node_modules/ws/package.json', JSON.stringify({ name: 'ws', main: 'index.js' })],
    ['node_modules/ws/index.js', ''],
  ];
  const project = [
    ['package.json', JSON.stringify({ type: 'module', dependencies: { ws: '*' } })],
    ['tsconfig.json', '{ "compilerOptions": { "module": "NodeNext" } }'],
  ];
  for (const [path = '', text = ''] of [...stubs, ...project, ...Object.entries(sources)]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
};

/** Returns the violations of each project. Checks them all in one process. */
const violationsOf = async (projects: readonly string[]): Promise<readonly (readonly Violation[])[]> => {
  const args = [join(import.meta.dirname, 'programs/cruise.mjs'), ...projects];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
  return JSON.parse(stdout) as Violation[][];
};

let oddities: readonly Violation[];

beforeAll(async () => {
  const projects = await Promise.all([
    projectWith({
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
    }),
  ]);
  [oddities = []] = await violationsOf(projects);
}, 120_000);

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

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
