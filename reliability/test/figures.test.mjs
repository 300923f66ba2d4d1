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
const accountOf = (...events) => {
  const account = new FrameAccount(1);
  for (const event of events)
    account.event(
      typeof event === 'string'
        ? { type: event }
        : { type: 'frame', data: Buffer.from(`{"batch":${event},"trades":[]}`) },
    );
  return account;
};
const rulesOf = (account) => account.violations.map(({ rule, number }) => `${number} ${rule}`);

describe('the account of the frames', () => {
  it('is balanced if all frames arrived', () => {
    expect(accountOf(1, 2, 3).isBalanced(3)).toBe(true);
  });

  it('is balanced if a gap reported the missing frames', () => {
    const account = accountOf(1, 2, 'disconnected', 'opened', 'gap', 12, 13);
    expect([account.received, account.missedInGaps, account.isBalanced(13)]).toEqual([4, 9, true]);
  });

  it('begins with the first frame of a subscription that came later', () => {
    const account = new FrameAccount();
    account.event({ type: 'gap' });
    for (const number of [7, 8]) account.event({ type: 'frame', data: Buffer.from(`{"batch":${number},"trades":[]}`) });
    expect([account.missedInGaps, account.violationCount, account.isBalanced(8)]).toEqual([0, 0, true]);
  });

  it.each([
    ['a frame that is missing at the beginning', [2, 3], ['2 missing without a gap']],
    ['a frame that is missing later than directly after the gap', [1, 'gap', 2, 4], ['4 missing without a gap']],
    ['a frame that arrived twice', [1, 2, 2], ['2 twice']],
    ['a frame that arrived again after a gap', [1, 2, 3, 'gap', 2], ['2 out of order']],
    ['a frame that arrived out of order', [1, 3, 2], ['3 missing without a gap', '2 out of order']],
  ])('detects %s', (_what, events, rules) => {
    const account = accountOf(...events);
    expect(rulesOf(account)).toEqual(rules);
    expect(account.isBalanced(4)).toBe(false);
  });

  it('is not balanced if a frame is missing at the end', () => {
    const account = accountOf(1, 2);
    expect([account.violationCount, account.isBalanced(3)]).toEqual([0, false]);
  });
});

// The same noise for the same sample in each run.
const noise = (n) => ((n * 7919) % 100) / 100 - 0.5;
const run = (seconds, of = () => ({})) =>
  Array.from({ length: seconds }, (_, n) => ({ atS: n, isStable: true, heap: 18, handles: 16, ...of(n) }));
const verdictOf = (samples, name = 'heap') => growthOf(samples, name)?.verdict;

describe('a resource', () => {
  it('grows if each sample adds a little, even if the last sample is not the largest', () => {
    const leaking = run(120, (n) => ({ heap: 18 + n * 0.1 + 4 * noise(n) }));
    expect(verdictOf(leaking)).toBe('grows');
    expect(growthOf(leaking, 'heap')?.slope).toBeCloseTo(360, -2);
  });

  it('is flat if it grows only in the warm-up', () => {
    expect(verdictOf(run(120, (n) => ({ heap: n < 30 ? n : 30 })))).toBe('flat');
  });

  it('is not measured while a connection is down', () => {
    const samples = run(120, (n) => (n % 5 === 0 ? { isStable: false, handles: 16 + n } : {}));
    expect(growthOf(samples, 'handles')).toMatchObject({ verdict: 'flat', samples: 72 });
  });

  it('has a lower limit for an hour in a long run than in a short run', () => {
    const slowly = (seconds) => run(seconds, (n) => ({ heap: 18 + n * 0.005 + noise(n) / 4 }));
    expect([verdictOf(slowly(120)), verdictOf(slowly(3_600))]).toEqual(['flat', 'grows']);
  });

  it('is not called flat if its samples are too noisy or too few', () => {
    expect(verdictOf(run(60, (n) => ({ heap: 18 + 40 * noise(n) })))).toBe('too noisy');
    expect(verdictOf(run(8))).toBe('too few');
  });
});

const line = (count, slope, noise, seed = 1) => {
  const random = seeded(seed);
  return Array.from({ length: count }, (_, x) => [x, 20 + slope * x + noise * (random() - 0.5)]);
};

describe('the slope', () => {
  it('is exact for points on a line', () => {
    expect(slopeOf(line(50, 0.25, 0))).toEqual({ slope: 0.25, low: 0.25, high: 0.25 });
  });

  it('has bounds that contain the true slope, and that exclude 0 if there is a slope', () => {
    const property = fc.property(fc.integer({ min: 1, max: 1e6 }), fc.constantFrom(-1, 0, 1), (seed, slope) => {
      const { low, high } = slopeOf(line(60, slope, 20, seed));
      // Three times the bounds: for one line in 100 the true slope is outside of them.
      const wide = high - low;
      expect(low - wide).toBeLessThanOrEqual(slope);
      expect(high + wide).toBeGreaterThanOrEqual(slope);
      if (slope !== 0) expect(Math.sign(low)).toBe(Math.sign(high));
    });
    fc.assert(property, { numRuns: cases(200) });
  });

  it.each([0, 7])('has infinite bounds for %d points', (count) => {
    expect(slopeOf(line(count, 1, 0))).toEqual({ slope: NaN, low: -Infinity, high: Infinity });
  });
});

