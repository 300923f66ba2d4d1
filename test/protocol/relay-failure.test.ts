import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { RelayFailureCode, Stage, Verdict } from '../../src/protocol/failure.js';
import { relayError, type RelayFailureFacts, relayMeanings } from '../../src/protocol/relay-failure.js';
import { relayTold } from '../../src/protocol/relay-told.js';

/** The table of the design, written from the design: what is observed, what it is called, what follows. */
const table: readonly (readonly [readonly RelayFailureFacts[], RelayFailureCode, Stage, Verdict])[] = [
  [[{ status: 401 }, { status: 403 }], 'relay-refused', 'handshake', 'stop'],
  [[{ status: 503 }], 'relay-full', 'handshake', 'backoff'],
  [[408, 429, 500, 501, 502, 504, 520, 599].map((status) => ({ status })), 'relay-failed', 'handshake', 'backoff'],
  [
    [200, 204, 206, 301, 304, 400, 402, 404, 405, 410, 418, 426, 451, 600].map((status) => ({ status })),
    'invalid-relay',
    'handshake',
    'stop',
  ],
  [[{ code: 'invalid-relay' }], 'invalid-relay', 'handshake', 'stop'],
  [[{ code: 'relay-unreachable' }], 'relay-unreachable', 'handshake', 'backoff'],
  [[{ code: 'relay-headers-failed' }], 'relay-headers-failed', 'handshake', 'backoff'],
  [[{ code: 'relay-lost' }], 'relay-lost', 'stream', 'backoff'],
  [[{ code: 'relay-stalled' }], 'relay-stalled', 'stream', 'renew'],
  [[{ code: 'invalid-relay-data' }], 'invalid-relay-data', 'stream', 'backoff'],
];

const cases = table.flatMap(([all, code, stage, verdict]) =>
  all.map((facts) => ({ facts, code, stage, verdict, what: JSON.stringify(facts) })),
);

const codes = Object.keys({
  'relay-unreachable': true,
  'relay-headers-failed': true,
  'relay-refused': true,
  'relay-full': true,
  'relay-failed': true,
  'invalid-relay': true,
  'relay-lost': true,
  'relay-closing': true,
  'relay-session-ended': true,
  'relay-stalled': true,
  'invalid-relay-data': true,
  'relay-behind': true,
  'relay-source-failed': true,
} satisfies Record<RelayFailureCode, true>);

describe('relayError', () => {
  it.each(cases)('$what is $code: $verdict', ({ facts, code, stage, verdict }) => {
    const error = relayError(facts);
    expect(error).toMatchObject({ ...facts, code, stage, verdict });
    const { meaning, advice } = relayMeanings.find((each) => each.code === code)!;
    expect(error.message).toContain(meaning.slice(0, -1));
    expect(error.message).toContain(advice);
    expect(error.advice).toBe(advice);
  });

  it('keeps what was observed', () => {
    const cause = new Error('below');
    const facts = { uptimeMs: 5, framesReceived: 6, endedAt: 7, retryAfterMs: 8 };
    const error = relayError({ code: 'relay-lost', ...facts, detail: 'a word more', cause });
    expect(error).toMatchObject({ ...facts, cause });
    expect(error.message).toContain('(a word more)');
    expect(relayError({ status: 503 }).message).toContain('(HTTP 503)');
  });

  it.each<[string, object]>([
    ['nothing', {}],
    ['a code of the service', { code: 'connection-lost' }],
    ['a code that a relay alone tells of', { code: 'relay-behind' }],
    ['a code that there is not', { code: 'out-of-luck' }],
  ])('throws a TypeError for %s', (_what, facts) => {
    expect(() => relayError(facts)).toThrow(new TypeError('Unknown failure.'));
  });

  it('knows any status; a stop is a matter of the request, the rest one of the relay', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 999 }), (status) => {
        const again = [408, 429].includes(status) || Math.floor(status / 100) === 5;
        expect(relayError({ status }).verdict).toBe(again ? 'backoff' : 'stop');
      }),
    );
  });

  it('is made of a row for every code, and of no other', () => {
    const rows = [...relayMeanings, ...Object.values(relayTold)].map(({ code }) => code);
    expect([...new Set(rows)].sort()).toEqual(codes.sort());
    expect([...new Set(table.map(([, code]) => code))].sort()).toEqual(
      [...new Set(relayMeanings.map(({ code }) => code))].sort(),
    );
  });

  it.each([...relayMeanings, ...Object.values(relayTold)])(
    'says in sentences what happened, and what to do: $code',
    ({ meaning, advice }) => {
      expect([meaning, advice]).toEqual([expect.stringMatching(/^[A-Z].*\.$/), expect.stringMatching(/^[A-Z].*\.$/)]);
    },
  );
});
