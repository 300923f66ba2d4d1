import { describe, expect, it } from '@jest/globals';
import { serviceEventWords, welcome } from '../../../src/cli/serve/messages.js';
import type { ServiceEvent } from '../../../src/testing/index.js';

const at = 0;
const account = 'account-1';
const rows: readonly (readonly [words: string, event: ServiceEvent])[] = [
  ['ticket issued: account-1, raw', { at, type: 'ticket-issued', account, feed: 'raw', expiresAt: '' }],
  [
    'ticket refused: 401 invalid-api-key',
    {
      at,
      type: 'ticket-refused',
      status: 401,
      code: 'invalid-api-key',
      account: undefined,
      retryAfterSeconds: undefined,
    },
  ],
  [
    'ticket refused: account-1, 429 rate-limited, retry after 60 s',
    { at, type: 'ticket-refused', status: 429, code: 'rate-limited', account, retryAfterSeconds: 60 },
  ],
  ['ticket revoked: account-1, market', { at, type: 'ticket-revoked', account, feed: 'market' }],
  [
    'connection 3 is open: account-1, market',
    { at, type: 'handshake-accepted', account, feed: 'market', connection: 3 },
  ],
  [
    'handshake refused: 401 ticket-missing',
    { at, type: 'handshake-refused', status: 401, code: 'ticket-missing', account: undefined, feed: undefined },
  ],
  [
    'handshake refused: account-1, market, 401 ticket-consumed',
    { at, type: 'handshake-refused', status: 401, code: 'ticket-consumed', account, feed: 'market' },
  ],
  [
    'connection 3 closed by the service: 4001 "connection replaced", 1 frame',
    {
      at,
      type: 'connection-closed',
      account,
      feed: 'market',
      connection: 3,
      code: 4001,
      reason: 'connection replaced',
      by: 'service',
      frames: 1,
    },
  ],
  [
    'connection 3 closed by the client: 1006, 1,842 frames',
    {
      at,
      type: 'connection-closed',
      account,
      feed: 'market',
      connection: 3,
      code: 1006,
      reason: '',
      by: 'client',
      frames: 1_842,
    },
  ],
  [
    'contract violation: client-message, account-1, connection 3',
    { at, type: 'violation', rule: 'client-message', account, connection: 3 },
  ],
  ['contract violation: unknown-path', { at, type: 'violation', rule: 'unknown-path' }],
  [
    'the source of market has ended; the service continues to run',
    { at, type: 'source-ended', feed: 'market', error: undefined },
  ],
  ['the source of market failed: no␊more', { at, type: 'source-ended', feed: 'market', error: new Error('no\nmore') }],
  ['the source of market failed: for an unknown reason', { at, type: 'source-ended', feed: 'market', error: 7 }],
];

describe('serviceEventWords', () => {
  it.each(rows)('%s', (words, event) => expect(serviceEventWords(event)).toBe(words));
});

describe('welcome', () => {
  const facts = {
    baseUrl: 'https://127.0.0.1:8080',
    apiKey: 'key_1',
    plan: 'free',
    feeds: { market: 'this', raw: 'that' },
    feed: 'raw',
  } as const;

  it('names the address of the service and the commands to type next', () => {
    expect(`\n${welcome({ ...facts, caFile: undefined })}`).toMatchSnapshot();
    expect(`\n${welcome({ ...facts, caFile: '/tmp/ca.pem' })}`).toMatchSnapshot();
  });
});