const shipped = resolveBackoff();
const failure = createTradeFeedError({ stage: 'ticket', code: 'ticket-endpoint-unreachable', endedAt: 0 });

/** Returns clients that lost their connections within 20 ms and failed three times each. */
const stormOf = (jitter, count = 300) => ({
  clients: Array.from({ length: count }, (_, n) => {
    const policy = { ...shipped, jitter, random: seeded(n + 1) };
    const waits = [];
    let last;
    let at = n % 20;
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const next = nextReconnect(policy, last, failure);
      if ('stop' in next) throw new Error('It stops.');
      waits.push({ at, delayMs: next.delayMs, attempt: next.attempt, verdict: 'backoff', floorMs: 0 });
      at += next.delayMs;
      last = next;
    }
    return { waits };
  }),
});
const brokenOf = (jitter) =>
  spreadRules(attemptsOf(stormOf(jitter), shipped, 1), 50).map(({ met }) => (met ? 'met' : 'broken'));

describe('the rules of the spread', () => {
  it('hold for the default policy', () => {
    expect(brokenOf('full')).toEqual(['met', 'met', 'met']);
  });

  it('are all broken without jitter', () => {
    expect(brokenOf('none')).toEqual(['broken', 'broken', 'broken']);
  });
});

describe('the rule for clients with a Retry-After', () => {
  const limited = createTradeFeedError({ stage: 'ticket', status: 429, retryAfterMs: 5_000, endedAt: 0 });
  const holdsFor = (jitter, count = 300) => {
    const clients = Array.from({ length: count }, (_, n) => {
      const next = nextReconnect({ ...shipped, jitter, random: seeded(n + 1) }, undefined, limited);
      if ('stop' in next) throw new Error('It stops.');
      return { waits: [{ at: 0, delayMs: next.delayMs, attempt: 1, verdict: 'wait', floorMs: 5_000 }] };
    });
    return floorRule(clients, shipped).met;
  };

  it('holds for the default policy, and is broken if all clients return at once', () => {
    expect([holdsFor('full'), holdsFor('none'), holdsFor('full', 0)]).toEqual([true, false, false]);
  });
});

const issued = (at, account = 'a') => ['ticket-issued', at, account, 0, '', 0];
const limited = (at, seconds, account = 'a') => ['ticket-refused', at, account, 429, 'x', seconds];
const open = (at, account = 'a') => ['handshake-accepted', at, account, 0, '', 0];
const rejected = (at, status, account = 'a') => ['handshake-refused', at, account, status, 'x', 0];

describe('a client that was refused with 429', () => {
  it('is early if it returns before Retry-After is over, and late otherwise', () => {
    const events = [limited(100, 2), limited(50, 1, 'b'), issued(1_040, 'b'), issued(2_130)];
    expect(waitsOf(events)).toEqual({ refused: 2, early: [-10], late: [30, -10] });
  });

  it('is not counted as early or late if it does not return', () => {
    expect(waitsOf([limited(0, 2)])).toEqual({ refused: 1, early: [], late: [] });
  });
});

describe('a window', () => {
  it('counts the tickets of each account separately', () => {
    const events = [issued(0), issued(10, 'b'), issued(500), limited(600, 1), issued(1_000), issued(1_400, 'b')];
    expect(mostInWindow(events, 1_000)).toBe(2);
    expect(mostInWindow(events, 400)).toBe(1);
  });
});

describe('tickets', () => {
  it('are counted together with their handshakes', () => {
    expect(ticketsOf([issued(0), open(1), issued(2), rejected(3, 503)])).toEqual({
      issued: 2,
      handshakes: 2,
      refused: 0,
      withoutTicket: 0,
      violations: 0,
    });
  });

  it('are reported if one is used twice', () => {
    expect(ticketsOf([issued(0), open(1), rejected(2, 401)])).toMatchObject({ refused: 1, withoutTicket: 1 });
    // The ticket of another account doesn't count.
    expect(ticketsOf([issued(0), issued(0, 'b'), open(1), open(2)])).toMatchObject({ withoutTicket: 1 });
  });
});

const drawn = (count, seed) => {
  const random = seeded(seed);
  return Array.from({ length: count }, () => random() * 1_000);
};

describe('the largest wave', () => {
  it('is found at any position', () => {
    expect(largestWithin([0, 45, 49, 51, 95, 99, 300], 50)).toBe(4);
    expect(largestWithin([7, 7, 7], 0)).toBe(3);
    expect(largestWithin([], 50)).toBe(0);
  });
});

describe('the distance', () => {
  it('is 0 for equal samples, 1 for separate samples, and symmetric', () => {
    expect(distance([1, 2, 3], [3, 2, 1])).toBe(0);
    expect(distance([1, 2], [3, 4])).toBe(1);
    expect(distance([1, 2, 3, 4], [3, 4])).toBe(0.5);
    expect(distance([3, 4], [1, 2, 3, 4])).toBe(0.5);
  });

  it('is within the limit for samples of the same distribution, and above it for others', () => {
    const expected = drawn(5_000, 99);
    for (let seed = 1; seed <= 20; seed += 1) {
      const limit = distanceByChance(200);
      expect(distance(drawn(200, seed), expected)).toBeLessThan(limit);
      // All at one time.
      expect(distance(Array(200).fill(seed * 50), expected)).toBeGreaterThan(limit);
    }
  });
});
