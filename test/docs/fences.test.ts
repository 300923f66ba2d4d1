/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { marketBatches$, pendingTransactions$ } from 'rx-trade-feed/testing';
import { itInCi } from '../support/cases.js';
import { commentFencesOf, documents, type Fence, fencesOf, filesIn, proseOf, read } from './fences.js';
import { itPrints } from './run-fences.js';
import { shellProblems } from './shell.js';
import { typeErrors } from './type-check.js';

const fences = [...documents(), 'examples/README.md'].flatMap(fencesOf);
/** Pages of the site whose fences are no programs of the library. */
const others = ['CONTRIBUTING.md', 'SECURITY.md', 'examples/nestjs-angular/README.md'];
const commentFences = filesIn('src', '.ts').flatMap(commentFencesOf);

const isUnchecked = ({ mark }: Fence): boolean => mark.startsWith('not checked: ');
const isTypeScript = ({ language }: Fence): boolean => language === 'ts';
const expectedOutputOf = ({ mark }: Fence): string | undefined => /^prints: (.+)$/.exec(mark)?.[1];

const asProgram = (fence: Fence): [string, string] => [
  fileOf(fence) ?? `${fence.at.replace(':', '-line-')}.ts`,
  // The export makes each fence a separate module. In a `.spec.ts`, the functions of jest or vitest are globals.
  `${isSpec(fence) ? "import { afterEach, beforeEach, expect, it } from '@jest/globals'; " : ''}${fence.code}\nexport {};`,
];

/** A fence that starts with a file's path is that file, and other fences of the document can import it. */
const fileOf = ({ at, code }: Fence): string | undefined => {
  const [, path] = /^\/\/ (src\/\S+\.ts)\n/.exec(code) ?? [];
  return path && `${documentOf(at)}/${path}`;
};

const isSpec = ({ code }: Fence): boolean => /^\/\/ src\/\S+\.spec\.ts\n/.test(code);

/** Files from `nest new` that the NestJS guide imports. */
const ofNestNew = {
  'docs/nestjs.md/src/app.controller.ts': 'export class AppController {}',
  'docs/nestjs.md/src/app.service.ts': 'export class AppService {}',
};

/** test/docs/failure-pages.test.ts runs them. */
const isOfFailure = ({ at }: Fence): boolean => at.startsWith('docs/failures/');

const documentOf = (at: string): string => at.replace(/:.*/, '');

/** Fences in other languages, by document, that another test reads. */
const readElsewhere: readonly string[] = [
  'docs/testing.md js', // test/apps/jsdom.test.mjs
  'docs/browsers.md html', // test/apps/recipes.test.mjs
  'docs/recipes/postgres.md sql', // test/apps/recipes.test.mjs
  'docs/recipes/wallets.md text', // test/docs/recipes.test.ts
  'docs/how-to/proxies.md nginx', // test/docs/site.test.ts
  'docs/how-to/query-log.md sql', // test/peers/query-log.test.mjs
  'docs/nestjs.md json', // test/apps/nestjs-11.test.mjs
  'docs/replicas.md console', // test/cli/commands/cluster.test.ts
  'docs/interop.md js', // test/apps/interop.test.mjs
  'docs/interop.md jsx', // test/apps/interop.test.mjs
  'docs/angular.md json', // test/apps/angular-22.test.mjs
];

const isRead = ({ at, language }: Fence): boolean => readElsewhere.includes(`${documentOf(at)} ${language}`);

