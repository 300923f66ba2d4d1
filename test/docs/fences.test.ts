import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedService } from 'rx-trade-feed/testing';
import { commentFencesOf, documents, type Fence, fencesOf, filesIn, read } from './fences.js';
import { runFences, type RunningFences } from './run-fences.js';
import { shellProblems } from './shell.js';
import { typeErrors } from './type-check.js';

const fences = [...documents(), 'examples/README.md'].flatMap(fencesOf);
const commentFences = filesIn('src', '.ts').flatMap(commentFencesOf);

/** The number of unchecked fences in each document. A new one needs the mark `<!-- not checked: reason -->`. */
const unchecked: Readonly<Record<string, number>> = {
  'docs/architecture.md': 1,
  'docs/command-line.md': 3,
  'docs/failures/index.md': 1,
  'docs/how-to/kubernetes.md': 1,
  'docs/how-to/logging.md': 2,
  'docs/recording.md': 1,
  'docs/replicas.md': 3,
  'docs/security.md': 1,
};

/** The guides with at least one fence that runs. */
const guides = [
  ...['start/first-frame', 'start/rxjs', 'start/from-ws', 'how-to/browsers', 'how-to/logging'],
  ...['reconnecting', 'decoding', 'windows', 'slow-consumers', 'sharing', 'operating', 'recording', 'relay'],
  ...['testing', 'operators'],
];

/** The limit of a test that runs programs, in ms: longer than the limit of the programs. */
const limitMs = 120_000;

const isUnchecked = ({ mark }: Fence): boolean => mark.startsWith('not checked: ');
const isTypeScript = ({ language }: Fence): boolean => language === 'ts';
const expectedOutputOf = ({ mark }: Fence): string | undefined => /^prints: (.+)$/.exec(mark)?.[1];

const asProgram = (fence: Fence): [string, string] => [
  fileOf(fence) ?? `${fence.at.replace(':', '-line-')}.ts`,
  // The export makes each fence a separate module.
  `${fence.code}\nexport {};`,
];

/** A fence that begins with the path of a file is that file. Other fences of the document can import it. */
const fileOf = ({ at, code }: Fence): string | undefined => {
  const [, path] = /^\/\/ (src\/\S+\.ts)\n/.exec(code) ?? [];
  return path && `${documentOf(at)}/${path}`;
};

/** test/docs/failure-pages.test.ts runs them. */
const isOfFailure = ({ at }: Fence): boolean => at.startsWith('docs/failures/');

const documentOf = (at: string): string => at.replace(/:.*/, '');

/** Fences in other languages, by document, and the test that runs them. */
const readBy: Readonly<Record<string, string>> = {
  'docs/testing.md js': 'test/docs/commonjs-jest.test.ts',
  'docs/how-to/proxies.md nginx': 'test/docs/proxies.test.ts',
  'docs/how-to/query-recordings.md sql': 'test/peers/recordings.test.mjs',
  'docs/nestjs.md js': 'test/apps/nestjs-11.test.mjs',
  'docs/replicas.md console': 'test/cli/commands/cluster.test.ts',
  'docs/angular.md json': 'test/apps/angular-22.test.mjs',
};

const isRead = ({ at, language }: Fence): boolean => `${documentOf(at)} ${language}` in readBy;

describe('every fence', () => {
  it('is in a language that a test checks, or is marked as not checked', () => {
    const isChecked = (fence: Fence): boolean => ['ts', 'bash'].includes(fence.language) || isRead(fence);
    const strays = fences.filter((fence) => !isChecked(fence) && !isUnchecked(fence));
    expect(strays.map(({ at, language }) => `${at} (${language})`)).toEqual([]);
  });

  it.each(Object.entries(readBy))('%s is read by %s, which names the document', (fence, test) => {
    const [document = ''] = fence.split(' ');
    expect(fences.filter(isRead).map(({ at }) => documentOf(at))).toContain(document);
    expect(read(test)).toContain(document);
  });

  it('has a known mark, or none', () => {
    const strays = fences.filter(
      (fence) => fence.mark !== '' && !isUnchecked(fence) && expectedOutputOf(fence) === undefined,
    );
    expect(strays.map(({ at, mark }) => `${at} (${mark})`)).toEqual([]);
  });

  it('with expected output is TypeScript, or a command of the page whose test runs it', () => {
    const strays = fences.filter((fence) => expectedOutputOf(fence) !== undefined && !isTypeScript(fence));
    expect(new Set(strays.map(({ at, language }) => `${documentOf(at)} ${language}`))).toEqual(
      new Set(['docs/command-line.md bash']),
    );
    expect(read('test/docs/command-line.test.ts')).toContain('docs/command-line.md');
  });

  it('that is not checked is counted above', () => {
    const counts: Record<string, number> = {};
    for (const { at } of fences.filter(isUnchecked)) {
      const document = documentOf(at);
      counts[document] = (counts[document] ?? 0) + 1;
    }
    expect(counts).toEqual(unchecked);
  });

  it('of a TSDoc comment is TypeScript', () => {
    expect(commentFences.filter((fence) => !isTypeScript(fence)).map(({ at }) => at)).toEqual([]);
    expect(commentFences.length).toBeGreaterThan(10);
  });
});

it(
  'TypeScript of the documents, the TSDoc comments and the examples has no type error',
  () => {
    const programs = Object.fromEntries([...fences.filter(isTypeScript), ...commentFences].map(asProgram));
    // This error is intended, and must be the only one: it shows that the check works.
    const canary = { 'canary.ts': "import { tradeFeed$ } from 'rx-trade-feed';\ntradeFeed$('nothing');\n" };
    expect(typeErrors({ ...programs, ...canary }, filesIn('examples', '.mjs'))).toEqual([
      expect.stringMatching(/^canary\.ts, line 2: Argument of type '"nothing"'/),
    ]);
  },
  limitMs,
);

describe('a fence with expected output', () => {
  const printing = fences.filter(
    (fence) => isTypeScript(fence) && expectedOutputOf(fence) !== undefined && !isOfFailure(fence),
  );
  let service: TradeFeedService;
  let running: RunningFences;
  beforeAll(async () => {
    service = await startTradeFeedService({ sources: { market: marketBatches$(), raw: pendingTransactions$() } });
    running = await runFences(
      printing.map((fence) => ({
        code: fence.code,
        expected: new RegExp(expectedOutputOf(fence) as string),
        // One account each, because an account has only one connection.
        env: {
          TRADE_FEED_BASE_URL: service.baseUrl,
          TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
        },
      })),
    );
  }, limitMs);
  afterAll(async () => {
    await running.end();
    await service.shutdown();
  }, limitMs);

  it.each(printing.map(({ at }, index) => [at, index] as const))(
    '%s prints that output',
    async (_at, index) => {
      expect(await running.printed(index)).not.toBe('');
    },
    limitMs,
  );

  it('is in the README and in every guide above', () => {
    expect(new Set(printing.map(({ at }) => documentOf(at)))).toEqual(
      new Set(['README.md', ...guides.map((name) => `docs/${name}.md`)]),
    );
  });
});

it('the scripts, files, subcommands and flags in shell fences exist', () => {
  const shell = fences.filter(({ language }) => language === 'bash');
  expect(shell.flatMap(({ code }) => shellProblems(code))).toEqual([]);
  expect(shell).not.toHaveLength(0);
  expect(shellProblems('npx rx-trade-feed listen --cont 3 | jq . # three')).toEqual([
    'npx rx-trade-feed listen --cont 3: the help does not list --cont',
  ]);
});
