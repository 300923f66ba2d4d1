import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

// What can be imported: a file of each row, the packages in the rows, a package that is in no row, and Node itself.
const files: Readonly<Record<string, string>> = {
  protocol: 'src/protocol/leaf.ts',
  reconnect: 'src/reconnect/leaf.ts',
  operators: 'src/operators/leaf.ts',
  'operators-on-node': 'src/operators/node/leaf.ts',
  options: 'src/options.ts',
  accounts: 'src/accounts/leaf.ts',
  diagnostics: 'src/diagnostics/leaf.ts',
  transport: 'src/transport/leaf.ts',
  worker: 'src/worker/leaf.ts',
  'inside-a-worker': 'src/worker/inside/leaf.ts',
  attempts: 'src/attempts.ts',
  'trade-feed': 'src/trade-feed.ts',
  index: 'src/index.ts',
  cluster: 'src/cluster/leaf.ts',
  election: 'src/cluster/election/leaf.ts',
  'cluster-engine': 'src/cluster/engine/leaf.ts',
  'cluster-messages': 'src/cluster/messages/leaf.ts',
  follower: 'src/cluster/follower/leaf.ts',
  nats: 'src/nats/leaf.ts',
  redis: 'src/redis/leaf.ts',
  testing: 'src/testing/leaf.ts',
  cli: 'src/cli/leaf.ts',
  relay: 'src/relay/leaf.ts',
  browser: 'src/browser/leaf.ts',
  angular: 'src/angular/leaf.ts',
  otel: 'src/otel/leaf.ts',
  nestjs: 'src/nestjs/leaf.ts',
  test: 'test/leaf.ts',
};
const codecs = ['io-ts', 'fp-ts', '@standard-schema/spec'];
const packages = [
  ...[...codecs, 'rxjs', 'ws', 'undici', 'selfsigned', 'commander', 'fs-native-extensions'],
  ...['@angular/core', '@nestjs/common', '@opentelemetry/api'],
  ...['@nats-io/transport-node', '@nats-io/jetstream', '@nats-io/kv', 'ioredis'],
];
const others = [...packages, 'lodash', 'node:fs'];
const targets = [...Object.keys(files), ...others];

// The table of docs/architecture.md again, written by hand: the rules must agree with each cell.
const operators = ['operators', 'operators-on-node'];
const table: Readonly<Record<string, { may: readonly string[]; mayAsType?: readonly string[] }>> = {
  protocol: { may: ['io-ts'], mayAsType: ['fp-ts'] },
  reconnect: { may: ['protocol', 'rxjs'] },
  operators: { may: ['protocol', 'rxjs'], mayAsType: ['fp-ts', 'io-ts', '@standard-schema/spec'] },
  'operators-on-node': { may: ['operators', 'protocol', 'rxjs', 'fs-native-extensions', 'node:fs'] },
  options: { may: ['protocol', 'reconnect', 'node:fs'], mayAsType: ['undici'] },
  accounts: { may: ['protocol', 'options', 'node:fs'] },
  diagnostics: { may: ['protocol', 'reconnect', 'node:fs'] },
  transport: { may: ['protocol', 'options', 'rxjs', 'ws', 'undici', 'node:fs'] },
  worker: { may: ['protocol', 'reconnect', 'transport', 'options', 'rxjs', 'node:fs'] },
  'inside-a-worker': { may: ['protocol', 'worker', 'options', 'attempts', 'node:fs'] },
  attempts: { may: ['protocol', 'reconnect', 'transport', 'options', 'rxjs'] },
  'trade-feed': {
    may: [
      ...['protocol', 'reconnect', 'accounts', 'diagnostics', 'transport', 'options', 'attempts', 'worker'],
      'rxjs',
    ],
  },
  index: { may: ['protocol', 'reconnect', 'diagnostics', ...operators, 'transport', 'options', 'trade-feed'] },
  cluster: {
    may: [
      ...['protocol', 'accounts', 'diagnostics', 'options', 'trade-feed', 'election', 'cluster-engine'],
      ...['cluster-messages', 'follower', 'rxjs', 'node:fs'],
    ],
  },
  election: { may: ['protocol', 'io-ts'] },
  'cluster-messages': { may: ['protocol', 'election', 'io-ts'] },
  follower: { may: ['protocol', 'cluster-messages'] },
  'cluster-engine': { may: ['rxjs'] },
  nats: { may: ['cluster-engine', '@nats-io/transport-node', '@nats-io/jetstream', '@nats-io/kv', 'rxjs'] },
  redis: { may: ['cluster-engine', 'rxjs', 'node:fs'], mayAsType: ['ioredis'] },
  testing: { may: ['protocol', 'cluster-engine', 'ws', 'rxjs', 'node:fs'], mayAsType: ['fp-ts'] },
  cli: {
    may: [
      ...['index', 'testing', 'cluster', 'nats', 'redis', '@nats-io/transport-node', 'ioredis'],
      ...['rxjs', 'commander', 'selfsigned', 'io-ts', 'undici', 'ws', 'node:fs'],
    ],
  },
  relay: { may: ['protocol', ...operators, 'rxjs', 'node:fs'] },
  browser: { may: ['protocol', 'reconnect', 'operators', 'rxjs'] },
  angular: { may: ['browser', 'operators', 'protocol', '@angular/core', 'rxjs'] },
  otel: { may: ['protocol', 'operators', 'rxjs'], mayAsType: ['@opentelemetry/api'] },
  nestjs: {
    may: [
      ...['index', 'options', 'trade-feed', 'protocol', 'reconnect', ...operators, 'relay', 'testing'],
      ...['otel', 'accounts', 'cluster', '@nestjs/common', '@opentelemetry/api', 'rxjs', 'node:fs'],
    ],
  },
  test: { may: targets },
};

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
}

