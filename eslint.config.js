import { defineConfig, globalIgnores } from 'eslint/config';
import compatData from '@mdn/browser-compat-data/forLegacyNode';
import compat from 'eslint-plugin-compat';
import esX from 'eslint-plugin-es-x';
import rxjsX from 'eslint-plugin-rxjs-x';
import tseslint from 'typescript-eslint';

const ban = (...rules) => ['error', ...rules.map(([selector, message]) => ({ selector, message }))];

const noDefaultExport = ['ExportDefaultDeclaration', 'Named exports only.'];
const noExportAll = ['ExportAllDeclaration', 'Name each export: the public names are part of the API.'];
const noEnum = ['TSEnumDeclaration', 'Use a const object and a union.'];

const noOnly = [
  'MemberExpression[object.name=/^(describe|it|test)$/][property.name="only"]',
  'With `only` the other tests of this file do not run.',
];

const withoutInnerSubscription = [
  ...['count', 'defaultIfEmpty', 'endWith', 'every', 'filter', 'finalize', 'ignoreElements', 'isEmpty', 'last', 'map'],
  ...['max', 'min', 'reduce', 'share', 'startWith', 'takeLast', 'tap', 'throwIfEmpty', 'toArray'],
];

/** The oldest browsers that Angular 20 supports. If they were in package.json, the builds of the example would read them. */
const supportedBrowsers = ['chrome >= 107', 'edge >= 107', 'firefox >= 104', 'safari >= 16', 'ios >= 16'];
const oldest = supportedBrowsers.map((line) => line.replace('ios', 'safari_ios').split(' >= '));

// Static methods such as `URL.canParse`: `compat` checks interfaces only, and `es-x` does not check web APIs.
const newerStatics = Object.entries(compatData.api).flatMap(([object, members]) =>
  Object.entries(members).flatMap(([name, { __compat: known }]) => {
    const isOld = ([browser, least]) => Number.parseFloat([known.support[browser]].flat()[0]?.version_added) <= least;
    const property = name.replace(/_static$/, '');
    if (property === name || oldest.every(isOld)) return [];
    return [{ object, property, message: 'A supported browser does not have this method.' }];
  }),
);

const loadedByPages = [
  ...['browser', 'angular', 'operators', 'otel', 'interop', 'settle', 'protocol'].map((folder) => `src/${folder}/**`),
  'src/feed/{backoff,lifecycle}.ts',
];

export default defineConfig(
  // The example app is a separate package with its own settings.
  globalIgnores(['dist/', 'coverage/', 'site/', 'temp/', 'etc/', 'examples/nestjs-angular/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.{ts,cts}'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked, rxjsX.configs.recommended],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-restricted-syntax': ban(noDefaultExport, noExportAll, noEnum),
      eqeqeq: 'error',
      // With `no-implied-eval` of the shared settings: the library works under every Content-Security-Policy.
      'no-eval': 'error',
      '@typescript-eslint/consistent-type-exports': 'error',
      // `import { type A }` loads the module, even if all names are types.
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // The library uses retryWhen on purpose.
      '@typescript-eslint/no-deprecated': [
        'error',
        { allow: [{ from: 'package', name: 'retryWhen', package: 'rxjs' }] },
      ],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // An empty string often means a missing one.
      '@typescript-eslint/prefer-nullish-coalescing': ['error', { ignorePrimitives: { string: true } }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // Operators that subscribe to nothing else may follow takeUntil.
      'rxjs-x/no-unsafe-takeuntil': ['error', { allow: withoutInnerSubscription }],
      // Use whichever is easier to read.
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/consistent-indexed-object-style': 'off',
      '@typescript-eslint/no-unnecessary-type-arguments': 'off',
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
      // `toJSON` and `with` spread an error or a class instance into a plain object.
      '@typescript-eslint/no-misused-spread': 'off',
      // There are no enums: `no-restricted-syntax` forbids them.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      // This rule takes a tenth of the time and finds little, because our classes are nominal types.
      '@typescript-eslint/no-unsafe-class-instance-assignment': process.env.CI ? 'error' : 'off',
    },
  },
  // CommonJS files exist to call `require` when it is needed.
  { files: ['**/*.cts'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
  {
    // These folders get time from a scheduler or as data. Only `transport` uses timers and sockets.
    files: [
      ...['src/protocol/**', 'src/feed/{backoff,lifecycle}.ts', 'src/operators/**'],
      ...['src/cluster/election/**', 'src/cluster/follower.ts', 'src/cluster/messages.ts'],
    ],
    rules: { 'no-restricted-globals': ['error', 'setTimeout', 'setInterval', 'setImmediate', 'fetch', 'WebSocket'] },
  },
  {
    // Code for pages uses only web APIs and syntax that the supported browsers have.
    files: loadedByPages,
    ignores: ['src/operators/node/**'],
    extends: [compat.configs['flat/recommended'], esX.configs['flat/restrict-to-es2022']],
    // `scheduler` is a parameter of RxJS here, not the global.
    settings: { browsers: supportedBrowsers, polyfills: ['scheduler'] },
    rules: {
      'es-x/no-regexp-lookbehind-assertions': 'error',
      'no-restricted-properties': ['error', ...newerStatics],
    },
  },
  {
    files: ['test/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [{ regex: '/reliability/', message: 'reliability/ imports from test/, not the reverse.' }],
          paths: [{ name: '@jest/globals', importNames: ['test'], message: 'Use `it`.' }],
        },
      ],
    },
  },
  {
    files: ['test/**', 'reliability/test/**'],
    rules: {
      'no-restricted-syntax': ban(noDefaultExport, noExportAll, noEnum, noOnly),
      // Tests use non-null assertions for table entries, empty callbacks and deprecated functions.
      '@typescript-eslint/no-deprecated': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // Tests know the type of an error, and test subscribers that subscribe inside `next`.
      'rxjs-x/no-implicit-any-catch': 'off',
      'rxjs-x/no-nested-subscribe': 'off',
      'rxjs-x/no-ignored-replay-buffer': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-empty-function': 'off',
    },
  },
  // The options of Nest are of a class that it does not export.
  { files: ['test/nestjs/**'], rules: { '@typescript-eslint/no-unsafe-class-instance-assignment': 'off' } },
  {
    files: ['**/*.{js,mjs,cjs}'],
    rules: { eqeqeq: 'error', 'no-unused-vars': 'error', 'prefer-const': 'error', 'no-var': 'error' },
  },
  { files: ['scripts/**'], rules: { 'no-restricted-syntax': ban(noDefaultExport, noExportAll) } },
  // jest requires a default export of an environment.
  { files: ['test/support/leak-gate.ts'], rules: { 'no-restricted-syntax': ban(noExportAll, noEnum) } },
);
