import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { classify, meanings, tradeFeedError } from '../../src/protocol/classify.js';
import type { FailureFacts, Stage } from '../../src/protocol/failure.js';
import type { Meaning } from '../../src/protocol/meaning.js';
import { failureCodes, type FailureRow, failureTable } from '../support/failure-table.js';
import { cases } from '../support/cases.js';

const answers = (stage: Stage, ...statuses: readonly number[]): FailureFacts[] =>
  statuses.map((status) => ({ stage, status }));
const closes = (reason: string | undefined, ...codes: readonly number[]): FailureFacts[] =>
  codes.map((closeCode) => ({ stage: 'stream', closeCode, reason }));

// Statuses and close codes to try for a row, by the key that `keyOf` returns.
const samples: Readonly<Record<string, readonly FailureFacts[]>> = {
  'ticket 5xx': answers('ticket', 500, 501, 502, 504, 505, 511, 520, 599),
  'ticket other': [
    ...answers('ticket', 300, 301, 302, 303, 304, 307, 308),
    ...answers('ticket', 400, 402, 404, 405, 407, 409, 410, 413, 415, 418, 421, 423, 428, 430, 431, 451, 499),
    // The contract does not name these either: no ticket and no refusal.
    ...answers('ticket', 201, 202, 204, 206, 600, 999),
  ],
  'handshake 5xx': answers('handshake', 500, 501, 502, 504, 520, 599),
  'handshake other': [
    ...answers('handshake', 301, 302, 303, 307, 308),
    ...answers('handshake', 101, 200, 204, 402, 403, 404, 405, 407, 409, 410, 426, 428, 430, 600, 999),
  ],
  'stream 4001': [...closes('connection replaced', 4001), ...closes('', 4001), ...closes('another', 4001)],
  'stream 1008': [...closes('server push only', 1008), ...closes('', 1008)],
  'stream 4003': [
    ...closes(undefined, 4003),
    ...closes('', 4003),
    ...closes('Access expired', 4003),
    ...closes('access expired ', 4003),
    ...closes('access suspended', 4003),
  ],
  'stream 1013': [...closes('client too slow', 1013), ...closes('', 1013)],
  'stream 1001': [...closes('server shutdown', 1001), ...closes('', 1001)],
  'stream 1006': closes('', 1006),
  'stream other': [
    ...closes('', 1000, 1002, 1003, 1004, 1005, 1007, 1009, 1010, 1011, 1012, 1014, 1015),
    ...closes('', 2999, 3000, 4000, 4002, 4004, 4999),
    // A reason alone means nothing.
    ...closes('access expired', 1000, 4004),
    ...closes('connection replaced', 1000),
  ],
};

const keyOf = ({ stage = 'any' as never, status, closeCode, reason, code }: Meaning | FailureRow): string =>
  [stage, status ?? closeCode ?? code, ...(reason === undefined ? [] : [`"${reason}"`])].join(' ');

const factsOf = (row: FailureRow): readonly FailureFacts[] => {
  const { stage, status, closeCode, reason, code } = row;
  const facts = status === undefined && closeCode === undefined ? { code } : { status, closeCode, reason };
  const stages: readonly Stage[] = stage === undefined ? ['ticket', 'handshake', 'stream'] : [stage];
  return samples[keyOf(row)] ?? stages.map((each) => ({ stage: each, ...facts }) as FailureFacts);
};

const examples = failureTable.flatMap((row) =>
  factsOf(row).map((each) => ({
    ...{ row: keyOf(row), code: row.code, verdict: row.verdict, each },
    what: JSON.stringify(each),
  })),
);

