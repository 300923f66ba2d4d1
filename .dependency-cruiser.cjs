// Who may import whom: see docs/architecture.md. A folder or a file may import itself and what its row lists, nothing else.
const { builtinModules } = require('node:module');
const { exports: entries } = require('./package.json');

/**
 * One row for each folder and file of src. A folder ends with `/`, and a nested folder with its own row is not part of the outer one.
 * `node:` means all built-in modules of Node. `type x` means: x with `import type` only.
 */
const rows = {
  'protocol/': ['io-ts', 'type fp-ts'],
  // The types of the codecs that a user can pass.
  'operators/': ['protocol/', 'rxjs', 'type fp-ts', 'type io-ts', 'type @standard-schema/spec'],
  'operators/node/': ['operators/', 'protocol/', 'rxjs', 'node:'],
  // The type of the Dispatcher that a user can pass.
  'feed/options.ts': ['protocol/', 'feed/backoff.ts', 'node:', 'type undici'],
  'feed/backoff.ts': ['protocol/', 'rxjs'],
  'feed/lifecycle.ts': ['protocol/', 'feed/backoff.ts', 'rxjs'],
  'feed/accounts.ts': ['protocol/', 'feed/options.ts', 'node:'],
  'feed/diagnostics.ts': ['protocol/', 'operators/', 'rxjs', 'node:'],
  'frames/': ['protocol/', 'node:'],
  'transport/': ['protocol/', 'frames/', 'feed/options.ts', 'rxjs', 'ws', 'undici', 'node:'],
  // Both threads run the attempts: the main thread, and a worker.
  'feed/attempts.ts': ['protocol/', 'feed/lifecycle.ts', 'feed/options.ts', 'transport/', 'rxjs'],
  'worker/': [
    'protocol/',
    'frames/',
    'feed/backoff.ts',
    'feed/lifecycle.ts',
    'feed/options.ts',
    'transport/',
    'rxjs',
    'node:',
  ],
  'worker/inside/': ['protocol/', 'worker/', 'feed/attempts.ts', 'feed/options.ts', 'node:'],
  'feed/trade-feed.ts': [
    ...['protocol/', 'feed/accounts.ts', 'feed/attempts.ts', 'feed/diagnostics.ts', 'feed/lifecycle.ts'],
    ...['feed/options.ts', 'operators/', 'transport/', 'worker/', 'rxjs'],
  ],
  'index.ts': [
    ...['protocol/', 'operators/', 'operators/node/', 'transport/'],
    ...['feed/backoff.ts', 'feed/diagnostics.ts', 'feed/options.ts', 'feed/trade-feed.ts'],
  ],
  'cluster/': [
    ...['protocol/', 'feed/accounts.ts', 'feed/diagnostics.ts', 'feed/options.ts', 'feed/trade-feed.ts', 'frames/'],
    ...[
      'cluster/election/',
      'cluster/engine.ts',
      'log/log-error.ts',
      'operators/items/async-context.ts',
      'operators/items/follow-feed.ts',
      'operators/node/write-frame.ts',
      'operators/share-feed.ts',
      'log/line-reader.ts',
      'log/line-store.ts',
      'log/line-writer.ts',
      'log/page-records.ts',
      'log/refusal.ts',
      'rxjs',
      'io-ts',
      'node:',
    ],
  ],
  // Pure: the simulation runs it in virtual time.
  'cluster/election/': ['protocol/', 'io-ts'],
  'cluster/engine.ts': ['log/line-store.ts', 'log/memory-line.ts', 'rxjs'],
  'nats/': [
    ...['cluster/engine.ts', 'protocol/', 'log/line-store.ts', 'log/stored-line.ts', 'log/engine-log.ts'],
    ...['type log/feed-log.ts', 'rxjs', 'node:'],
    ...['@nats-io/transport-node', '@nats-io/jetstream', '@nats-io/kv'],
  ],
  'redis/': [
    ...['cluster/engine.ts', 'protocol/', 'log/line-store.ts', 'log/stored-line.ts', 'log/engine-log.ts'],
    ...['type log/feed-log.ts', 'type ioredis', 'rxjs', 'node:'],
  ],
  // The tests of an engine.
  'testing/': ['protocol/', 'cluster/engine.ts', 'type log/line-store.ts', 'ws', 'type fp-ts', 'rxjs', 'node:'],
  'cli/': [
    ...['index.ts', 'protocol/', 'operators/', 'operators/node/write-frame.ts', 'testing/'],
    ...['transport/connect.ts', 'transport/proxy-for.ts', 'transport/proxy-from-environment.ts'],
    ...['log/', 'cluster/', 'nats/', 'redis/', '@nats-io/transport-node', 'ioredis'],
    ...['rxjs', 'commander', 'selfsigned', 'node:'],
  ],
  'relay/': [
    'protocol/',
    'frames/json-bytes.ts',
    'operators/',
    'operators/node/',
    'browser/relay-error.ts',
    'rxjs',
    'node:',
  ],
  'browser/': ['protocol/', 'feed/backoff.ts', 'feed/lifecycle.ts', 'operators/', 'rxjs', 'eventsource-parser'],
  'angular/': ['browser/', 'operators/', 'protocol/', '@angular/core', 'rxjs'],
  'interop/': ['protocol/', 'operators/items/async-context.ts', 'rxjs'],
  'settle/': ['protocol/', 'operators/', 'rxjs'],
  'log/': [
    'protocol/',
    'frames/json-bytes.ts',
    'operators/',
    'operators/node/',
    'feed/diagnostics.ts',
    'rxjs',
    'fs-native-extensions',
    'node:',
  ],
  'otel/': ['protocol/', 'operators/', 'rxjs', 'type @opentelemetry/api'],
  'nestjs/': [
    ...['index.ts', 'feed/accounts.ts', 'feed/options.ts', 'feed/trade-feed.ts', 'protocol/', 'operators/'],
    ...['operators/node/', 'relay/', 'cluster/', 'testing/', 'otel/', '@nestjs/common', '@opentelemetry/api'],
    ...['rxjs', 'node:'],
  ],
};