const folders: string[] = [];

/** Creates a project with these sources and with stub packages, and returns its folder. */
const projectWith = async (sources: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'import-rules-'));
  folders.push(folder);
  const stubs = others
    .filter((name) => !name.startsWith('node:'))
    .flatMap((name) => [
      [`node_modules/${name}/package.json`, JSON.stringify({ name, main: 'index.js' })],
      [`node_modules/${name}/index.js`, ''],
    ]);
  const project = [
    [
      'package.json',
      JSON.stringify({ type: 'module', dependencies: Object.fromEntries(packages.map((n) => [n, '*'])) }),
    ],
    ['tsconfig.json', '{ "compilerOptions": { "module": "NodeNext" } }'],
  ];
  for (const [path = '', text = ''] of [...stubs, ...project, ...Object.entries(sources)]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
};

/** Returns the violations of each project. One process checks all of them. */
const violationsOf = async (projects: readonly string[]): Promise<readonly (readonly Violation[])[]> => {
  const args = [join(import.meta.dirname, 'programs/cruise.mjs'), ...projects];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
  return JSON.parse(stdout) as Violation[][];
};

// Relative, as the sources write it: every file is one or two folders deep.
const specifier = (from: string, to: string): string => {
  const path = files[to];
  return path === undefined ? to : `${'../'.repeat(from.split('/').length - 1)}${path.replace(/\.ts$/, '.js')}`;
};

/** One file a room that imports everything there is. */
const importingEverything = (statement: 'import * as' | 'import type * as'): Readonly<Record<string, string>> => {
  const leaves = Object.values(files).map((path) => [path, 'export const x = 1;'] as const);
  const probes = Object.entries(files).map(([room, leaf]) => {
    const path = leaf.replace('leaf', 'probe');
    const lines = targets
      .filter((target) => target !== room)
      .map((target, n) => `${statement} x${n} from '${specifier(path, target)}'; export { x${n} };`);
    return [path, lines.join('\n')] as const;
  });
  return Object.fromEntries([...leaves, ...probes]);
};

const nameOf = (path: string): string =>
  Object.keys(files).find((room) => files[room] === path) ??
  others.find((name) => path.endsWith(`node_modules/${name}/index.js`) || `node:${path}` === name) ??
  path;

/** Returns what the file of a room must not import by the rules of rooms. */
const refused = (violations: readonly Violation[], room: string): readonly string[] =>
  violations
    .filter(
      ({ from, rule }) => from === files[room]?.replace('leaf', 'probe') && /^(type-)?imports-of-/.test(rule.name),
    )
    .map(({ to }) => nameOf(to))
    .sort();

const allBut = (room: string, allowed: readonly string[]): readonly string[] =>
  targets.filter((target) => target !== room && !allowed.includes(target)).sort();

let asValues: readonly Violation[];
let asTypes: readonly Violation[];
let oddities: readonly Violation[];

beforeAll(async () => {
  const projects = await Promise.all([
    projectWith(importingEverything('import * as')),
    projectWith(importingEverything('import type * as')),
    projectWith({
      'src/index.ts': `export * from './trade-feed.js';`,
      'src/trade-feed.ts': `export * from './protocol/a.js';`,
      'src/protocol/a.ts': `import { b } from './b.js'; export const a = b;`,
      'src/protocol/b.ts': `import type { a } from './a.js'; export const b = 1; export type A = typeof a;`,
      'src/protocol/dead.ts': `export const dead = 1;`,
      'src/utils/helper.ts': `import '../protocol/a.js';`,
      'src/browser/index.ts': `export * from '../operators/pure.js';`,
      'src/operators/pure.ts': `export * from './not-pure.js';`,
      'src/operators/not-pure.ts': `import 'node:fs'; import 'ws';`,
      'test/one.ts': `import './two.js'; import '../src/protocol/dead.js';`,
      'test/two.ts': `import './one.js';`,
    }),
  ]);
  [asValues = [], asTypes = [], oddities = []] = await violationsOf(projects);
}, 120_000);

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

const found = (rule: string): readonly string[] =>
  [...new Set(oddities.filter(({ rule: { name } }) => name === rule).map(({ from, to }) => `${from} -> ${to}`))].sort();

describe('the import rules', () => {
  it('have a row in this test for every room', () => {
    expect(Object.keys(table).sort()).toEqual(Object.keys(files).sort());
  });

  it.each(Object.entries(table))('let %s import what its row names, nothing else', (room, { may }) => {
    expect(refused(asValues, room)).toEqual(allBut(room, may));
  });

  it.each(Object.entries(table))('hold for the type-only imports of %s too', (room, { may, mayAsType = [] }) => {
    expect(refused(asTypes, room)).toEqual(allBut(room, [...may, ...mayAsType]));
  });

  it('refuse cycles, those of a type and those of tests too', () => {
    expect(found('no-cycles')).toEqual(['src/protocol/a.ts -> src/protocol/b.ts', 'test/one.ts -> test/two.ts']);
  });

  it('refuse a file that only a test reaches', () => {
    const unreached = found('no-orphans').map((edge) => edge.split(' -> ')[1]);
    expect([...new Set(unreached)]).toEqual(['src/protocol/dead.ts', 'src/utils/helper.ts']);
  });

  it('refuse a file in a folder without a row', () => {
    expect(found('no-row')).toEqual(['src/utils/helper.ts -> src/protocol/a.ts']);
  });

  it('refuse a Node built-in or a socket library that the browser reaches by way of others', () => {
    const reached = found('browser-without-node').map((edge) => nameOf(edge.split(' -> ')[1] ?? ''));
    expect(reached).toEqual(['node:fs', 'ws']);
  });
});
