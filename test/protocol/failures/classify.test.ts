import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { classify, createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { serviceMeanings } from '../../../src/protocol/failures/service-meanings.js';
import type { Stage } from '../../../src/protocol/failures/failure-code.js';
import type { FailureFacts } from '../../../src/protocol/failures/trade-feed-error.js';
import type { Meaning } from '../../../src/protocol/failures/meaning.js';
import { failureCodes, type FailureRow, failureTable } from '../../support/failure-table.js';
import { cases } from '../../support/cases.js';
import { character } from '../../support/character.js';

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
    expect(createTradeFeedError(each)).toMatchObject({ code, verdict, stage: each.stage });
    const { meaning, advice } = serviceMeanings.find((candidate) => keyOf(candidate) === row)!;
    expect(createTradeFeedError(each)).toMatchObject({
      advice,
      message: expect.stringContaining(meaning.slice(0, -1)) as unknown,
    });
  });

  it.each(examples)('$what has the same verdict as an error', ({ each, verdict, code }) => {
    const error = createTradeFeedError(each);
    expect(classify(error)).toBe(verdict);
    expect(createTradeFeedError({ ...error }).code).toBe(code);
  });

  it('has exactly the rows of the failure table', () => {
    expect(serviceMeanings.map(keyOf).sort()).toEqual(failureTable.map(keyOf).sort());
    expect(failureTable.map(keyOf)).toEqual(expect.arrayContaining(Object.keys(samples)));
  });

  it('has a row for every code', () => {
    expect([...new Set(serviceMeanings.map(({ code }) => code))].sort()).toEqual(failureCodes);
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
      { numRuns: cases(100) },
    );
  });

  it('knows any close code with any reason', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 4999 }), fc.string({ unit: character }), (closeCode, reason) => {
        const error = createTradeFeedError({ stage: 'stream', closeCode, reason });
        expect(error).toMatchObject({ closeCode, reason });
        if (![1001, 1006, 1008, 1013, 4001, 4003].includes(closeCode)) {
          expect(error).toMatchObject({ code: 'connection-closed', verdict: 'backoff' });
        }
      }),
      { numRuns: cases(100) },
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
      'The service does not accept the API key (HTTP 401). Set the option `apiKey` or TRADE_FEED_API_KEY to a valid key.',
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
    const closed = { stage: 'stream', closeCode: 4003, reason: ' why\n', detail: 'x' } as const;
    expect(createTradeFeedError(closed)).toMatchObject({ reason: ' why\n', detail: 'close code 4003, "why", x' });
    expect(createTradeFeedError({ ...closed, reason: ' ' }).detail).toBe('close code 4003, x');
    expect(error.toJSON()).not.toHaveProperty('detail');
  });

  it('shows a close reason character by character, also one with a dollar sign', () => {
    for (const reason of ['$$', '$&', '$`', "$'"]) {
      expect(messageOf({ stage: 'stream', closeCode: 1000, reason })).toContain(`"${reason}"`);
    }
  });
});
