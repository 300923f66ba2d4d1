import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { classify, createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { serviceMeanings } from '../../../src/protocol/failures/service-meanings.js';
import type { FailureCode, ServiceFailureCode, Stage, Verdict } from '../../../src/protocol/failures/failure-code.js';
import type { FailureFacts } from '../../../src/protocol/failures/trade-feed-error.js';
import type { Meaning } from '../../../src/protocol/failures/meaning.js';

/**
 * The failure table, row by row, written by hand and not from src. `row` names the row of `serviceMeanings` that the
 * facts must match, as `keyOf` does. The tests at the end compare both tables.
 */
interface Row {
  readonly row: string;
  readonly facts: readonly FailureFacts[];
  readonly code: FailureCode;
  readonly verdict: Verdict;
}

const answers = (stage: Stage, ...statuses: readonly number[]): FailureFacts[] =>
  statuses.map((status) => ({ stage, status }));
const closes = (reason: string | undefined, ...codes: readonly number[]): FailureFacts[] =>
  codes.map((closeCode) => ({ stage: 'stream', closeCode, reason }));
const detected = (code: FailureCode, ...stages: readonly Stage[]): FailureFacts[] =>
  stages.map((stage) => ({ stage, code }));

const table: readonly Row[] = [
  { row: 'ticket 401', facts: answers('ticket', 401), code: 'invalid-api-key', verdict: 'stop' },
  { row: 'ticket 403', facts: answers('ticket', 403), code: 'not-entitled', verdict: 'stop' },
  { row: 'ticket 422', facts: answers('ticket', 422), code: 'invalid-ticket-request', verdict: 'stop' },
  { row: 'ticket 429', facts: answers('ticket', 429), code: 'ticket-rate-limited', verdict: 'wait' },
  { row: 'ticket 503', facts: answers('ticket', 503), code: 'credential-service-unavailable', verdict: 'backoff' },
  {
    row: 'ticket 5xx',
    facts: answers('ticket', 500, 501, 502, 504, 505, 511, 520, 599),
    code: 'ticket-request-failed',
    verdict: 'backoff',
  },
  { row: 'ticket 408', facts: answers('ticket', 408), code: 'ticket-request-failed', verdict: 'backoff' },
  {
    row: 'ticket other',
    facts: [
      ...answers('ticket', 300, 301, 302, 303, 304, 307, 308),
      ...answers('ticket', 400, 402, 404, 405, 407, 409, 410, 413, 415, 418, 421, 423, 428, 430, 431, 451, 499),
      // The contract does not know these: neither a ticket nor a refusal.
      ...answers('ticket', 201, 202, 204, 206, 600, 999),
    ],
    code: 'ticket-request-rejected',
    verdict: 'stop',
  },
  {
    row: 'ticket ticket-endpoint-unreachable',
    facts: detected('ticket-endpoint-unreachable', 'ticket'),
    code: 'ticket-endpoint-unreachable',
    verdict: 'backoff',
  },
  {
    row: 'ticket untrusted-certificate',
    facts: detected('untrusted-certificate', 'ticket'),
    code: 'untrusted-certificate',
    verdict: 'stop',
  },
  {
    row: 'handshake untrusted-certificate',
    facts: detected('untrusted-certificate', 'handshake'),
    code: 'untrusted-certificate',
    verdict: 'stop',
  },
  {
    row: 'ticket api-key-unavailable',
    facts: detected('api-key-unavailable', 'ticket'),
    code: 'api-key-unavailable',
    verdict: 'backoff',
  },
  {
    row: 'any invalid-options',
    facts: detected('invalid-options', 'ticket', 'handshake', 'stream'),
    code: 'invalid-options',
    verdict: 'stop',
  },
  {
    row: 'ticket invalid-ticket',
    facts: detected('invalid-ticket', 'ticket'),
    code: 'invalid-ticket',
    verdict: 'stop',
  },
  { row: 'handshake 400', facts: answers('handshake', 400), code: 'handshake-rejected', verdict: 'stop' },
  { row: 'handshake 401', facts: answers('handshake', 401), code: 'ticket-rejected', verdict: 'renew' },
  { row: 'handshake 503', facts: answers('handshake', 503), code: 'capacity-full', verdict: 'backoff' },
  {
    row: 'handshake subprotocol-mismatch',
    facts: detected('subprotocol-mismatch', 'handshake'),
    code: 'subprotocol-mismatch',
    verdict: 'stop',
  },
  {
    row: 'handshake 5xx',
    facts: answers('handshake', 500, 501, 502, 504, 520, 599),
    code: 'handshake-failed',
    verdict: 'backoff',
  },
  { row: 'handshake 408', facts: answers('handshake', 408), code: 'handshake-failed', verdict: 'backoff' },
  { row: 'handshake 429', facts: answers('handshake', 429), code: 'handshake-failed', verdict: 'backoff' },
  {
    row: 'handshake other',
    facts: [
      ...answers('handshake', 301, 302, 303, 307, 308),
      ...answers('handshake', 101, 200, 204, 402, 403, 404, 405, 407, 409, 410, 426, 428, 430, 600, 999),
    ],
    code: 'handshake-failed',
    verdict: 'stop',
  },
  {
    row: 'handshake handshake-unreachable',
    facts: detected('handshake-unreachable', 'handshake'),
    code: 'handshake-unreachable',
    verdict: 'backoff',
  },
  {
    row: 'handshake ticket-expired',
    facts: detected('ticket-expired', 'handshake'),
    code: 'ticket-expired',
    verdict: 'renew',
  },
  {
    row: 'stream 4001',
    facts: [...closes('connection replaced', 4001), ...closes('', 4001), ...closes('another', 4001)],
    code: 'connection-replaced',
    verdict: 'stop',
  },
  {
    row: 'stream 1008',
    facts: [...closes('server push only', 1008), ...closes('', 1008)],
    code: 'policy-violation',
    verdict: 'stop',
  },
  {
    row: 'stream 4003 "access expired"',
    facts: closes('access expired', 4003),
    code: 'access-expired',
    verdict: 'renew',
  },
  {
    row: 'stream 4003 "access revoked"',
    facts: closes('access revoked', 4003),
    code: 'access-revoked',
    verdict: 'renew',
  },
  {
    row: 'stream 4003',
    facts: [
      ...closes(undefined, 4003),
      ...closes('', 4003),
      ...closes('Access expired', 4003),
      ...closes('access expired ', 4003),
      ...closes('access suspended', 4003),
    ],
    code: 'connection-closed',
    verdict: 'renew',
  },
  {
    row: 'stream 1013',
    facts: [...closes('client too slow', 1013), ...closes('', 1013)],
    code: 'client-too-slow',
    verdict: 'backoff',
  },
  {
    row: 'stream 1001',
    facts: [...closes('server shutdown', 1001), ...closes('', 1001)],
    code: 'server-shutdown',
    verdict: 'backoff',
  },
  { row: 'stream 1006', facts: closes('', 1006), code: 'connection-lost', verdict: 'renew' },
  {
    row: 'stream connection-stalled',
    facts: detected('connection-stalled', 'stream'),
    code: 'connection-stalled',
    verdict: 'renew',
  },
  {
    row: 'stream invalid-frame',
    facts: detected('invalid-frame', 'stream'),
    code: 'invalid-frame',
    verdict: 'backoff',
  },
  {
    row: 'stream other',
    facts: [
      ...closes('', 1000, 1002, 1003, 1004, 1005, 1007, 1009, 1010, 1011, 1012, 1014, 1015),
      ...closes('', 2999, 3000, 4000, 4002, 4004, 4999),
      // A reason alone means nothing.
      ...closes('access expired', 1000, 4004),
      ...closes('connection replaced', 1000),
    ],
    code: 'connection-closed',
    verdict: 'backoff',
  },
  {
    row: 'any retries-exhausted',
    facts: detected('retries-exhausted', 'ticket', 'handshake', 'stream'),
    code: 'retries-exhausted',
    verdict: 'stop',
  },
];

// The compiler compares this list with the type: a missing code does not compile.
const codes = Object.keys({
  'invalid-options': true,
  'api-key-unavailable': true,
  'invalid-api-key': true,
  'not-entitled': true,
  'invalid-ticket-request': true,
  'ticket-rate-limited': true,
  'credential-service-unavailable': true,
  'ticket-request-failed': true,
  'ticket-request-rejected': true,
  'ticket-endpoint-unreachable': true,
  'untrusted-certificate': true,
  'invalid-ticket': true,
  'handshake-rejected': true,
  'ticket-rejected': true,
  'capacity-full': true,
  'subprotocol-mismatch': true,
  'handshake-failed': true,
  'handshake-unreachable': true,
  'ticket-expired': true,
  'connection-replaced': true,
  'policy-violation': true,
  'access-expired': true,
  'access-revoked': true,
  'client-too-slow': true,
  'server-shutdown': true,
  'connection-lost': true,
  'connection-stalled': true,
  'invalid-frame': true,
  'connection-closed': true,
  'retries-exhausted': true,
} satisfies Record<ServiceFailureCode, true>) as FailureCode[];

const keyOf = ({ stage = 'any' as never, status, closeCode, reason, code }: Meaning): string =>
  [stage, status ?? closeCode ?? code, ...(reason === undefined ? [] : [`"${reason}"`])].join(' ');

const cases = table.flatMap(({ facts, ...row }) => facts.map((each) => ({ ...row, each, what: JSON.stringify(each) })));

describe('classify, by the failure table', () => {
  it.each(cases)('$what is $code: $verdict', ({ row, each, code, verdict }) => {
    expect(classify(each)).toBe(verdict);
    expect(createTradeFeedError(each)).toMatchObject({ code, verdict, stage: each.stage });
    const { meaning, advice } = serviceMeanings.find((candidate) => keyOf(candidate) === row)!;
    expect(createTradeFeedError(each)).toMatchObject({
      advice,
      message: expect.stringContaining(meaning.slice(0, -1)) as unknown,
    });
  });

  it.each(cases)('$what has the same verdict as an error', ({ each, verdict, code }) => {
    const error = createTradeFeedError(each);
    expect(classify(error)).toBe(verdict);
    expect(createTradeFeedError({ ...error }).code).toBe(code);
  });

  it('has exactly the rows of the table', () => {
    expect(serviceMeanings.map(keyOf).sort()).toEqual(table.map(({ row }) => row).sort());
  });

  it('has a row for every code', () => {
    expect([...new Set(table.map(({ code }) => code))].sort()).toEqual([...codes].sort());
    expect([...new Set(serviceMeanings.map(({ code }) => code))].sort()).toEqual([...codes].sort());
  });

  it('does not depend on a text, a Retry-After, an uptime or a cause', () => {
    const { stage, status } = { stage: 'ticket', status: 401 } as const;
    expect(classify({ stage, status, retryAfterMs: 5, uptimeMs: 9, detail: 'x', cause: new Error('x') })).toBe('stop');
  });

  it.each<[string, unknown]>([
    ['a stage alone', { stage: 'ticket' }],
    ['a close code at a stage without close codes', { stage: 'ticket', closeCode: 4001 }],
    ['a status at a stage without statuses', { stage: 'stream', status: 401 }],
    ['a code of another stage', { stage: 'stream', code: 'invalid-ticket' }],
    ['an unknown code', { stage: 'ticket', code: 'out-of-luck' }],
    ['an unknown stage', { stage: 'farewell', status: 401 }],
    ['a code that its status contradicts', { stage: 'ticket', code: 'not-entitled', status: 401 }],
    ['a status and a close code', { stage: 'stream', status: 401, closeCode: 1001 }],
  ])('throws a TypeError for %s', (_what, facts) => {
    expect(() => classify(facts as FailureFacts)).toThrow(TypeError);
    expect(() => createTradeFeedError(facts as FailureFacts)).toThrow(
      /^No failure is known for stage (ticket|stream|farewell)/,
    );
  });

  it('knows any status of a ticket response and of a handshake', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Stage>('ticket', 'handshake'),
        fc.integer({ min: 100, max: 999 }),
        (stage, status) => {
          const isServer = status >= 500 && status <= 599;
          const named = [401, 408, 429].includes(status);
          expect(['stop', 'renew', 'wait', 'backoff']).toContain(classify({ stage, status }));
          // A status that no row names stops, unless it is a fault of the server, or temporary.
          if (stage === 'handshake' && (status === 408 || status === 429))
            expect(classify({ stage, status })).toBe('backoff');
          if (!named) expect(classify({ stage, status })).toBe(isServer ? 'backoff' : 'stop');
        },
      ),
    );
  });

  it('knows any close code with any reason', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 4999 }), fc.string({ unit: 'binary' }), (closeCode, reason) => {
        const error = createTradeFeedError({ stage: 'stream', closeCode, reason });
        expect(error).toMatchObject({ closeCode, reason });
        if (![1001, 1006, 1008, 1013, 4001, 4003].includes(closeCode)) {
          expect(error).toMatchObject({ code: 'connection-closed', verdict: 'backoff' });
        }
      }),
    );
  });
});

