/** @ci */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { nextReconnect, resolveBackoff } from '../../src/feed/backoff.js';
import { cases } from '../../test/support/cases.js';
import { FrameAccount } from '../lib/frame-account.mjs';
import { seeded } from '../lib/random.mjs';
import { growthOf, slopeOf } from '../soak/growth.mjs';
import { attemptsOf, distance, distanceByChance, floorRule, largestWithin, spreadRules } from '../storm/spread.mjs';
import { mostInWindow, ticketsOf, waitsOf } from '../storm/timeline.mjs';

/** Returns the account after some frames, each by its number. A text is the type of another event. */
const accountOf = (first, ...events) => {
  const account = new FrameAccount(first);
  for (const event of events)
    account.event(
      typeof event === 'string'
        ? { type: event }
        : { type: 'frame', data: Buffer.from(`{"batch":${event},"trades":[]}`) },
    );
  return account;
};

describe('the account of the frames', () => {
  it.each([
    ['all frames arrived', 1, [1, 2, 3], 3, 0],
    ['a gap reported the missing frames', 1, [1, 2, 'disconnected', 'opened', 'gap', 12, 13], 13, 9],
    ['a subscription came later, and began with a gap', undefined, ['gap', 7, 8], 8, 0],
  ])('is balanced if %s', (_what, first, events, sent, missed) => {
    const account = accountOf(first, ...events);
    expect([account.missedInGaps, account.violationCount, account.isBalanced(sent)]).toEqual([missed, 0, true]);
  });

  it.each([
    ['a frame that is missing at the beginning', [2, 3], ['2 missing without a gap']],
    ['a frame that is missing later than directly after the gap', [1, 'gap', 2, 4], ['4 missing without a gap']],
    ['a frame that arrived twice', [1, 2, 2], ['2 twice']],
    ['a frame that arrived again after a gap', [1, 2, 3, 'gap', 2], ['2 out of order']],
    ['a frame that arrived out of order', [1, 3, 2], ['3 missing without a gap', '2 out of order']],
    ['a frame that is missing at the end', [1, 2], []],
  ])('detects %s', (_what, events, rules) => {
    const account = accountOf(1, ...events);
    expect(account.violations.map(({ rule, number }) => `${number} ${rule}`)).toEqual(rules);
    expect(account.isBalanced(4)).toBe(false);
  });
});

// The same noise for the same sample in each run.
const noise = (n) => ((n * 7919) % 100) / 100 - 0.5;
const run = (seconds, of) =>
  Array.from({ length: seconds }, (_, n) => ({ atS: n, isStable: true, heap: 18, handles: 16, ...of(n) }));

describe('a resource of the soak', () => {
  it.each([
    ['grows if each sample adds a little', 120, (n) => ({ heap: 18 + n * 0.1 + 4 * noise(n) }), 'grows'],
    ['is flat if it grows only in the warm-up', 120, (n) => ({ heap: Math.min(n, 30) }), 'flat'],
    ['may grow by a little in a short run', 120, (n) => ({ heap: 18 + n * 0.005 + noise(n) / 4 }), 'flat'],
    ['may not grow by as little in a long run', 3_600, (n) => ({ heap: 18 + n * 0.005 + noise(n) / 4 }), 'grows'],
    ['is not called flat if its samples are too noisy', 60, (n) => ({ heap: 18 + 40 * noise(n) }), 'too noisy'],
    ['is not called flat if it has too few samples', 8, () => ({}), 'too few'],
    [
      'is not measured while a connection is down',
      120,
      (n) => n % 5 === 0 && { isStable: false, heap: 99 + n },
      'flat',
    ],
  ])('%s', (_what, seconds, of, verdict) => {
    expect(growthOf(run(seconds, of), 'heap')?.verdict).toBe(verdict);
  });

  it('has a slope within its bounds, which exclude 0 if there is one', () => {
    const property = fc.property(fc.integer({ min: 1, max: 1e6 }), fc.constantFrom(-1, 0, 1), (seed, slope) => {
      const random = seeded(seed);
      const { low, high } = slopeOf(Array.from({ length: 60 }, (_, x) => [x, slope * x + 20 * random()]));
      // Three times the bounds: for one line in 100 the true slope is outside of them.
      const wide = high - low;
      expect(low - wide).toBeLessThanOrEqual(slope);
      expect(high + wide).toBeGreaterThanOrEqual(slope);
      if (slope !== 0) expect(Math.sign(low)).toBe(Math.sign(high));
    });
    fc.assert(property, { numRuns: cases(200) });
  });
});

