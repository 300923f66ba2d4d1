import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentedCodes } from '../../scripts/site/failure-text.mjs';
import { search, sections } from './search-index.mjs';

/** The page that must be first for a text. */
const first = {
  4001: '/failures/connection-replaced',
  429: '/failures/ticket-rate-limited',
  'rate limit': '/failures/ticket-rate-limited',
  conflation: '/windows',
  window: '/windows',
  share: '/sharing',
  'three replicas': '/replicas',
  proxy: '/how-to/proxies',
  Kubernetes: '/how-to/kubernetes',
  metrics: '/operating',
  reconnect: '/reconnecting',
  reliability: '/reliability',
  'mutation testing': '/reliability/tests',
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
  ...Object.fromEntries(documentedCodes().map((code) => [code, `/failures/${code}`])),
};

for (const [text, page] of Object.entries(first)) {
  test(`the search for ${text} finds ${page} first`, () => assert.equal(search(text)[0], page));
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