const node = `^(node:.+|(${builtinModules.join('|')})(/|$))`;

const nestedIn = (folder) => Object.keys(rows).filter((row) => row !== folder && row.startsWith(folder));

/** Returns the pattern of the paths that a name in the table stands for. */
const pathsOf = (name) => {
  if (name === 'node:') return node;
  if (name.endsWith('.ts')) return `^src/${name.replace('.', '\\.')}$`;
  if (!name.endsWith('/')) return `(^|/)node_modules/(@types/)?${name}(/|$)`;
  return `^src/${name}${nestedIn(name)
    .map((nested) => `(?!${nested.slice(name.length)})`)
    .join('')}`;
};

// What package.json exports and runs. A worker thread loads its file by URL; no file imports it.
const exported = Object.values(entries).flatMap(({ types }) => /dist\/(.+)\.d\.ts$/.exec(types)?.[1] ?? []);
const entryPoints = `^src/(${exported.join('|')}|for-servers|cli/main|worker/inside/feed-worker)\\.c?ts$`;

const rulesOf = ([row, names]) => {
  const from = pathsOf(row);
  const typeNames = names.filter((name) => name.startsWith('type ')).map((name) => name.slice('type '.length));
  const may = names.filter((name) => !name.startsWith('type ')).map(pathsOf);
  const mayAsType = typeNames.map(pathsOf);
  return [
    {
      name: `imports-of-${row}`,
      comment: `src/${row} may import what its row in .dependency-cruiser.cjs lists, nothing else.`,
      severity: 'error',
      from: { path: from },
      to: { pathNot: [from, ...may, ...mayAsType] },
    },
    ...mayAsType.map((path, n) => ({
      name: `type-imports-of-${row}`,
      comment: `src/${row} may import ${typeNames[n]} with \`import type\` only.`,
      severity: 'error',
      from: { path: from },
      to: { path, pathNot: [from, ...may], dependencyTypesNot: ['type-only'] },
    })),
  ];
};

module.exports = {
  forbidden: [
    ...Object.entries(rows).flatMap(rulesOf),
    {
      name: 'no-row',
      comment: 'No row of .dependency-cruiser.cjs covers this file: move it into the folder whose rules it follows.',
      severity: 'error',
      from: { path: '^src/', pathNot: Object.keys(rows).map(pathsOf) },
      to: {},
    },
    {
      name: 'no-cycles',
      comment: 'Imports must not form a cycle. Type imports count, too.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment: 'No entry point reaches this file: it is dead, or its export is missing.',
      severity: 'error',
      from: { path: entryPoints },
      to: { path: '^src/', pathNot: entryPoints, reachable: false },
    },
    {
      name: 'no-missing-file',
      comment:
        'This file imports a file of the project that is not there. The folders dist and docs/api are generated.',
      severity: 'error',
      from: { pathNot: '^examples/nestjs-angular/' },
      to: { couldNotResolve: true, path: '^\\.', pathNot: '/(dist|api)/' },
    },
    {
      name: 'browser-without-node',
      comment:
        'Files for browsers must not reach a Node built-in or a socket library, directly or through other files.',
      severity: 'error',
      from: { path: pathsOf('browser/') },
      to: { path: [node, pathsOf('ws'), pathsOf('undici')], reachable: true },
    },
  ],
  options: {
    // Imports of these packages and folders are checked; their own files are not read.
    doNotFollow: { path: ['node_modules', '^(dist|site|coverage|temp)/'] },
    // Type-only imports count as imports.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
};
