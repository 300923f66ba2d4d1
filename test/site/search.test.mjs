import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failureAddresses } from '../../scripts/site/failure-text.mjs';
import { search, sections } from './search-index.mjs';

/** The texts for which a page must be first. */
const first = {
  '/windows': ['conflation', 'window', 'debounce'],
  '/sharing': ['share'],
  '/replicas': ['three replicas'],
  '/how-to/proxies': ['proxy'],
  '/how-to/kubernetes': ['Kubernetes'],
  '/operating': ['metrics'],
  '/reconnecting': ['reconnect', 'backoff'],
  '/reliability': ['reliability', 'mutation testing'],
  '/log': ['kafka', 'resume after a restart'],
  '/limits': ['limits'],
  '/events': ['events', 'gap'],
  '/operators': ['operators'],
  '/api/index/functions/shareFeed': ['shareFeed'],
  '/api/index/functions/tradeFeed$': ['tradeFeed$'],
  '/how-to/query-log': ['duckdb'],
  '/slow-consumers': ['backpressure', 'for await'],
  '/recipes/whale-alert': ['webhook', 'whale alert'],
  '/how-to/typescript': ['TS1479'],
  '/start/first-frame': ['getting-started'],
  '/interop': ['react', 'AbortSignal', 'RxJS 9', 'useSyncExternalStore'],
  '/outcomes': ['outcomes', 'reorg'],
  '/how-to/bundling': ['esbuild'],
  '/recipes/graceful-end': ['takeUntil'],
};

/** The section of a failure that must be first for its code, and for its status or close code. */
const sectionOf = {
  ...failureAddresses(),
  4001: 'failures/stream.md#connection-replaced',
  429: 'failures/ticket.md#ticket-rate-limited',
  'rate limit': 'failures/ticket.md#ticket-rate-limited',
};

/** What readers look for when a page must be among the first three. */
const amongThree = {
  '/start/first-frame': ['install the package'],
  '/sharing': ['share one connection between two subscribers'],
  '/windows': ['count frames per second', 'newest value of each key'],
  '/decoding': ['filter by address', 'decode JSON with zod'],
  '/command-line': ['find out why it does not connect', 'exit codes'],
  '/failures/ticket': ['stop after five retries', 'trust a private CA'],
  '/how-to/proxies': ['use an HTTP proxy'],
  '/browsers': ['show frames in a browser'],
  '/relay': ['page continues after a reconnect', 'limit streams per user'],
  '/replicas': ['two replicas with one account', 'permissions for redis'],
  '/recipes/postgres': ['write frames to Postgres'],
  '/log': ['keep the feed on disk', 'replay yesterday'],
  '/how-to/query-log': ['query with SQL'],
  '/operating': ['Prometheus alert rules'],
  '/how-to/logging': ['log with pino'],
  '/testing': ['test my app without the service', 'simulate an outage'],
  '/how-to/kubernetes': ['Docker health check'],
  '/recipes/graceful-end': ['graceful shutdown'],
  '/how-to/bundling': ['webpack'],
  '/angular': ['Angular signals'],
  '/nestjs': ['NestJS guard'],
  '/slow-consumers': ['work slower than the feed', 'worker thread'],
  '/outcomes': ['was the transaction confirmed'],
  '/runtimes': ['supported Node versions'],
  '/security': ['is the API key safe'],
  '/interop': ['React hook'],
};

const pairs = (texts) => Object.entries(texts).flatMap(([page, all]) => all.map((text) => [text, page]));

for (const [text, page] of pairs(first)) {
  test(`the search for ${text} finds ${page} first`, () => assert.equal(search(text)[0], page));
}

for (const [text, address] of Object.entries(sectionOf)) {
  test(`the search for ${text} finds its section first`, () =>
    assert.equal(sections(text)[0].id.replace('.html', ''), `/${address.replace('.md', '')}`));
}

for (const [text, page] of pairs(amongThree)) {
  test(`the search for "${text}" finds ${page} among the first three`, () => {
    const found = search(text).slice(0, 3);
    assert.ok(found.includes(page), found.join(' '));
  });
}

const isOfApi = (page) => page.startsWith('/api/');
const isName = (text) => /[a-z][A-Z$]/.test(text);

test('the search ranks the reference last unless the text is a name in it', () => {
  const early = pairs(first).filter(([text, page]) => {
    const pages = search(text).slice(isName(text) && isOfApi(page) ? 1 : 0);
    return pages.findIndex(isOfApi) !== -1 && pages.findIndex(isOfApi) < pages.findLastIndex((page) => !isOfApi(page));
  });
  assert.deepEqual(early, []);
});

test('the search for a number finds only that number', () => {
  for (const number of ['4001', '1001', '400', '429', '1013'])
    assert.deepEqual([...new Set(sections(number).flatMap(({ terms }) => terms))], [number]);
  assert.deepEqual(search('40017'), []);
});

test('the search for a text that occurs nowhere finds nothing', () => assert.deepEqual(search('xyzzyqwert'), []));
