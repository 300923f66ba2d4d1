import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { RelayFailureCode, Stage, Verdict } from '../../../src/protocol/failures/failure-code.js';
import { relayError, type RelayFailureFacts } from '../../../src/protocol/failures/relay-error.js';
import { relayMeanings, relayReports } from '../../../src/protocol/failures/relay-meanings.js';

/** What is observed, its code, stage and verdict. Written by hand, not from src. */
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

  it('keeps the observed facts', () => {
    const cause = new Error('below');
    const facts = { uptimeMs: 5, framesReceived: 6, endedAt: 7, retryAfterMs: 8 };
    const error = relayError({ code: 'relay-lost', ...facts, detail: 'one more word', cause });
    expect(error).toMatchObject({ ...facts, cause });
    expect(error.message).toContain('(one more word)');
    expect(relayError({ status: 503 }).message).toContain('(HTTP 503)');
    expect(relayError({ status: 503, detail: 'x' }).detail).toBe('HTTP 503, x');
  });

  it.each<[string, object]>([
    ['no facts', {}],
    ['a code of the service', { code: 'connection-lost' }],
    ['a code that only a relay reports', { code: 'relay-behind' }],
    ['an unknown code', { code: 'out-of-luck' }],
  ])('throws a TypeError for %s', (_what, facts) => {
    expect(() => relayError(facts)).toThrow(new TypeError('Unknown failure.'));
  });

  it('knows any status: a fault of the request stops, a fault of the relay is retried', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 999 }), (status) => {
        const isTemporary = [408, 429].includes(status) || Math.floor(status / 100) === 5;
        expect(relayError({ status }).verdict).toBe(isTemporary ? 'backoff' : 'stop');
      }),
    );
  });

  it('has one or more rows for each code, and no other rows', () => {
    const rows = [...relayMeanings, ...Object.values(relayReports)].map(({ code }) => code);
    expect([...new Set(rows)].sort()).toEqual(codes.sort());
    expect([...new Set(table.map(([, code]) => code))].sort()).toEqual(
      [...new Set(relayMeanings.map(({ code }) => code))].sort(),
    );
  });

  it.each([...relayMeanings, ...Object.values(relayReports)])(
    'has one sentence for what happened and one for what to do: $code',
    ({ meaning, advice }) => {
      expect([meaning, advice]).toEqual([expect.stringMatching(/^[A-Z].*\.$/), expect.stringMatching(/^[A-Z].*\.$/)]);
    },
  );
});
