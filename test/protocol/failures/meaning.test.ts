import { describe, expect, it } from '@jest/globals';
import { createFailure, findMeaning, matches, type Meaning } from '../../../src/protocol/failures/meaning.js';

const row = (fields: Partial<Meaning>): Meaning => ({
  ...{ code: 'connection-lost', verdict: 'renew', meaning: 'It ended.', advice: 'Wait.' },
  ...fields,
});

describe('matches', () => {
  it.each<[number | string | undefined, number | undefined, boolean]>([
    [401, 401, true],
    [401, 403, false],
    ['5xx', 500, true],
    ['5xx', 599, true],
    ['5xx', 499, false],
    ['5xx', 600, false],
    ['other', 1, true],
    ['other', undefined, false],
    ['5xx', undefined, false],
    [undefined, undefined, true],
    [undefined, 401, false],
    [401, undefined, false],
  ])('pattern %p, value %p: %p', (pattern, value, expected) => {
    expect(matches(pattern, value)).toBe(expected);
  });
});

describe('findMeaning', () => {
  const table = [
    row({ stage: 'ticket', status: 401, code: 'invalid-api-key' }),
    row({ stage: 'ticket', status: 'other', code: 'ticket-request-rejected' }),
    row({ stage: 'stream', closeCode: 4003, reason: 'access expired', code: 'access-expired' }),
    row({ stage: 'stream', closeCode: 4003, code: 'connection-closed' }),
    row({ code: 'invalid-options' }),
  ];

  it.each([
    [{ stage: 'ticket', status: 401 }, 0],
    [{ stage: 'ticket', status: 402 }, 1],
    [{ stage: 'stream', closeCode: 4003, reason: 'access expired' }, 2],
    [{ stage: 'stream', closeCode: 4003, reason: 'another' }, 3],
    [{ stage: 'stream', code: 'access-expired' }, 2],
    [{ stage: 'handshake', code: 'invalid-options' }, 4],
  ] as const)('finds the first row that matches %j', (facts, index) => {
    expect(findMeaning(table, facts)).toBe(table[index]);
  });

  it.each([
    { stage: 'ticket' },
    { stage: 'handshake', status: 401 },
    { stage: 'ticket', code: 'invalid-api-key', status: 402 },
  ] as const)('throws when no row matches: %j', (facts) => {
    expect(() => findMeaning(table, facts)).toThrow(TypeError);
  });
});

describe('createFailure', () => {
  it('has a message that says what happened, what was observed, and what to do', () => {
    const seen = { stage: 'stream', closeCode: 4003, reason: 'why', detail: 'close code 4003, "why"' } as const;
    const error = createFailure(row({}), seen);
    expect(error.message).toBe('It ended (close code 4003, "why"). Wait.');
    expect(error).toMatchObject({
      code: 'connection-lost',
      verdict: 'renew',
      advice: 'Wait.',
      closeCode: 4003,
      reason: 'why',
    });
    expect(error).toMatchObject({ summary: 'It ended.', detail: 'close code 4003, "why"' });
    expect(createFailure(row({}), { stage: 'stream' }).message).toBe('It ended. Wait.');
  });
});