describe('classify', () => {
  it.each(examples)('$what is $code: $verdict', ({ row, each, code, verdict }) => {
    expect(classify(each)).toBe(verdict);
    expect(tradeFeedError(each)).toMatchObject({ code, verdict, stage: each.stage });
    const { meaning, advice } = meanings.find((candidate) => keyOf(candidate) === row)!;
    expect(tradeFeedError(each)).toMatchObject({
      advice,
      message: expect.stringContaining(meaning.slice(0, -1)) as unknown,
    });
  });

  it.each(examples)('$what is the same when it is asked again as an error', ({ each, verdict, code }) => {
    const error = tradeFeedError(each);
    expect(classify(error)).toBe(verdict);
    expect(tradeFeedError({ ...error }).code).toBe(code);
  });

  it('has exactly the rows of the failure table', () => {
    expect(meanings.map(keyOf).sort()).toEqual(failureTable.map(keyOf).sort());
    expect(failureTable.map(keyOf)).toEqual(expect.arrayContaining(Object.keys(samples)));
  });

  it('has a row for every code', () => {
    expect([...new Set(meanings.map(({ code }) => code))].sort()).toEqual(failureCodes);
  });

  it('is the same with and without a text, a Retry-After, an uptime or a cause', () => {
    const { stage, status } = { stage: 'ticket', status: 401 } as const;
    expect(classify({ stage, status, retryAfterMs: 5, uptimeMs: 9, detail: 'x', cause: new Error('x') })).toBe('stop');
  });

  it.each<[string, unknown]>([
    ['nothing but a stage', { stage: 'ticket' }],
    ['a close code of a stage that has none', { stage: 'ticket', closeCode: 4001 }],
    ['a status of a stage that has none', { stage: 'stream', status: 401 }],
    ['a code of another stage', { stage: 'stream', code: 'invalid-ticket' }],
    ['a code that there is not', { stage: 'ticket', code: 'out-of-luck' }],
    ['a stage that there is not', { stage: 'farewell', status: 401 }],
    ['a code that its status contradicts', { stage: 'ticket', code: 'not-entitled', status: 401 }],
    ['a status and a close code', { stage: 'stream', status: 401, closeCode: 1001 }],
  ])('throws a TypeError for %s', (_what, facts) => {
    expect(() => classify(facts as FailureFacts)).toThrow(TypeError);
    expect(() => tradeFeedError(facts as FailureFacts)).toThrow(
      /^No failure is known for stage (ticket|stream|farewell)/,
    );
  });

  it('knows any status of a ticket response and of a handshake', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Stage>('ticket', 'handshake'),
        fc.integer({ min: 100, max: 999 }),
        (stage, status) => {
          const server = status >= 500 && status <= 599;
          const named = [401, 408, 429].includes(status);
          expect(['stop', 'renew', 'wait', 'backoff']).toContain(classify({ stage, status }));
          // What no row names stops, unless the trouble is the server's, or of this moment.
          if (stage === 'handshake' && (status === 408 || status === 429))
            expect(classify({ stage, status })).toBe('backoff');
          if (!named) expect(classify({ stage, status })).toBe(server ? 'backoff' : 'stop');
        },
      ),
      { numRuns: cases(100) },
    );
  });

  it('knows any close code with any reason', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 4999 }), fc.string({ unit: 'binary' }), (closeCode, reason) => {
        const error = tradeFeedError({ stage: 'stream', closeCode, reason });
        expect(error).toMatchObject({ closeCode, reason });
        if (![1001, 1006, 1008, 1013, 4001, 4003].includes(closeCode)) {
          expect(error).toMatchObject({ code: 'connection-closed', verdict: 'backoff' });
        }
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('the words of the table', () => {
  const sentences = meanings.flatMap((row) => [row.meaning, row.advice].map((text) => [keyOf(row), text] as const));

  it.each(sentences)('of %s are sentences without addresses: %s', (_row, text) => {
    expect(text).toMatch(/^[A-Z].*\.$/s);
    expect(text).not.toMatch(/\.\.|\s\.|\s\s|[a-z]+:\/\/|Bearer|[0-9a-f]{16}/i);
  });

  it('give one sentence of advice for each row', () => {
    expect(meanings.filter(({ advice }) => advice.includes('. ')).map(keyOf)).toEqual([]);
  });
});

describe('a failure known by its code alone', () => {
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
  const told = (facts: FailureFacts) => tradeFeedError(facts).message;

  it('says what it means, what was seen, and what to do', () => {
    expect(told({ stage: 'ticket', status: 401 })).toBe(
      'The service does not accept the API key (HTTP 401). Give a valid key in the option `apiKey` or in TRADE_FEED_API_KEY.',
    );
    expect(told({ stage: 'stream', closeCode: 1001, reason: 'server shutdown' })).toBe(
      'The service shut down (close code 1001, "server shutdown"). Nothing to do: the feed reconnects with backoff.',
    );
    expect(told({ stage: 'stream', closeCode: 1006, reason: '' })).toBe(
      'The connection broke off without a close frame (close code 1006). Nothing to do: the feed reconnects with a fresh ticket.',
    );
    expect(told({ stage: 'ticket', code: 'invalid-ticket', detail: 'wrong or missing: feed' })).toMatch(
      /^The service answered 200 with a body that is not a ticket \(wrong or missing: feed\)\. Check `baseUrl`/,
    );
  });

  it('has no brackets when nothing more was seen', () => {
    expect(told({ stage: 'stream', code: 'connection-stalled' })).toBe(
      'The connection fell silent and did not answer a ping. Nothing to do: the feed reconnects with a fresh ticket.',
    );
  });

  it('does not keep the detail as a field', () => {
    expect(tradeFeedError({ stage: 'ticket', status: 401, detail: 'x' })).not.toHaveProperty('detail');
  });

  it('shows a close reason letter for letter, also one with a dollar sign', () => {
    for (const reason of ['$$', '$&', '$`', "$'"]) {
      expect(told({ stage: 'stream', closeCode: 1000, reason })).toContain(`"${reason}"`);
    }
  });
});
