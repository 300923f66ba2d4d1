import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { ConnectionEnd } from '../../src/browser/connection-facts.js';
import { afterEnd } from '../../src/browser/feed-stops.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { Verdict } from '../../src/protocol/failures/failure-code.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';

const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced', endedAt: 1 });
const stop: ConnectionEnd = { failure: replaced, isOfFeed: true, hasOpened: false };
const stopAfterOpened: ConnectionEnd = { ...stop, hasOpened: true };
const lost: ConnectionEnd = { failure: relayError({ code: 'relay-lost' }), isOfFeed: true, hasOpened: false };
const lostAfterOpened: ConnectionEnd = { ...lost, hasOpened: true };
const unreachable: ConnectionEnd = {
  failure: relayError({ code: 'relay-unreachable' }),
  isOfFeed: false,
  hasOpened: false,
};
const refused: ConnectionEnd = { failure: relayError({ status: 401 }), isOfFeed: false, hasOpened: false };

const verdictsOf = (max: number, ends: readonly ConnectionEnd[]): readonly Verdict[] => {
  let before = 0;
  return ends.map((each) => {
    const { stops, failure } = afterEnd(max, before, each);
    before = stops;
    return failure.verdict;
  });
};

describe('afterEnd', () => {
  it.each<[string, number, ConnectionEnd, number, Verdict]>([
    ['the first stop of the feed is retried', 0, stop, 1, 'backoff'],
    ['the last but one is retried', 1, stop, 2, 'backoff'],
    ['the last one stops', 2, stop, 3, 'stop'],
    ['a stop after `classify` continued stops again', 3, stop, 4, 'stop'],
    ['a stop after `opened` is the first again', 2, stopAfterOpened, 1, 'backoff'],
    ['a lost connection does not change the count', 2, lost, 2, 'backoff'],
    ['a lost connection after `opened` begins the count again', 2, lostAfterOpened, 0, 'backoff'],
    ['a connection without an answer does not change the count', 2, unreachable, 2, 'backoff'],
    ['a refusal of the relay stops at once', 0, refused, 0, 'stop'],
  ])('%s', (_what, before, ended, stops, verdict) => {
    const after = afterEnd(3, before, ended);
    expect([after.stops, after.failure.verdict]).toEqual([stops, verdict]);
    expect(after.failure.toJSON()).toEqual({ ...ended.failure.toJSON(), verdict });
  });

  it('stops at the first stop with 1, and never with Infinity', () => {
    expect(verdictsOf(1, [stop])).toEqual(['stop']);
    expect(new Set(verdictsOf(Infinity, Array<ConnectionEnd>(100).fill(stop)))).toEqual(new Set(['backoff']));
  });

  it('stops at the n-th stop since the last `opened`, for any sequence of ends', () => {
    const kinds = { stop, stopAfterOpened, lost, lostAfterOpened, unreachable };
    const kind = fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[]));
    fc.assert(
      fc.property(fc.array(kind, { maxLength: 40 }), fc.integer({ min: 1, max: 6 }), (names, max) => {
        const seen = verdictsOf(
          max,
          names.map((name) => kinds[name]),
        );
        for (const [n, name] of names.entries()) {
          // Computed backwards: the stops since the last end with an `opened`.
          const begin = names.slice(0, n + 1).findLastIndex((each) => each.endsWith('AfterOpened'));
          const inRow = names.slice(Math.max(begin, 0), n + 1).filter((each) => each.startsWith('stop')).length;
          expect(seen[n]).toBe(name.startsWith('stop') && inRow >= max ? 'stop' : 'backoff');
        }
      }),
    );
  });
});
