import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failureAddresses } from '../../scripts/site/failure-text.mjs';
import { search, sections } from './search-index.mjs';

/** The page that must be first for a text. */
const first = {
  conflation: '/windows',
  window: '/windows',
  share: '/sharing',
  'three replicas': '/replicas',
  proxy: '/how-to/proxies',
  Kubernetes: '/how-to/kubernetes',
  metrics: '/operating',
  reconnect: '/reconnecting',
  reliability: '/reliability',
  'mutation testing': '/reliability',
  kafka: '/log',
  'resume after a restart': '/log',
  limits: '/limits',
  events: '/events',
  gap: '/events',
  operators: '/operators',
  shareFeed: '/api/index/functions/shareFeed',
  tradeFeed$: '/api/index/functions/tradeFeed$',
  duckdb: '/how-to/query-log',
  backpressure: '/slow-consumers',
  debounce: '/windows',
  webhook: '/recipes/whale-alert',
  TS1479: '/how-to/typescript',
  'getting-started': '/start/first-frame',
  'for await': '/slow-consumers',
  react: '/interop',
  AbortSignal: '/interop',
  'RxJS 9': '/interop',
  useSyncExternalStore: '/interop',
  outcomes: '/outcomes',
  reorg: '/outcomes',
  esbuild: '/how-to/bundling',
  'whale alert': '/recipes/whale-alert',
  takeUntil: '/recipes/graceful-end',
  backoff: '/reconnecting',
};

/** The section of a failure that must be first for its code, and for its status or close code. */
const sectionOf = {
  ...failureAddresses(),
  4001: 'failures/stream.md#connection-replaced',
  429: 'failures/ticket.md#ticket-rate-limited',
  'rate limit': 'failures/ticket.md#ticket-rate-limited',
};

/** The page that must be among the first three for what a reader looks for. */
const amongThree = {
  'install the package': '/start/first-frame',
  'share one connection between two subscribers': '/sharing',
  'count frames per second': '/windows',
  'newest value of each key': '/windows',
  'filter by address': '/decoding',
  'decode JSON with zod': '/decoding',
  'find out why it does not connect': '/command-line',
  'stop after five retries': '/failures/ticket',
  'use an HTTP proxy': '/how-to/proxies',
  'trust a private CA': '/failures/ticket',
  'show frames in a browser': '/browsers',
  'page continues after a reconnect': '/relay',
  'limit streams per user': '/relay',
  'two replicas with one account': '/replicas',
  'permissions for redis': '/replicas',
  'write frames to Postgres': '/recipes/postgres',
  'keep the feed on disk': '/log',
  'replay yesterday': '/log',
  'query with SQL': '/how-to/query-log',
  'Prometheus alert rules': '/operating',
  'log with pino': '/how-to/logging',
  'test my app without the service': '/testing',
  'simulate an outage': '/testing',
  'Docker health check': '/how-to/kubernetes',
  'graceful shutdown': '/recipes/graceful-end',
  webpack: '/how-to/bundling',
  'Angular signals': '/angular',
  'NestJS guard': '/nestjs',
  'work slower than the feed': '/slow-consumers',
  'was the transaction confirmed': '/outcomes',
  'supported Node versions': '/runtimes',
  'exit codes': '/command-line',
  'is the API key safe': '/security',
  'React hook': '/interop',
  'worker thread': '/slow-consumers',
};

for (const [text, page] of Object.entries(first)) {
  test(`the search for ${text} finds ${page} first`, () => assert.equal(search(text)[0], page));
}

for (const [text, address] of Object.entries(sectionOf)) {
  test(`the search for ${text} finds its section first`, () =>
    assert.equal(sections(text)[0].id.replace('.html', ''), `/${address.replace('.md', '')}`));
}

for (const [text, page] of Object.entries(amongThree)) {
  test(`the search for "${text}" finds ${page} among the first three`, () => {
    const found = search(text).slice(0, 3);
    assert.ok(found.includes(page), found.join(' '));
  });
}

const isOfApi = (page) => page.startsWith('/api/');
const isName = (text) => /[a-z][A-Z$]/.test(text);

test('the search ranks the reference last unless the text is a name in it', () => {
  const early = Object.keys(first).filter((text) => {
    const pages = search(text).slice(isName(text) && isOfApi(first[text]) ? 1 : 0);
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