const shipped = resolveBackoff();

/** Returns clients that lost their connections within 20 ms and failed some times each, as the service says. */
const clientsOf = (jitter, { times, count = 300, ...failure }) =>
  Array.from({ length: count }, (_, n) => {
    const policy = { ...shipped, jitter, random: seeded(n + 1) };
    const waits = [];
    let [last, at] = [undefined, n % 20];
    for (let attempt = 1; attempt <= times; attempt += 1) {
      last = nextReconnect(policy, last, createTradeFeedError({ stage: 'ticket', endedAt: 0, ...failure }));
      const { delayMs } = last;
      waits.push({ at, delayMs, attempt: last.attempt, verdict: 'backoff', floorMs: failure.retryAfterMs ?? 0 });
      at += delayMs;
    }
    return { waits };
  });

describe('the storm', () => {
  it.each([
    ['keeps every rule of the spread with the default policy', 'full', [true, true, true]],
    ['breaks each of them without jitter', 'none', [false, false, false]],
  ])('%s', (_what, jitter, met) => {
    const clients = clientsOf(jitter, { times: 3, code: 'ticket-endpoint-unreachable' });
    expect(spreadRules(attemptsOf({ clients }, shipped, 1), 50).map((rule) => rule.met)).toEqual(met);
  });

  it('breaks the rule for Retry-After if all clients return at once, or none had to wait', () => {
    const metFor = (jitter, count) =>
      floorRule(clientsOf(jitter, { times: 1, count, status: 429, retryAfterMs: 5_000 }), shipped).met;
    expect([metFor('full', 300), metFor('none', 300), metFor('full', 0)]).toEqual([true, false, false]);
  });

  it('finds the largest wave at any position', () => {
    expect(largestWithin([0, 45, 49, 51, 95, 99, 300], 50)).toBe(4);
    expect(largestWithin([], 50)).toBe(0);
  });

  it('tells samples of one distribution from others', () => {
    const drawn = (count, random) => Array.from({ length: count }, () => random() * 1_000);
    const [expected, limit] = [drawn(5_000, seeded(99)), distanceByChance(200)];
    for (let seed = 1; seed <= 20; seed += 1) {
      expect(distance(drawn(200, seeded(seed)), expected)).toBeLessThan(limit);
      expect(distance(Array(200).fill(seed * 50), expected)).toBeGreaterThan(limit);
    }
  });
});

const issued = (at, account = 'a') => ['ticket-issued', at, account, 0, '', 0];
const limited = (at, seconds, account = 'a') => ['ticket-refused', at, account, 429, 'x', seconds];
const opened = (at) => ['handshake-accepted', at, 'a', 0, '', 0];
const rejected = (at, status) => ['handshake-refused', at, 'a', status, 'x', 0];

describe('the service of a storm', () => {
  it('calls a client early if it returns before Retry-After is over, and late otherwise', () => {
    const events = [limited(100, 2), limited(50, 1, 'b'), issued(1_040, 'b'), issued(2_130), limited(9_000, 1)];
    expect(waitsOf(events)).toEqual({ refused: 3, early: [-10], late: [30, -10] });
  });

  it('counts the tickets in a window for each account', () => {
    const events = [issued(0), issued(10, 'b'), issued(500), limited(600, 1), issued(1_000), issued(1_400, 'b')];
    expect([mostInWindow(events, 1_000), mostInWindow(events, 400)]).toEqual([2, 1]);
  });

  it.each([
    ['counts tickets and handshakes', [issued(0), opened(1), issued(2), rejected(3, 503)], 0, 0],
    ['reports a ticket that is used twice', [issued(0), opened(1), rejected(2, 401)], 1, 1],
    ['reports a handshake with the ticket of another account', [issued(0), issued(0, 'b'), opened(1), opened(2)], 0, 1],
  ])('%s', (_what, events, refused, withoutTicket) => {
    expect(ticketsOf(events)).toMatchObject({ handshakes: 2, refused, withoutTicket });
  });
});
