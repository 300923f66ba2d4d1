import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { FailureCode } from 'rx-trade-feed';
import { clusterMeanings } from '../../src/protocol/failures/cluster-meanings.js';
import { relayMeanings, relayReports } from '../../src/protocol/failures/relay-meanings.js';
import { serviceMeanings } from '../../src/protocol/failures/service-meanings.js';
import { workerMeanings } from '../../src/protocol/failures/worker-meanings.js';
import { fencesOf, read } from './fences.js';
import { runFences, type RunningFences } from './run-fences.js';
import { siteLibrary } from './site.js';

const { documentedCodes, failureIndex, failurePage, withPart } = await siteLibrary(
  ...['documented-codes.mjs', 'failure-text.mjs'],
);

const tables = {
  service: serviceMeanings,
  relay: [...relayMeanings, ...Object.values(relayReports)],
  worker: Object.values(workerMeanings),
  cluster: Object.values(clusterMeanings),
};
const meanings = Object.values(tables).flat();
const codes = [...new Set(meanings.map(({ code }) => code))].sort();
const pageOf = (code: string): string => `docs/failures/${code}.md`;

/** The limit of a test that runs programs, in ms: longer than the limit of the programs. */
const limitMs = 120_000;

it('every failure code has a page, and no other', () => {
  expect(documentedCodes()).toEqual(codes);
});

it('the list of codes is that of the library', () => {
  expect(read(pageOf('index'))).toBe(failureIndex(read(pageOf('index')), tables));
});

it('a page without the marks is an error', () => {
  expect(() => withPart('# A page', 'failure', 'text')).toThrow('The text has no <!-- failure -->.');
});

describe.each(codes)('the page of %s', (code) => {
  const page = read(pageOf(code));

  it('says what the library says: run scripts/site/update-failure-pages.mjs', () => {
    expect(page).toBe(failurePage(page, code, meanings));
  });

  it('has causes, what to do, and one program that prints the code', () => {
    expect(page.match(/^## .+$/gm)).toEqual(['## Causes', '## What you do', '## Reproduce it']);
    for (const heading of ['Causes', 'What you do']) expect(page).toMatch(new RegExp(`^## ${heading}\n\n- \\S`, 'm'));
    expect(fencesOf(pageOf(code)).map(({ language, mark }) => [language, mark])).toEqual([['ts', `prints: ^${code}$`]]);
  });
});

// Those of a worker thread block their process.
const blocking: readonly FailureCode[] = ['receiver-too-slow', 'receiver-failed'];

describe.each([
  ['of a feed or a relay', codes.filter((code) => !blocking.includes(code))],
  ...blocking.map((code) => [`of a worker, ${code}`, [code]] as const),
])('the program %s', (_kind, printed) => {
  let running: RunningFences;
  beforeAll(async () => {
    const fenceOf = (code: FailureCode) => fencesOf(pageOf(code))[0]!.code;
    running = await runFences(
      printed.map((code) => ({ code: fenceOf(code), expected: new RegExp(`^${code}$`), env: {} })),
    );
  }, limitMs);
  afterAll(() => running.end(), limitMs);

  it.each(printed.map((code, index) => [code, index] as const))(
    '%s prints its code',
    async (_code, index) => {
      expect(await running.printed(index)).not.toBe('');
    },
    limitMs,
  );
});
