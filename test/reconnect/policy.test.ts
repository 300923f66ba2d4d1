import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { asapScheduler, VirtualTimeScheduler } from 'rxjs';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { Stage, Verdict } from '../../src/protocol/failures/failure-code.js';
import { copyFailure, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import {
  type BackoffPolicy,
  defaultBackoff,
  nextReconnect,
  type Reconnect,
  resolveBackoff,
  type Stop,
} from '../../src/reconnect/policy.js';
import { cases } from '../support/cases.js';

const MAX_TIMER_MS = 2_147_483_647;

interface Ended {
  readonly stage: Stage;
  readonly verdict: Verdict;
  readonly uptimeMs?: number;
  readonly retryAfterMs?: number | undefined;
}

let created = 0;
const failureOf = ({ stage, verdict, uptimeMs = 0, retryAfterMs }: Ended): TradeFeedError => {
  created += 1;
  return copyFailure(
    createTradeFeedError({ stage, code: 'invalid-options', uptimeMs, retryAfterMs, endedAt: created }),
    { verdict },
  );
};

// The failures of the rows below; a stable connection lived for 5 s.
const stable = (verdict: Verdict) => failureOf({ stage: 'stream', verdict, uptimeMs: 5_000 });
const dropped = (verdict: Verdict, uptimeMs = 4_999) => failureOf({ stage: 'stream', verdict, uptimeMs });
const refused = (verdict: Verdict, retryAfterMs?: number) => failureOf({ stage: 'ticket', verdict, retryAfterMs });
const turnedAway = (verdict: Verdict, retryAfterMs?: number) =>
  failureOf({ stage: 'handshake', verdict, retryAfterMs });

const fold = (policy: BackoffPolicy, failures: readonly unknown[]): (Reconnect | Stop)[] => {
  const decisions: (Reconnect | Stop)[] = [];
  let last: Reconnect | undefined;
  for (const failure of failures) {
    const next = nextReconnect(policy, last, failure);
    decisions.push(next);
    if ('stop' in next) break;
    last = next;
  }
  return decisions;
};

const reconnectsOf = (decisions: readonly (Reconnect | Stop)[]): Reconnect[] =>
  decisions.filter((decision): decision is Reconnect => 'delayMs' in decision);
const stopOf = (decisions: readonly (Reconnect | Stop)[]): unknown => {
  const last = decisions.at(-1);
  return last && 'stop' in last ? last.stop : undefined;
};

// 100, 200, 400, 800, 1000, 1000, …
const plain = resolveBackoff({ initialDelayMs: 100, maxDelayMs: 1_000, jitter: 'none' });

describe('nextReconnect', () => {
  const sequences: [string, readonly TradeFeedError[], readonly number[], readonly number[]][] = [
    [
      'waits longer with each failure, up to the longest wait',
      Array.from({ length: 6 }, () => refused('backoff')),
      [100, 200, 400, 800, 1_000, 1_000],
      [1, 2, 3, 4, 5, 6],
    ],
    [
      'waits longer when connections open and drop at once',
      Array.from({ length: 5 }, () => dropped('renew', 0)),
      [100, 200, 400, 800, 1_000],
      [1, 2, 3, 4, 5],
    ],
    [
      'renews at once after each stable connection',
      [stable('renew'), stable('renew'), stable('renew')],
      [0, 0, 0],
      [1, 1, 1],
    ],
    [
      'starts with the first wait again after a stable connection',
      [
        dropped('renew'),
        refused('backoff'),
        stable('backoff'),
        refused('backoff'),
        stable('renew'),
        refused('backoff'),
      ],
      [100, 200, 100, 200, 0, 200],
      [1, 2, 1, 2, 1, 2],
    ],
    [
      'does not renew at once twice without a stable connection in between',
      [stable('renew'), turnedAway('renew'), turnedAway('renew')],
      [0, 200, 400],
      [1, 2, 3],
    ],
    [
      'renews at once in the handshake if the previous connection was stable and there was a wait',
      [stable('backoff'), turnedAway('renew'), turnedAway('renew')],
      [100, 0, 400],
      [1, 2, 3],
    ],
    [
      'does not renew at once if the stable connection was two attempts ago',
      [stable('backoff'), refused('backoff'), turnedAway('renew')],
      [100, 200, 400],
      [1, 2, 3],
    ],
    [
      'does not renew at once if the connection after a stable one drops',
      [stable('backoff'), dropped('renew')],
      [100, 200],
      [1, 2],
    ],
    ['does not renew at once in the first handshake', [turnedAway('renew'), turnedAway('renew')], [100, 200], [1, 2]],
    ['does not renew at once before the connection was stable', [dropped('renew', 4_999)], [100], [1]],
    ['renews at once from the first ms in which the connection is stable', [dropped('renew', 5_000)], [0], [1]],
    [
      'does not count a long ticket request or handshake as a stable connection',
      [
        failureOf({ stage: 'ticket', verdict: 'renew', uptimeMs: 60_000 }),
        failureOf({ stage: 'handshake', verdict: 'renew', uptimeMs: 60_000 }),
      ],
      [100, 200],
      [1, 2],
    ],
    ['does not back off at once, even after a stable connection', [stable('backoff')], [100], [1]],
    [
      'waits exactly as long as the service requests',
      [refused('wait', 7_000), refused('wait', 1_000), refused('wait', 60_000)],
      [7_000, 1_000, 60_000],
      [1, 2, 3],
    ],
    [
      'backs off if the verdict is wait without a Retry-After',
      [refused('wait'), refused('wait', 0), refused('wait')],
      [100, 200, 400],
      [1, 2, 3],
    ],
    [
      'waits as long as the service requests, also if that is shorter than the wait of the policy',
      [refused('backoff'), refused('backoff'), refused('backoff'), refused('wait', 150)],
      [100, 200, 400, 150],
      [1, 2, 3, 4],
    ],
    ['counts a wait as an attempt', [refused('wait', 3_000), refused('backoff')], [3_000, 200], [1, 2]],
    [
      'uses Retry-After as the shortest wait for every status',
      [refused('backoff', 5_000), turnedAway('backoff', 150), turnedAway('renew', 9_000)],
      [5_000, 200, 9_000],
      [1, 2, 3],
    ],
    [
      'uses Retry-After as the shortest wait of a renewal that would be at once',
      [failureOf({ stage: 'stream', verdict: 'renew', uptimeMs: 9_000, retryAfterMs: 30 })],
      [30],
      [1],
    ],
    [
      'waits at most as long as a timer can',
      [refused('wait', 2 ** 31), refused('backoff', Infinity)],
      [MAX_TIMER_MS, MAX_TIMER_MS],
      [1, 2],
    ],
  ];

  it.each(sequences)('%s', (_rule, failures, delays, attempts) => {
    const reconnects = reconnectsOf(fold(plain, failures));
    expect(reconnects.map(({ delayMs }) => delayMs)).toEqual(delays);
    expect(reconnects.map(({ attempt }) => attempt)).toEqual(attempts);
  });

  it('reports whether the connection was stable', () => {
    const failures = [stable('renew'), dropped('renew'), turnedAway('renew')];
    expect(reconnectsOf(fold(plain, failures)).map(({ afterStable }) => afterStable)).toEqual([true, false, false]);
  });

  it('passes the first failure unchanged, and later ones with the previous failure', () => {
    const failures = [refused('backoff'), turnedAway('backoff'), dropped('backoff')] as const;
    const [one, two, three] = reconnectsOf(fold(plain, failures)).map(({ failure }) => failure);
    expect(one).toBe(failures[0]);
    expect(two?.toJSON()).toEqual({ ...failures[1].toJSON(), previous: failures[0] });
    expect(two?.previous?.toJSON()).toEqual(failures[0].toJSON());
    expect(three?.previous?.toJSON()).toEqual(failures[1].toJSON());
  });

  it('stops with a failure whose verdict is stop, and sets its previous failure', () => {
    const [before, last] = [stable('renew'), refused('stop')];
    const stop = stopOf(fold(plain, [before, last])) as TradeFeedError;
    expect(stop.toJSON()).toEqual({ ...last.toJSON(), previous: before });
    expect(stopOf(fold(plain, [last]))).toBe(last);
  });

  it('keeps the previous failure that a relay sent', () => {
    const first = stable('renew');
    const before = refused('backoff');
    const stop = copyFailure(refused('stop'), { previous: before });
    expect(stopOf(fold(plain, [first, stop]))).toMatchObject({ previous: { endedAt: before.endedAt } });
    const again = copyFailure(dropped('backoff'), { previous: before });
    expect(
      reconnectsOf(fold(plain, [first, again, dropped('backoff')])).map(({ failure }) => failure.previous?.endedAt),
    ).toEqual([undefined, before.endedAt, again.endedAt]);
  });

  it('stops with a failure whose verdict is stop, also if it has a Retry-After', () => {
    const failure = refused('stop', 5_000);
    expect(stopOf(fold(plain, [failure]))).toBe(failure);
  });

  it.each([[new Error('mine')], [new TypeError('mine')], ['text'], [undefined], [null], [0], [{ verdict: 'backoff' }]])(
    'stops with %p unchanged: it is not a failure of the feed',
    (error) => {
      expect(fold(plain, [error])).toEqual([{ stop: error }]);
      expect(stopOf(fold(plain, [refused('backoff'), error]))).toBe(error);
    },
  );

  describe('with maxAttempts', () => {
    const limited = (maxAttempts: number) => resolveBackoff({ ...plain, maxAttempts });

    it('3 allows one first attempt and three more', () => {
      const failures = Array.from({ length: 9 }, () => refused('backoff'));
      const decisions = fold(limited(3), failures);
      expect(reconnectsOf(decisions).map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
      expect(decisions).toHaveLength(4);
    });

    it('0 allows no reconnect, not even after a stable connection', () => {
      expect(reconnectsOf(fold(limited(0), [stable('renew')]))).toEqual([]);
    });

    it('starts to count again after a stable connection', () => {
      const failures = [
        refused('backoff'),
        refused('backoff'),
        stable('renew'),
        refused('backoff'),
        refused('backoff'),
      ];
      expect(reconnectsOf(fold(limited(2), failures)).map(({ attempt }) => attempt)).toEqual([1, 2, 1, 2]);
    });

    it('ends with retries-exhausted, whose cause is the last failure', () => {
      const before = refused('backoff');
      const last = failureOf({ stage: 'stream', verdict: 'renew', uptimeMs: 9 });
      const error = stopOf(fold(limited(1), [before, last])) as TradeFeedError;
      expect({ ...error }).toEqual({
        name: 'TradeFeedError',
        code: 'retries-exhausted',
        verdict: 'stop',
        stage: 'stream',
        advice: 'See the cause; set a larger `backoff.maxAttempts` to allow more reconnects.',
        uptimeMs: 9,
        framesReceived: 0,
        endedAt: last.endedAt,
        meaning: 'The feed gave up after `maxAttempts` reconnects without a stable connection.',
        previous: before,
      });
      // The cause is not public: in the public failure, the last failure is `previous`.
      expect(error.toPublic().previous?.toJSON()).toEqual(
        copyFailure(last, { previous: undefined }).toPublic().toJSON(),
      );
      expect(error.message).toContain('(maxAttempts is 1; the last failure was invalid-options).');
      expect((error.cause as TradeFeedError).toJSON()).toEqual({ ...last.toJSON(), previous: before });
    });

    it('has no previous failure after the first attempt', () => {
      const failure = refused('backoff');
      const error = stopOf(fold(limited(0), [failure])) as TradeFeedError;
      expect('previous' in error).toBe(false);
      expect(error.cause).toBe(failure);
    });
  });
});

describe('jitter', () => {
  const delayAt = (jitter: BackoffPolicy['jitter'], random: number, attempt: number, more = {}): number => {
    const policy = resolveBackoff({ initialDelayMs: 100, maxDelayMs: 1_000, jitter, random: () => random, ...more });
    return reconnectsOf(
      fold(
        policy,
        Array.from({ length: attempt }, () => refused('backoff')),
      ),
    ).at(-1)!.delayMs;
  };

  it.each([
    ['full', 0, 1, 1],
    ['full', 0.25, 1, 25],
    ['full', 0.25, 2, 50],
    ['full', 0.25, 9, 250],
    ['full', 0.9999, 9, 1_000],
    ['equal', 0, 1, 50],
    ['equal', 0.5, 1, 75],
    ['equal', 0, 9, 500],
    ['equal', 0.5, 9, 750],
    ['none', 0, 1, 100],
    ['none', 0.5, 9, 1_000],
  ] as const)('%s with a random %d makes attempt %d wait %d ms', (jitter, random, attempt, delayMs) => {
    expect(delayAt(jitter, random, attempt)).toBe(delayMs);
  });

  it('calls random again for each wait', () => {
    const drawn = [0.1, 0.9, 0.5];
    const policy = resolveBackoff({ initialDelayMs: 1_000, maxDelayMs: 1_000, random: () => drawn.shift() ?? 0 });
    const delays = reconnectsOf(
      fold(
        policy,
        [1, 2, 3].map(() => refused('backoff')),
      ),
    ).map(({ delayMs }) => delayMs);
    expect(delays).toEqual([100, 900, 500]);
  });

  it('does not call random if there is no jitter', () => {
    const random = () => {
      throw new Error('random was called');
    };
    const policy = resolveBackoff({ ...plain, jitter: 'full', random });
    expect(reconnectsOf(fold(policy, [stable('renew')]))).toHaveLength(1);
    expect(
      reconnectsOf(fold({ ...policy, jitter: 'none' }, [refused('backoff'), refused('wait', 5_000)])),
    ).toHaveLength(2);
  });

  it.each([
    ['full', [1, 200, 400]],
    ['equal', [200, 300, 400]],
  ] as const)('spreads clients with the same Retry-After over a first wait (%s)', (jitter, added) => {
    const delaysAt = (random: number) =>
      reconnectsOf(
        fold(resolveBackoff({ ...plain, jitter, initialDelayMs: 400, random: () => random }), [
          refused('wait', 5_000),
          refused('backoff', 5_000),
          failureOf({ stage: 'stream', verdict: 'renew', uptimeMs: 9_000, retryAfterMs: 5_000 }),
        ]),
      ).map(({ delayMs }) => delayMs);
    expect([0, 0.5, 0.999_999].map(delaysAt)).toEqual(added.map((more) => Array<number>(3).fill(5_000 + more)));
    // An invalid `random` does not make the wait shorter than the service requests.
    for (const wrong of [-9, NaN, -Infinity]) expect(delaysAt(wrong)).toEqual([5_001, 5_001, 5_001]);
  });

  it.each(['full', 'equal', 'none'] as const)('never returns a wait of 0 (%s)', (jitter) => {
    expect(delayAt(jitter, 0, 1, { initialDelayMs: 0 })).toBe(1);
    expect(delayAt(jitter, 0, 1, { initialDelayMs: 0, maxDelayMs: 0 })).toBe(1);
  });

  it('increases a first wait of 0', () => {
    expect([1, 2, 3, 4].map((attempt) => delayAt('none', 0, attempt, { initialDelayMs: 0 }))).toEqual([1, 2, 4, 8]);
  });

  it.each([NaN, -1, -Infinity])('waits at least 1 ms also if `random` returns %d, which is invalid', (random) => {
    expect(delayAt('full', random, 3)).toBe(1);
  });

  it('handles a factor or a wait beyond the largest number', () => {
    expect(delayAt('none', 0, 2, { factor: Infinity })).toBe(1_000);
    expect(delayAt('equal', 0.5, 3, { factor: 1e300 })).toBe(750);
  });

  it('returns a wait of at least 1 ms also if the longest wait is Infinity', () => {
    expect(delayAt('full', 0, 1, { initialDelayMs: Infinity, maxDelayMs: Infinity })).toBeGreaterThanOrEqual(1);
    expect(delayAt('full', 0, 2, { factor: Infinity, maxDelayMs: Infinity })).toBeGreaterThanOrEqual(1);
  });

  it('stays at the longest wait also if that is the longest timer', () => {
    const [early, late] = [0.25, 0.75].map((random) => delayAt('full', random, 99, { maxDelayMs: 1e12 }));
    expect(early).toBeLessThan(late!);
  });
});

describe('every policy, after any failures', () => {
  const draws = fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), {
    minLength: 1,
    maxLength: 20,
  });
  const policies = fc
    .record({
      initialDelayMs: fc.nat(5_000),
      more: fc.nat(100_000),
      factor: fc.oneof(fc.double({ min: 1, max: 10, noNaN: true }), fc.constantFrom(1, 2, 1e300, Infinity)),
      jitter: fc.constantFrom<BackoffPolicy['jitter']>('full', 'equal', 'none'),
      stableAfterMs: fc.nat(20_000),
      draws,
    })
    .map(({ more, draws: drawn, ...rest }) => {
      let next = 0;
      const random = () => drawn[next++ % drawn.length]!;
      return resolveBackoff({ ...rest, maxDelayMs: rest.initialDelayMs + more, random });
    });

  const retryAfterMs = fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 2, arbitrary: fc.nat(200).map((s) => s * 1_000) },
    { weight: 1, arbitrary: fc.constantFrom(2 ** 31 - 1, 2 ** 31, Number.MAX_SAFE_INTEGER, Infinity) },
  );
  const goingOn = fc.constantFrom<Verdict>('renew', 'wait', 'backoff');
  const ended = fc.oneof(
    fc.record({ stage: fc.constantFrom<Stage>('ticket', 'handshake'), verdict: goingOn, retryAfterMs }),
    fc.record({ stage: fc.constant<Stage>('stream'), verdict: goingOn, uptimeMs: fc.nat(40_000) }),
  );
  const failures = fc.array(ended.map(failureOf), { minLength: 1, maxLength: 15 });

  const holds = (check: (policy: BackoffPolicy, reconnects: readonly Reconnect[], ended: TradeFeedError[]) => void) => {
    fc.assert(
      fc.property(policies, failures, (policy, ended) => {
        const reconnects = reconnectsOf(fold(policy, ended));
        expect(reconnects).toHaveLength(ended.length);
        check(policy, reconnects, ended);
      }),
      { numRuns: cases(60) },
    );
  };
  const isStable = ({ stableAfterMs }: BackoffPolicy, { stage, uptimeMs }: TradeFeedError) =>
    stage === 'stream' && uptimeMs >= stableAfterMs;

  it('waits within its bounds, at least as long as the service requests, and at most as long as a timer can', () => {
    holds((policy, reconnects) => {
      for (const { delayMs, failure } of reconnects) {
        const floorMs = Math.min(failure.retryAfterMs ?? 0, MAX_TIMER_MS);
        expect(Number.isInteger(delayMs)).toBe(true);
        expect(delayMs).toBeGreaterThanOrEqual(floorMs);
        const spreadMs = floorMs > 0 && policy.jitter !== 'none' ? Math.max(1, policy.initialDelayMs) : 0;
        expect(delayMs).toBeLessThanOrEqual(Math.max(1, policy.maxDelayMs, floorMs + spreadMs));
        expect(delayMs).toBeLessThanOrEqual(MAX_TIMER_MS);
        if (failure.verdict === 'wait' && floorMs > 0) expect(delayMs).toBeLessThanOrEqual(floorMs + spreadMs);
      }
    });
  });

  it('waits 0 only to renew, and only once per stable connection', () => {
    holds((policy, reconnects) => {
      reconnects.forEach(({ delayMs, failure, afterStable }, i) => {
        expect(afterStable).toBe(isStable(policy, failure));
        if (delayMs > 0) return;
        const before = reconnects[i - 1];
        expect(failure.verdict).toBe('renew');
        expect(afterStable || (before?.afterStable === true && before.delayMs > 0)).toBe(true);
      });
    });
  });

  it('never waits 0 twice in a row without a stable connection in between', () => {
    holds((policy, reconnects) => {
      let zeroSinceStable = false;
      for (const { delayMs, failure } of reconnects) {
        if (isStable(policy, failure)) zeroSinceStable = false;
        expect(delayMs === 0 && zeroSinceStable).toBe(false);
        zeroSinceStable ||= delayMs === 0;
      }
    });
  });

  it('counts the attempts since the last stable connection', () => {
    holds((policy, reconnects, ended) => {
      let attempt = 0;
      ended.forEach((failure, i) => {
        attempt = isStable(policy, failure) ? 1 : attempt + 1;
        expect(reconnects[i]?.attempt).toBe(attempt);
      });
    });
  });

  it('links each failure to the previous one', () => {
    holds((_policy, reconnects, ended) => {
      reconnects.forEach(({ failure }, i) => {
        expect(failure.endedAt).toBe(ended[i]?.endedAt);
        expect(failure.previous?.endedAt).toBe(ended[i - 1]?.endedAt);
        expect(failure.previous?.previous).toBeUndefined();
      });
    });
  });

  it('draws the jitter from its whole range, also at the longest wait', () => {
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: 30 }), (policy, attempts) => {
        const drawn: number[] = [];
        const random = () => {
          drawn.push(policy.random());
          return drawn.at(-1)!;
        };
        const reconnects = reconnectsOf(
          fold(
            { ...policy, random },
            Array.from({ length: attempts }, () => refused('backoff')),
          ),
        );
        const longestMs = Math.min(
          policy.maxDelayMs,
          Math.max(1, policy.initialDelayMs) * policy.factor ** (attempts - 1),
        );
        const r = drawn.at(-1) ?? 0;
        const share = { full: r, equal: 0.5 + r / 2, none: 1 }[policy.jitter];
        expect(Math.abs(reconnects.at(-1)!.delayMs - Math.max(1, share * longestMs))).toBeLessThanOrEqual(0.501);
        expect(drawn).toHaveLength(policy.jitter === 'none' ? 0 : attempts);
      }),
      { numRuns: cases(100) },
    );
  });

  it('increases the longest wait when connections open and drop at once', () => {
    fc.assert(
      fc.property(policies, fc.integer({ min: 2, max: 30 }), (policy, attempts) => {
        const steady = { ...policy, jitter: 'none', stableAfterMs: 1 } as const;
        const drops = Array.from({ length: attempts }, () => dropped('renew', 0));
        const delays = reconnectsOf(fold(steady, drops)).map(({ delayMs }) => delayMs);
        delays.slice(1).forEach((delayMs, i) => {
          expect(delayMs).toBeGreaterThanOrEqual(delays[i]!);
          if (steady.factor >= 2 && delays[i]! < Math.floor(steady.maxDelayMs))
            expect(delayMs).toBeGreaterThan(delays[i]!);
        });
      }),
      { numRuns: cases(100) },
    );
  });

  it('stops after exactly maxAttempts', () => {
    fc.assert(
      fc.property(policies, failures, fc.nat(6), (policy, ended, maxAttempts) => {
        const decisions = fold({ ...policy, maxAttempts }, ended);
        const attempts = reconnectsOf(fold(policy, ended)).map(({ attempt }) => attempt);
        const tooMany = attempts.findIndex((attempt) => attempt > maxAttempts);
        expect(reconnectsOf(decisions)).toHaveLength(tooMany === -1 ? ended.length : tooMany);
        expect((stopOf(decisions) as TradeFeedError | undefined)?.code).toBe(
          tooMany === -1 ? undefined : 'retries-exhausted',
        );
      }),
      { numRuns: cases(100) },
    );
  });

  it('changes neither the failures nor the previous decision', () => {
    holds((policy, reconnects, ended) => {
      ended.forEach((failure) => {
        expect('previous' in failure).toBe(false);
      });
      const [last, failure] = [Object.freeze({ ...reconnects[0]! }), Object.freeze(ended.at(-1)!)];
      expect(nextReconnect(Object.freeze({ ...policy }), last, failure)).toHaveProperty('delayMs');
    });
  });
});