describe('every fence', () => {
  it('is in a language that a test checks or marked as not checked, and has no other mark than its expected output', () => {
    const isChecked = (fence: Fence): boolean => ['ts', 'bash'].includes(fence.language) || isRead(fence);
    const isMarked = (fence: Fence): boolean => fence.mark === '' || expectedOutputOf(fence) !== undefined;
    const strays = fences.filter((fence) => !isUnchecked(fence) && !(isChecked(fence) && isMarked(fence)));
    expect(strays.map(({ at, language, mark }) => `${at} (${language}, ${mark})`)).toEqual([]);
  });

  it('has lines of at most 80 columns, as the programs in examples have', () => {
    const programs = filesIn('examples', '.mjs').filter((file) => !file.slice('examples/'.length).includes('/'));
    const samples = [
      ...[...fences, ...commentFences, ...others.flatMap(fencesOf)],
      ...programs.map((file) => ({ at: file, code: read(file) })),
    ];
    const isWide = (line: string): boolean => line.length > 80;
    expect(
      samples.flatMap(({ at, code }) =>
        code
          .split('\n')
          .filter(isWide)
          .map((line) => `${at}: ${line}`),
      ),
    ).toEqual([]);
  });

  it('is TypeScript if it has expected output, or a command that the test of its page runs', () => {
    const strays = fences.filter((fence) => expectedOutputOf(fence) !== undefined && !isTypeScript(fence));
    const documents = new Set(strays.map(({ at, language }) => `${documentOf(at)} ${language}`));
    expect([...documents]).toEqual(['docs/command-line.md bash']);
  });

  it('is TypeScript if it is in a TSDoc comment', () => {
    expect(commentFences.filter((fence) => !isTypeScript(fence)).map(({ at }) => at)).toEqual([]);
    expect(commentFences.length).toBeGreaterThan(10);
  });
});

itInCi('TypeScript of the documents, the TSDoc comments and the examples has no type error', () => {
  const programs = Object.fromEntries([...fences.filter(isTypeScript), ...commentFences].map(asProgram));
  // A deliberate error that must be the only one: it proves that the check works.
  const canary = { 'canary.ts': "import { tradeFeed$ } from 'rx-trade-feed';\ntradeFeed$('nothing');\n" };
  expect(typeErrors({ ...programs, ...ofNestNew, ...canary }, filesIn('examples', '.mjs'))).toEqual([
    expect.stringMatching(/^canary\.ts, line 2: Argument of type '"nothing"'/),
  ]);
});

describe('a fence with expected output', () => {
  const printing = fences.filter(
    (fence) => isTypeScript(fence) && expectedOutputOf(fence) !== undefined && !isOfFailure(fence),
  );
  itPrints(
    '%s prints that output',
    printing.map((fence) => ({
      name: fence.at,
      code: fence.code,
      expected: new RegExp(expectedOutputOf(fence) as string),
    })),
    { sources: { market: marketBatches$(), raw: pendingTransactions$() } },
  );
});

it('the first commands of the README and of the home page run in a clone, before anything that needs a registry', () => {
  const commandsIn = (text: string): readonly string[] =>
    [...text.matchAll(/^```bash\n(.*?)\n```$/gms), ...text.matchAll(/`(np[mx] [^`]+)`/g)].map(
      ([, command = '']) => command,
    );
  const [beforeRegistry = ''] = read('README.md').split("isn't on a registry");
  expect(commandsIn(beforeRegistry)).toEqual(['npm ci && npm start', 'npm test']);
  const [, first] = /^```bash\n(.*?)\n```$/ms.exec(read('docs/index.md')) ?? [];
  expect(first).toBe('npm ci && npm start');
});

it('the scripts, files, subcommands and flags in shell fences exist', () => {
  const shell = fences.filter(({ language }) => language === 'bash');
  const savedIn = (file: string): string[] => proseOf(file).match(/(?<=`)[\w-]+\.mjs(?=`)/g) ?? [];
  expect(shell.flatMap(({ at, code }) => shellProblems(code, savedIn(documentOf(at))))).toEqual([]);
  expect(shell).not.toHaveLength(0);
  expect(shellProblems('npx rx-trade-feed listen --cont 3 | jq . # three')).toEqual([
    'npx rx-trade-feed listen --cont 3: the help does not list --cont',
  ]);
});