describe('the texts of the table', () => {
  const sentences = serviceMeanings.flatMap((row) =>
    [row.meaning, row.advice].map((text) => [keyOf(row), text] as const),
  );

  it.each(sentences)('of %s are sentences without addresses: %s', (_row, text) => {
    expect(text).toMatch(/^[A-Z].*\.$/s);
    expect(text).not.toMatch(/\.\.|\s\.|\s\s|[a-z]+:\/\/|Bearer|[0-9a-f]{16}/i);
  });

  it('have one sentence of advice for each row', () => {
    expect(serviceMeanings.filter(({ advice }) => advice.includes('. ')).map(keyOf)).toEqual([]);
  });
});

describe('a failure that is named by a code alone', () => {
  it.each([
    [{ stage: 'ticket', code: 'invalid-api-key' }, 'stop'],
    [{ stage: 'stream', code: 'connection-lost' }, 'renew'],
    [{ stage: 'stream', code: 'access-revoked' }, 'renew'],
    [{ stage: 'handshake', code: 'handshake-failed' }, 'backoff'],
  ] as const)('%j is %s', (facts, verdict) => {
    expect(classify(facts)).toBe(verdict);
  });
});

describe('the message of a failure', () => {
  const messageOf = (facts: FailureFacts) => createTradeFeedError(facts).message;

  it('says what happened, what was observed, and what to do', () => {
    expect(messageOf({ stage: 'ticket', status: 401 })).toBe(
      'The service does not accept the API key (HTTP 401). Give a valid key in the option `apiKey` or in TRADE_FEED_API_KEY.',
    );
    expect(messageOf({ stage: 'stream', closeCode: 1001, reason: 'server shutdown' })).toBe(
      'The service shut down (close code 1001, "server shutdown"). Nothing to do: the feed reconnects with backoff.',
    );
    expect(messageOf({ stage: 'stream', closeCode: 1006, reason: '' })).toBe(
      'The connection broke off without a close frame (close code 1006). Nothing to do: the feed reconnects with a fresh ticket.',
    );
    expect(messageOf({ stage: 'ticket', code: 'invalid-ticket', detail: 'wrong or missing: feed' })).toMatch(
      /^The service answered 200 with a body that is not a ticket \(wrong or missing: feed\)\. Check `baseUrl`/,
    );
  });

  it('has no parentheses when nothing more was observed', () => {
    expect(messageOf({ stage: 'stream', code: 'connection-stalled' })).toBe(
      'The connection was silent and did not answer a ping. Nothing to do: the feed reconnects with a fresh ticket.',
    );
  });

  it('has the observed facts as `detail`, which is not in JSON', () => {
    const error = createTradeFeedError({ stage: 'ticket', status: 401, detail: 'x' });
    expect(error.detail).toBe('HTTP 401, x');
    expect(error.toJSON()).not.toHaveProperty('detail');
  });

  it('shows a close reason character by character, also one with a dollar sign', () => {
    for (const reason of ['$$', '$&', '$`', "$'"]) {
      expect(messageOf({ stage: 'stream', closeCode: 1000, reason })).toContain(`"${reason}"`);
    }
  });
});