describe('resolveBackoff', () => {
  it('adds the documented defaults', () => {
    expect(resolveBackoff()).toEqual({
      initialDelayMs: 500,
      maxDelayMs: 30_000,
      factor: 2,
      jitter: 'full',
      stableAfterMs: 5_000,
      maxAttempts: Infinity,
      random: Math.random,
      scheduler: asapScheduler,
    });
    expect(Object.isFrozen(defaultBackoff)).toBe(true);
  });

  it('uses the values that are set and ignores undefined ones', () => {
    const scheduler = new VirtualTimeScheduler();
    const policy = resolveBackoff({ factor: 3, scheduler, jitter: undefined });
    expect(policy).toEqual({ ...defaultBackoff, factor: 3, scheduler });
    expect(policy.scheduler).toBe(scheduler);
  });

  it('accepts its own result', () => {
    expect(resolveBackoff(resolveBackoff({ factor: 3 }))).toEqual(resolveBackoff({ factor: 3 }));
  });

  it.each([
    [{ factor: 0.5 }, '`backoff.factor` must be a number, 1 or more, got 0.5'],
    [{ factor: '2' }, '`backoff.factor` must be a number, 1 or more)'],
    [{ maxAttempts: -1 }, '`backoff.maxAttempts` must be a whole number, 0 or more, or Infinity, got -1'],
    [{ maxAttempts: 1.5 }, '`backoff.maxAttempts` must be a whole number, 0 or more, or Infinity, got 1.5'],
    [{ maxAttempts: -Infinity }, '`backoff.maxAttempts` must be a whole number, 0 or more, or Infinity, got -Infinity'],
    [{ maxAttempts: '3' }, '`backoff.maxAttempts` must be a whole number, 0 or more, or Infinity)'],
    [{ initialDelayMs: 31_000 }, '`backoff.initialDelayMs` must be at most maxDelayMs (30000), got 31000'],
    [{ retries: 3 }, '`backoff.retries` must be left out'],
  ] as [object, string][])('refuses %j', (options, message) => {
    expect(() => resolveBackoff(options)).toThrow(message);
    expect(() => resolveBackoff(options)).toThrow(TradeFeedError);
  });
});

it('accepts a longest wait that is shorter than the default of the first one, and its own result', () => {
  const policy = resolveBackoff({ maxDelayMs: 300 });
  expect(policy).toMatchObject({ initialDelayMs: 300, maxDelayMs: 300 });
  expect(resolveBackoff(policy)).toEqual(policy);
});
