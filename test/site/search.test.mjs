import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentedCodes } from '../../scripts/site/documented-codes.mjs';
import { search } from './search-index.mjs';

/** The page that must be first for a text. */
const first = {
  4001: '/failures/connection-replaced',
  4003: '/failures/access-expired',
  1001: '/failures/server-shutdown',
  1006: '/failures/connection-lost',
  1013: '/failures/client-too-slow',
  429: '/failures/ticket-rate-limited',
  'rate limit': '/failures/ticket-rate-limited',
  conflation: '/windows',
  window: '/windows',
  share: '/sharing',
  'share a connection': '/sharing',
  'three replicas': '/replicas',
  'test an app': '/testing',
  proxy: '/how-to/proxies',
  Kubernetes: '/how-to/kubernetes',
  docker: '/how-to/kubernetes',
  replicas: '/replicas',
  metrics: '/operating',
  alerts: '/operating',
  reconnect: '/reconnecting',
  security: '/security',
  performance: '/performance',
  record: '/recording',
  'command line': '/command-line',
  limits: '/limits',
  options: '/options',
  events: '/events',
  gap: '/events',
  operators: '/operators',
  shareFeed: '/api/index/functions/shareFeed',
  tradeFeed$: '/api/index/functions/tradeFeed$',
  logging: '/how-to/logging',
  browsers: '/how-to/browsers',
  duckdb: '/how-to/query-recordings',
  jq: '/how-to/query-recordings',
  nestjs: '/nestjs',
  angular: '/angular',
  ...Object.fromEntries(documentedCodes().map((code) => [code, `/failures/${code}`])),
};

for (const [text, page] of Object.entries(first)) {
  test(`the search for ${text} finds ${page} first`, () => assert.equal(search(text)[0], page));
}

test('the search for a text that is nowhere finds nothing', () => assert.deepEqual(search('xyzzyqwert'), []));
