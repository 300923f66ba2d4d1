/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import type { FailureCode } from 'rx-trade-feed';
import { LogError } from 'rx-trade-feed/log';
import { clusterMeanings, serviceMeanings } from '../../src/protocol/failures/classify.js';
import { relayMeanings } from '../../src/browser/relay-error.js';
import { logErrors, logMeanings } from '../../src/log/log-error.js';
import { type Meaning, relayReports, repository } from '../../src/protocol/failures/meanings.js';
import { createFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { notLoaded } from '../../src/transport/network-clients.js';
import { workerMeanings } from '../../src/worker/feed-in-worker.js';
import { fencesOf, read } from './fences.js';
import { itPrints } from './run-fences.js';
import { siteLibrary } from './site.js';

const { failureAddresses, failureIndex, failurePage, failurePages } = await siteLibrary('failure-text.mjs');

const tables: Readonly<Record<string, readonly Meaning[]>> = {
  ...Object.fromEntries(
    (['ticket', 'handshake', 'stream'] as const).map((stage) => [
      stage,
      serviceMeanings.filter((row) => (row.stage ?? 'ticket') === stage),
    ]),
  ),
  relay: [...relayMeanings, ...Object.values(relayReports)],
  cluster: Object.values(clusterMeanings),
  log: [...Object.values(logMeanings), ...Object.values(logErrors)],
  receiver: [...Object.values(workerMeanings), notLoaded],
};
const meanings = Object.values(tables).flat();
const codes = [...new Set(meanings.map(({ code }) => code))].sort();
const pages = failurePages();

it('every failure code has one section, on a page of a stage in which it happens', () => {
  expect(pages.flatMap((page) => page.codes).toSorted()).toEqual(codes);
  const strays = pages.flatMap(({ name, codes: ofPage }) =>
    ofPage.filter((code) => !tables[name]?.some((row) => row.code === code)),
  );
  expect(strays).toEqual([]);
});

const installed = `${repository === '' ? 'node_modules/rx-trade-feed' : `${repository}/blob/main`}/docs/`;

it.each(meanings.map((meaning) => [meaning.code, meaning] as const))(
  'the message of %s ends with the address of its section, and the public text has none',
  (code, meaning) => {
    const failure = createFailure(meaning, { stage: meaning.stage ?? 'stream' });
    const [, address] = / See (\S+)$/.exec(failure.message) ?? [];
    expect(address).toBe(`${installed}${failureAddresses()[code]}`);
    expect(failure.toPublic().message).toBe(`${meaning.meaning} ${meaning.advice}`);
  },
);

it.each(Object.keys(logErrors) as (keyof typeof logErrors)[])(
  'the message of a LogError %s ends with the address of its section',
  (code) => {
    const { message } = new LogError(code, 'The problem.', { path: 'log' });
    expect(message.split(' See ').at(-1)).toBe(`${installed}${failureAddresses()[code]}`);
  },
);

it('the page that lists the codes has those of the library: run scripts/site/update.mjs failures', () => {
  const page = read('docs/failures/index.md');
  expect(page).toBe(failureIndex(page, meanings));
});

it.each(pages.map(({ name }) => name))(
  'the page %s says what the library says: run scripts/site/update.mjs failures',
  (name) => {
    const page = read(`docs/failures/${name}.md`);
    expect(page).toBe(failurePage(page, name, meanings));
  },
);

/** The program of each code: the only fence of its section. */
const programs = pages.flatMap(({ name, codes: ofPage }) => {
  const fences = fencesOf(`docs/failures/${name}.md`);
  return ofPage.map((code, index) => ({
    name: code,
    code: fences[index]?.code ?? '',
    expected: new RegExp(`^${code}$`),
  }));
});

describe.each(pages.map((page) => [page.name, page.codes] as const))('a section of the page %s', (name, ofPage) => {
  it.each(ofPage)('%s says more than the message, and has one program', (code) => {
    const [, section = ''] = read(`docs/failures/${name}.md`).split(`\n## ${code}\n\n`);
    const [message = '', ...parts] = section.split(/\n## /)[0]!.split('\n\n');
    expect(message).toMatch(/^(- )?\*\*/);
    expect(parts[0]).not.toMatch(/^```/);
    expect(section.split(/\n## /)[0]!.match(/^```.+$/gm)).toEqual(['```ts']);
  });
});

// Programs with a worker thread block their process.
const blocking: readonly string[] = ['receiver-too-slow', 'receiver-failed'] satisfies FailureCode[];

describe.each([
  ['of a feed, a relay, a cluster or a log', programs.filter(({ name }) => !blocking.includes(name))],
  ...programs
    .filter(({ name }) => blocking.includes(name))
    .map((each) => [`of a worker, ${each.name}`, [each]] as const),
])('the program %s', (_kind, ofKind) => itPrints('%s prints its code', ofKind));
