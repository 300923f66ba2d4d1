import { defineConfig, globalIgnores } from 'eslint/config';
import compatData from '@mdn/browser-compat-data/forLegacyNode';
import compat from 'eslint-plugin-compat';
import esX from 'eslint-plugin-es-x';
import rxjsX from 'eslint-plugin-rxjs-x';
import tseslint from 'typescript-eslint';

/** An export of src says what it is, by a comment of its own: rule 4 of the house style, as far as a tool can see. */
const documentedExports = {
  meta: { type: 'suggestion', schema: [], messages: { missing: 'This export has no TSDoc comment.' } },
  create: ({ sourceCode, report }) => {
    // Overloads, and the type that goes with a value of the same name, share one comment.
    const documented = new Set();
    const namesOf = ({ id, declarations = [] }) => (id ? [id.name] : declarations.map((each) => each.id.name));
    return {
      'ExportNamedDeclaration[declaration]': (node) => {
        const isTsdoc = ({ type, value }) => type === 'Block' && value.startsWith('*');
        const names = namesOf(node.declaration);
        if (sourceCode.getCommentsBefore(node).some(isTsdoc)) for (const name of names) documented.add(name);
        else if (!names.every((name) => documented.has(name))) report({ node, messageId: 'missing' });
      },
    };
  },
};

const ban = (...rules) => ['error', ...rules.map(([selector, message]) => ({ selector, message }))];

const noDefaultExport = ['ExportDefaultDeclaration', 'Named exports only.'];
const noExportAll = ['ExportAllDeclaration', 'Name what is exported: the public names are a promise.'];
const noEnum = ['TSEnumDeclaration', 'Use a const object and a union.'];

const noOnly = [
  'MemberExpression[object.name=/^(describe|it|test)$/][property.name="only"]',
  'The other tests of this file would not run.',
];

const subscribingToNothing = [
  ...['count', 'defaultIfEmpty', 'endWith', 'every', 'filter', 'finalize', 'ignoreElements', 'isEmpty', 'last', 'map'],
  ...['max', 'min', 'reduce', 'share', 'startWith', 'takeLast', 'tap', 'throwIfEmpty', 'toArray'],
];

/** The supported browsers, the oldest of Angular 20. In package.json, the builds of the example would read them. */
const supportedBrowsers = ['chrome >= 107', 'edge >= 107', 'firefox >= 104', 'safari >= 16', 'ios >= 16'];
const oldest = supportedBrowsers.map((line) => line.replace('ios', 'safari_ios').split(' >= '));

// Static methods such as `URL.canParse`: `compat` knows the interfaces alone, and `es-x` what is no API of the web.
const newerStatics = Object.entries(compatData.api).flatMap(([object, members]) =>
  Object.entries(members).flatMap(([name, { __compat: known }]) => {
    const isOld = ([browser, least]) => Number.parseFloat([known.support[browser]].flat()[0]?.version_added) <= least;
    const property = name.replace(/_static$/, '');
    if (property === name || oldest.every(isOld)) return [];
    return [{ object, property, message: 'A browser that is supported does not have it.' }];
  }),
);

const loadedByPages = ['browser', 'angular', 'operators', 'protocol', 'reconnect'].map((folder) => `src/${folder}/**`);

export default defineConfig(
  // The example app is a package of its own, with settings of its own.
  globalIgnores(['dist/', 'coverage/', 'site/', 'temp/', 'etc/', 'examples/nestjs-angular/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.{ts,cts}'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked, rxjsX.configs.recommended],
    plugins: { house: { rules: { 'documented-exports': documentedExports } } },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-restricted-syntax': ban(noDefaultExport, noExportAll, noEnum),
      eqeqeq: 'error',
      '@typescript-eslint/consistent-type-exports': 'error',
      // `import { type A }` of types alone still loads the module.
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // The design composes with retryWhen, on purpose.
      '@typescript-eslint/no-deprecated': [
        'error',
        { allow: [{ from: 'package', name: 'retryWhen', package: 'rxjs' }] },
      ],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // An empty string is a missing one, often enough.
      '@typescript-eslint/prefer-nullish-coalescing': ['error', { ignorePrimitives: { string: true } }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // What may follow takeUntil subscribes to nothing else.
      'rxjs-x/no-unsafe-takeuntil': ['error', { allow: subscribingToNothing }],
      // Whichever reads better.
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/consistent-indexed-object-style': 'off',
      '@typescript-eslint/no-unnecessary-type-arguments': 'off',
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
      // To spread an error or a class instance into plain data is what `toJSON` and `with` are for.
      '@typescript-eslint/no-misused-spread': 'off',
    },
  },
  { files: ['src/**'], rules: { 'house/documented-exports': 'error' } },
  // CommonJS is there to `require` something when it is needed.
  { files: ['**/*.cts'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
  {
    // What time means is decided in `transport` and by schedulers; here it is data.
    files: ['src/protocol/**', 'src/reconnect/**', 'src/operators/**'],
    rules: { 'no-restricted-globals': ['error', 'setTimeout', 'setInterval', 'setImmediate', 'fetch', 'WebSocket'] },
  },
  {
    // What a page loads runs in the supported browsers: no API of the web and no part of the language that is newer.
    files: loadedByPages,
    ignores: ['src/operators/node/**'],
    extends: [compat.configs['flat/recommended'], esX.configs['flat/restrict-to-es2022']],
    // A scheduler of RxJS has the name of a global.
    settings: { browsers: supportedBrowsers, polyfills: ['scheduler'] },
    rules: {
      'es-x/no-regexp-lookbehind-assertions': 'error',
      'no-restricted-properties': ['error', ...newerStatics],
    },
  },
  {
    files: ['test/**'],
    rules: {
      'no-restricted-syntax': ban(noDefaultExport, noExportAll, noEnum, noOnly),
      // A table of cases asserts what it looks up, does nothing in many a callback, and tries what is deprecated, too.
      '@typescript-eslint/no-deprecated': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // What the library raises is known here, and to subscribe inside `next` is a case to test.
      'rxjs-x/no-implicit-any-catch': 'off',
      'rxjs-x/no-nested-subscribe': 'off',
      'rxjs-x/no-ignored-replay-buffer': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-empty-function': 'off',
    },
  },
  {
    files: ['**/*.{js,mjs,cjs}'],
    rules: { eqeqeq: 'error', 'no-unused-vars': 'error', 'prefer-const': 'error', 'no-var': 'error' },
  },
  { files: ['scripts/**'], rules: { 'no-restricted-syntax': ban(noDefaultExport, noExportAll) } },
  // jest asks an environment for its default export.
  { files: ['test/support/leak-gate.ts'], rules: { 'no-restricted-syntax': ban(noExportAll, noEnum) } },
);
