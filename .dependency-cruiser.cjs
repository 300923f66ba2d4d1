// Who may import whom: the table of the design. A folder may import itself and what its row names, nothing else.
const { builtinModules } = require('node:module');

const folder = (...names) => `^src/(${names.join('|')})/`;
const file = (...names) => `^src/(${names.join('|')})\\.ts$`;
const packages = (...names) => `(^|/)node_modules/(@types/)?(${names.join('|')})(/|$)`;
const codecs = packages('io-ts', 'fp-ts');
const rxjs = packages('rxjs');
const node = `^(node:.+|(${builtinModules.join('|')})(/|$))`;

/** One row: who (paths of src), what it may import, and what of it as a type alone. */
const rows = [
  { who: 'protocol', from: folder('protocol'), may: [codecs] },
  { who: 'reconnect', from: folder('reconnect'), may: [folder('protocol'), rxjs] },
  {
    who: 'operators',
    from: '^src/operators/(?!node/)',
    may: [folder('protocol'), rxjs, packages('fp-ts')],
    // The types of the codecs that a user may hand over.
    mayAsType: [packages('io-ts', '@standard-schema/spec')],
  },
  {
    who: 'operators-on-node',
    from: folder('operators/node'),
    may: [folder('operators', 'protocol'), rxjs, packages('fs-native-extensions'), node],
  },
  {
    who: 'options',
    from: file('options'),
    may: [folder('protocol'), codecs, folder('reconnect'), node],
    // The type of the Dispatcher that a user may hand over.
    mayAsType: [packages('undici')],
  },
  { who: 'accounts', from: folder('accounts'), may: [folder('protocol'), file('options'), node] },
  {
    who: 'transport',
    from: folder('transport'),
    may: [folder('protocol'), file('options'), rxjs, packages('ws', 'undici'), node],
  },
  {
    who: 'worker',
    from: '^src/worker/(?!inside/)',
    may: [folder('protocol', 'reconnect', 'transport'), file('options'), rxjs, node],
  },
  {
    // What a worker thread runs: the whole feed.
    who: 'inside-a-worker',
    from: folder('worker/inside'),
    may: [folder('protocol', 'worker'), file('options', 'trade-feed'), node],
  },
  {
    who: 'trade-feed',
    from: file('trade-feed'),
    // Not what is inside a worker: that imports the feed in turn.
    may: [
      folder('accounts', 'protocol', 'reconnect', 'operators', 'transport'),
      '^src/worker/(?!inside/)',
      file('options'),
      codecs,
      rxjs,
    ],
  },
  {
    who: 'index',
    from: file('index'),
    may: [folder('protocol', 'reconnect', 'operators', 'transport'), file('options', 'trade-feed'), codecs, rxjs],
  },
  {
    who: 'testing',
    from: folder('testing'),
    may: [folder('protocol'), packages('ws'), codecs, rxjs, node],
  },
  {
    who: 'cli',
    from: folder('cli'),
    may: [file('index', 'protocol/printable'), folder('testing'), rxjs, packages('selfsigned'), node],
  },
  { who: 'relay', from: folder('relay'), may: [folder('protocol', 'operators'), rxjs, node] },
  { who: 'browser', from: folder('browser'), may: [folder('protocol', 'reconnect', 'operators'), rxjs] },
  {
    who: 'angular',
    from: folder('angular'),
    may: [folder('browser', 'operators', 'protocol'), packages('@angular/core'), rxjs],
  },
  {
    who: 'nestjs',
    from: folder('nestjs'),
    may: [
      file('index', 'options', 'trade-feed'),
      folder('accounts', 'protocol', 'reconnect', 'operators', 'relay', 'testing'),
      ...[packages('@nestjs/common'), rxjs, node],
    ],
  },
  { who: 'nats', from: folder('nats'), may: [file('index'), packages('@nats-io/[^/]+')] },
];

// A worker's file is named by its address, not imported.
const entryPoints =
  '^src/(index|(operators|testing|relay|browser|angular|nestjs|nats)/index|cli/main|worker/inside/feed-worker)\\.ts$';

const rulesOf = ({ who, from, may, mayAsType = [] }) => [
  {
    name: `imports-of-${who}`,
    comment: `src/${who} may import what its row in .dependency-cruiser.cjs names, nothing else.`,
    severity: 'error',
    from: { path: from },
    to: { pathNot: [from, ...may, ...mayAsType] },
  },
  ...(mayAsType.length === 0
    ? []
    : [
        {
          name: `types-alone-for-${who}`,
          comment: `src/${who} may import this with \`import type\` alone.`,
          severity: 'error',
          from: { path: from },
          to: { path: mayAsType, pathNot: [from, ...may], dependencyTypesNot: ['type-only'] },
        },
      ]),
];

module.exports = {
  forbidden: [
    ...rows.flatMap(rulesOf),
    {
      name: 'no-room',
      comment: 'This file is in no folder of the design: put it into the one whose rules it follows.',
      severity: 'error',
      from: { path: '^src/', pathNot: rows.map(({ from }) => from) },
      to: {},
    },
    {
      name: 'no-cycles',
      comment: 'No cycles, of types neither.',
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
      name: 'browser-without-node',
      comment: 'What a browser loads reaches no Node built-in and no socket library, by whatever way.',
      severity: 'error',
      from: { path: folder('browser') },
      to: { path: [node, packages('ws', 'undici')], reachable: true },
    },
  ],
  options: {
    // Imports of these are seen; they themselves are not read.
    doNotFollow: { path: ['node_modules', '^(dist|site|coverage|temp)/'] },
    // Type-only imports count as imports.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
};
