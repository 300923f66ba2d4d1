import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedService } from 'rx-trade-feed/testing';
import { commentFencesOf, documents, type Fence, fencesOf, filesIn, read } from './fences.js';
import { runFence } from './run-fence.js';
import { shellProblems } from './shell.js';
import { typeErrors } from './type-check.js';

const fences = [...documents(), 'examples/README.md'].flatMap(fencesOf);
const commentFences = filesIn('src', '.ts').flatMap(commentFencesOf);

/** Fences that no test checks, by document. A new one must be marked `<!-- not checked: why -->`, and counted here. */
const unchecked: Readonly<Record<string, number>> = {
  'README.md': 1,
  'docs/how-it-works.md': 1,
  'docs/recording.md': 1,
  'docs/security.md': 1,
};

/** The guides that show the feed at work. */
const guides = ['reconnecting', 'decoding', 'windows', 'slow-consumers', 'sharing', 'recording', 'relay', 'testing'];

const isUnchecked = ({ mark }: Fence): boolean => mark.startsWith('not checked: ');
const isTypeScript = ({ language }: Fence): boolean => language === 'ts';
const promiseOf = ({ mark }: Fence): string | undefined => /^prints: (.+)$/.exec(mark)?.[1];

const asProgram = (fence: Fence): [string, string] => [
  fileOf(fence) ?? `${fence.at.replace(':', '-line-')}.ts`,
  // Each is a module of its own, whether or not it imports or exports.
  `${fence.code}\nexport {};`,
];

/** A fence that begins with the path of a file is that file, and others of its document can import it. */
const fileOf = ({ at, code }: Fence): string | undefined => {
  const [, path] = /^\/\/ (src\/\S+\.ts)\n/.exec(code) ?? [];
  return path && `${documentOf(at)}/${path}`;
};

const documentOf = (at: string): string => at.replace(/:.*/, '');

/** The fences in other languages, by document, and the test that reads them there and runs them. */
const readBy: Readonly<Record<string, string>> = {
  'docs/testing.md js': 'test/docs/commonjs-jest.test.ts',
  'docs/nestjs.md js': 'test/apps/nestjs-11.test.mjs',
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

  it('has a mark that means something, if any', () => {
    const strays = fences.filter((fence) => fence.mark !== '' && !isUnchecked(fence) && promiseOf(fence) === undefined);
    expect(strays.map(({ at, mark }) => `${at} (${mark})`)).toEqual([]);
  });

  it('that is not checked is counted', () => {
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

it('TypeScript of the documents, the TSDoc comments and the examples has no type error', () => {
  const programs = Object.fromEntries([...fences.filter(isTypeScript), ...commentFences].map(asProgram));
  // One that is wrong on purpose, and must be the only one: it shows that the check is awake.
  const canary = { 'canary.ts': "import { tradeFeed$ } from 'rx-trade-feed';\ntradeFeed$('nothing');\n" };
  expect(typeErrors({ ...programs, ...canary }, filesIn('examples', '.mjs'))).toEqual([
    expect.stringMatching(/^canary\.ts, line 2: Argument of type '"nothing"'/),
  ]);
}, 60_000);

describe('a fence that promises to print', () => {
  const promising = fences.filter((fence) => promiseOf(fence) !== undefined);
  let service: TradeFeedService;
  let runs: Map<Fence, Promise<string>>;
  beforeAll(async () => {
    service = await startTradeFeedService({ sources: { market: marketBatches$(), raw: pendingTransactions$() } });
    // Side by side, with an account each: they would evict one another.
    runs = new Map(
      promising.map((fence) => {
        const account = service.createAccount({ plan: 'developer' });
        const variables = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: account.createApiKey() };
        return [fence, runFence(fence.code, new RegExp(promiseOf(fence) as string), variables)] as const;
      }),
    );
  });
  afterAll(async () => {
    await Promise.allSettled(runs.values());
    await service.shutdown();
  });

  it.each(promising.map((fence) => [fence.at, fence] as const))(
    '%s prints it',
    async (_at, fence) => {
      expect(await runs.get(fence)).not.toBe('');
    },
    30_000,
  );

  it('is in every document that shows the feed at work', () => {
    expect(new Set(promising.map(({ at }) => documentOf(at)))).toEqual(
      new Set(['README.md', ...guides.map((name) => `docs/${name}.md`)]),
    );
  });
});

it('shell fences name scripts, files, subcommands and flags that exist', () => {
  const shell = fences.filter(({ language }) => language === 'bash');
  expect(shell.flatMap(({ code }) => shellProblems(code))).toEqual([]);
  expect(shell).not.toHaveLength(0);
  expect(shellProblems('npx rx-trade-feed listen --cont 3 | jq . # three')).toEqual([
    'npx rx-trade-feed listen --cont 3: its help does not know --cont',
  ]);
});
