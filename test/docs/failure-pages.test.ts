/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FailureCode } from 'rx-trade-feed';
import { relayMeanings, relayReports, repository } from '../../src/protocol/failures/meanings.js';
import {
  clusterMeanings,
  logErrors,
  logMeanings,
  serviceMeanings,
  workerMeanings,
} from '../../src/protocol/failures/classify.js';
import { createFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { fencesOf, read, root } from './fences.js';
import { itPrints } from './run-fences.js';
import { siteLibrary } from './site.js';

const { documentedCodes, failureIndex, failurePage } = await siteLibrary('failure-text.mjs');

const tables = {
  service: serviceMeanings,
  relay: [...relayMeanings, ...Object.values(relayReports)],
  worker: Object.values(workerMeanings),
  cluster: Object.values(clusterMeanings),
  log: [...Object.values(logMeanings), ...Object.values(logErrors)],
};
const meanings = Object.values(tables).flat();
const codes = [...new Set(meanings.map(({ code }) => code))].sort();
const pageOf = (code: string): string => `docs/failures/${code}.md`;

it('every failure code has a page, and every page has a code', () => {
  expect(documentedCodes()).toEqual(codes);
});

it.each(meanings.map((meaning) => [meaning.code, meaning] as const))(
  'the message of %s ends with the address of its page, and the public text has none',
  (code, meaning) => {
    const failure = createFailure(meaning, { stage: meaning.stage ?? 'stream' });
    const [, address = ''] = / See (\S+)$/.exec(failure.message) ?? [];
    const installed = repository === '' ? 'node_modules/rx-trade-feed/' : `${repository}/blob/main/`;
    expect(address).toBe(`${installed}docs/failures/${code}.md`);
    expect(existsSync(join(root, address.slice(installed.length)))).toBe(true);
    expect(failure.toPublic().message).toBe(`${meaning.meaning} ${meaning.advice}`);
  },
);

it('the page that lists the codes has those of the library', () => {
  expect(read(pageOf('index'))).toBe(failureIndex(read(pageOf('index')), tables));
});

describe.each(codes)('the page of %s', (code) => {
  const page = read(pageOf(code));

  it('says what the library says: run scripts/site/update.mjs failures', () => {
    expect(page).toBe(failurePage(page, code, meanings));
  });

  it('has causes, what to do, and one program that prints the code', () => {
    expect(page.match(/^## .+$/gm)).toEqual(['## Causes', '## What you do', '## Reproduce it']);
    for (const heading of ['Causes', 'What you do']) expect(page).toMatch(new RegExp(`^## ${heading}\n\n- \\S`, 'm'));
    expect(fencesOf(pageOf(code)).map(({ language, mark }) => [language, mark])).toEqual([['ts', `prints: ^${code}$`]]);
  });
});

// Programs with a worker thread block their process.
const blocking: readonly FailureCode[] = ['receiver-too-slow', 'receiver-failed'];

describe.each([
  ['of a feed or a relay', codes.filter((code) => !blocking.includes(code))],
  ...blocking.map((code) => [`of a worker, ${code}`, [code]] as const),
])('the program %s', (_kind, printed) =>
  itPrints(
    '%s prints its code',
    printed.map((code) => ({
      name: code,
      code: fencesOf(pageOf(code))[0]!.code,
      expected: new RegExp(`^${code}$`),
    })),
  ),
);
