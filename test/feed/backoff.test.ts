import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { catchError, defer, type Observable, retry, retryWhen, Subject, throwError, VirtualTimeScheduler } from 'rxjs';
import {
  backoff,
  type BackoffPolicy,
  nextReconnect,
  type Reconnect,
  resolveBackoff,
  retryDelay,
} from '../../src/feed/backoff.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { Stage, Verdict } from '../../src/protocol/failures/meanings.js';
import { copyFailure, type FailureFacts, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { marbles } from '../operators/stream.js';
import { cases } from '../support/cases.js';

describe('backoff', () => {
  type Policy = Partial<BackoffPolicy>;
  type Frames$ = Observable<string>;

  // Both operators that apply the policy, each with new state per subscription.
  const ways: readonly [string, (policy: Policy) => (source$: Frames$) => Frames$][] = [
    ['retryWhen(backoff(policy))', (policy) => retryWhen(backoff(policy))],
    [
      'retry({ delay: retryDelay(policy) })',
      (policy) => (source$) => defer(() => source$.pipe(retry({ delay: retryDelay(policy) }))),
    ],
  ];

  const failureOf = (facts: FailureFacts) => createTradeFeedError({ endedAt: 1_000, ...facts });

  const dropped = failureOf({ stage: 'stream', closeCode: 1006 });
  const exhausted = failureOf({
    stage: 'stream',
    code: 'retries-exhausted',
    cause: copyFailure(dropped, { previous: dropped }),
    detail: 'maxAttempts is 2; the last failure was connection-lost',
  });

  // jest compares only the message of an error.
  const fieldsOf = (error: TradeFeedError): unknown => JSON.parse(JSON.stringify([error, error.cause]));

  // Virtual time has no end, so without a bound a feed that fails to end would run forever.
  const soon = '500ms !';

  it.each(ways)('stops after maxAttempts reconnects in a row: %s', (_how, reconnect) => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const policy = { initialDelayMs: 10, maxDelayMs: 40, jitter: 'none', maxAttempts: 2, scheduler } as const;
      const source$ = cold('-#', undefined, dropped);
      const ended$ = source$.pipe(
        reconnect(policy),
        catchError((error: TradeFeedError) => [fieldsOf(error)]),
      );
      const stop = fieldsOf(copyFailure(exhausted, { previous: dropped }));
      expectObservable(ended$, soon).toBe('- 10ms - 20ms -(s|)', { s: stop });
      expectSubscriptions(source$.subscriptions).toBe(['^!', '- 10ms ^!', '- 10ms - 20ms ^!']);
    });
  });

  it('throws at once if the policy is invalid', () => {
    expect(() => backoff({ factor: 0 })).toThrow(TradeFeedError);
    expect(() => retryDelay({ factor: 0 })).toThrow('`backoff.factor` must be a number, 1 or more, got 0');
  });

  describe('with wakes$', () => {
    const busy = failureOf({ stage: 'handshake', status: 503, retryAfterMs: 25 });

    it.each([
      ['during the floor, ends the wait with the floor', 10, 25],
      ['after the floor, ends the wait at once', 31, 31],
      ['never, does not change the wait', 1_000, 160],
    ])('a wake-up %s', (_when, at, waited) => {
      marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
        const policy = { initialDelayMs: 160, maxDelayMs: 160, jitter: 'none', scheduler } as const;
        const source = cold('#', undefined, busy);
        const feed$ = source.pipe(retryWhen(backoff(policy, undefined, hot(`${at}ms w`))));
        expectObservable(feed$, `${waited + 1}ms !`).toBe('');
        expectSubscriptions(source.subscriptions).toBe(['(^!)', `${waited}ms (^!)`]);
      });
    });

    it('leaves nothing scheduled or subscribed if the consumer unsubscribes between a wake-up and the floor', () => {
      const scheduler = new VirtualTimeScheduler();
      const wakes = new Subject<void>();
      const feed$ = throwError(() => busy).pipe(retryWhen(backoff({ scheduler }, undefined, wakes)));
      const subscription = feed$.subscribe();
      wakes.next();
      expect(scheduler.actions).toHaveLength(2);
      subscription.unsubscribe();
      expect([scheduler.actions, wakes.observed]).toEqual([[], false]);
    });
  });
});

describe('policy', () => {
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
    const facts = { stage, code: 'invalid-options', uptimeMs, retryAfterMs, endedAt: created } as const;
    return copyFailure(createTradeFeedError(facts), { verdict });
  };

  /** Parses the failures of a row: a stage and its verdict, `+` and an uptime, `@` and a `Retry-After`. */
  const failuresIn = (row: string): TradeFeedError[] =>
    row.split(' ').map((text) => {
      const [, stage, verdict, up, after] = /^(\w+):(\w+)(?:\+(\d+))?(?:@(\w+))?$/.exec(text)!;
      const retryAfterMs = after === undefined ? undefined : Number(after);
      return failureOf({ stage: stage as Stage, verdict: verdict as Verdict, uptimeMs: Number(up ?? 0), retryAfterMs });
    });
  const refused = (verdict: Verdict, retryAfterMs?: number) => failureOf({ stage: 'ticket', verdict, retryAfterMs });

  const fold = (policy: BackoffPolicy, failures: readonly unknown[]): Reconnect[] => {
    let last: Reconnect | undefined;
    return failures.map((failure) => (last = nextReconnect(policy, last, failure)));
  };
  const delaysOf = (policy: BackoffPolicy, failures: readonly TradeFeedError[]): readonly number[] =>
    fold(policy, failures).map(({ delayMs }) => delayMs);
  /** Returns what the last of these failures makes the policy throw, in a list. */
  const stopOf = (...failures: readonly unknown[]): unknown[] => {
    const reconnects = fold(plain, failures.slice(0, -1));
    try {
      return [nextReconnect(plain, reconnects.at(-1), failures.at(-1)), 'not thrown'];
    } catch (error) {
      return [error];
    }
  };

  // 100, 200, 400, 800, 1000, 1000, …
  const plain = resolveBackoff({ initialDelayMs: 100, maxDelayMs: 1_000, jitter: 'none' });

  describe('nextReconnect', () => {
    // A connection is stable after 5 s.
    it.each([
      ['waits longer with each failure, up to the longest wait', 'stream:renew '.repeat(5), [100, 200, 400, 800, 1e3]],
      ['does not renew at once before the connection was stable', 'stream:renew+4999', [100]],
      [
        'starts with the first wait again after a stable connection',
        'stream:renew ticket:backoff stream:backoff+5000 ticket:backoff stream:renew+5000 ticket:backoff',
        [100, 200, 100, 200, 0, 200],
      ],
      ['renews at once only once', 'stream:renew+5000 handshake:renew handshake:renew', [0, 200, 400]],
      ['renews in the handshake after a wait', 'stream:backoff+5000 handshake:renew handshake:renew', [100, 0, 400]],
      ['does not renew if the next connection drops', 'stream:backoff+5000 stream:renew', [100, 200]],
      ['does not renew at once in the first handshake', 'handshake:renew handshake:renew', [100, 200]],
      ['counts no long request or handshake as stable', 'ticket:renew+60000 handshake:renew+60000', [100, 200]],
      ['waits as long as requested', 'ticket:wait@7000 ticket:wait@1000 ticket:wait@60000', [7_000, 1_000, 60_000]],
      ['backs off if no wait is requested', 'ticket:wait ticket:wait@0 ticket:wait', [100, 200, 400]],
      ['waits shorter than its policy if requested', 'ticket:backoff ticket:backoff ticket:wait@150', [100, 200, 150]],
      [
        'uses Retry-After as the shortest wait for every status',
        'ticket:backoff@5000 handshake:backoff@150 handshake:renew@9000',
        [5_000, 200, 9_000],
      ],
    ])('%s', (_rule, failures, delays) => {
      expect(delaysOf(plain, failuresIn(failures.trim()))).toEqual(delays);
    });

    it('keeps the previous failure that a relay sent', () => {
      const [first, before] = failuresIn('stream:renew+5000 ticket:backoff');
      const sent = copyFailure(refused('stop'), { previous: before });
      expect(stopOf(first, sent)).toMatchObject([{ previous: { endedAt: before!.endedAt } }]);
    });

    it.each([new Error('mine'), undefined, { verdict: 'backoff' }])(
      'stops with %p unchanged, because it is not a failure of the feed',
      (error) => {
        expect(stopOf(error)).toEqual([error]);
        expect(stopOf(refused('backoff'), error)[0]).toBe(error);
      },
    );
  });

  describe('jitter', () => {
    it.each([
      ['full', [1, 200, 400]],
      ['equal', [200, 300, 400]],
    ] as const)('spreads clients with the same Retry-After over a first wait (%s)', (jitter, added) => {
      const delaysAt = (random: number) =>
        delaysOf(
          resolveBackoff({ ...plain, jitter, initialDelayMs: 400, random: () => random }),
          failuresIn('ticket:wait@5000 ticket:backoff@5000 stream:renew+9000@5000'),
        );
      expect([0, 0.5, 0.999_999].map(delaysAt)).toEqual(added.map((more) => Array<number>(3).fill(5_000 + more)));
      // An invalid `random` doesn't make the delay shorter than the service asks for.
      for (const wrong of [-9, NaN, -Infinity]) expect(delaysAt(wrong)).toEqual([5_001, 5_001, 5_001]);
    });

    it('must be drawn by a function that returns numbers', () => {
      const random = () => 'half' as unknown as number;
      const attempt = () => delaysOf(resolveBackoff({ random }), failuresIn('ticket:backoff'));
      expect(attempt).toThrow(expect.objectContaining({ code: 'invalid-options' }));
    });
  });

  describe('every policy, after any failures', () => {
    const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const policies = fc
      .record({
        initialDelayMs: fc.nat(5_000),
        more: fc.nat(100_000),
        factor: fc.oneof(fc.double({ min: 1, max: 10, noNaN: true }), fc.constantFrom(1, 2, 1e300, Infinity)),
        jitter: fc.constantFrom<BackoffPolicy['jitter']>('full', 'equal', 'none'),
        stableAfterMs: fc.nat(20_000),
        draws: fc.array(share, { minLength: 1, maxLength: 20 }),
      })
      .map(({ more, draws, ...rest }) => {
        let next = 0;
        const random = () => draws[next++ % draws.length]!;
        return resolveBackoff({ ...rest, maxDelayMs: rest.initialDelayMs + more, random });
      });

    const retryAfterMs = fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      { weight: 2, arbitrary: fc.nat(200).map((s) => s * 1_000) },
      { weight: 1, arbitrary: fc.constantFrom(2 ** 31 - 1, 2 ** 31, Number.MAX_SAFE_INTEGER, Infinity) },
    );
    const verdict = fc.constantFrom<Verdict>('renew', 'wait', 'backoff');
    const ended = fc.oneof(
      fc.record({ stage: fc.constantFrom<Stage>('ticket', 'handshake'), verdict, retryAfterMs }),
      fc.record({ stage: fc.constant<Stage>('stream'), verdict, uptimeMs: fc.nat(40_000) }),
    );
    const failures = fc.array(ended.map(failureOf), { minLength: 1, maxLength: 15 });
    const numRuns = cases(100);

    const isStable = ({ stableAfterMs }: BackoffPolicy, { stage, uptimeMs }: TradeFeedError) =>
      stage === 'stream' && uptimeMs >= stableAfterMs;

    it('waits within its bounds, and 0 only to renew, once per stable connection', () => {
      const check = (policy: BackoffPolicy, { delayMs, failure, afterStable }: Reconnect, before?: Reconnect): void => {
        const floorMs = Math.min(failure.retryAfterMs ?? 0, MAX_TIMER_MS);
        const spreadMs = floorMs > 0 && policy.jitter !== 'none' ? Math.max(1, policy.initialDelayMs) : 0;
        expect(Number.isInteger(delayMs)).toBe(true);
        expect(delayMs).toBeGreaterThanOrEqual(floorMs);
        expect(delayMs).toBeLessThanOrEqual(Math.max(1, policy.maxDelayMs, floorMs + spreadMs));
        expect(delayMs).toBeLessThanOrEqual(MAX_TIMER_MS);
        if (failure.verdict === 'wait' && floorMs > 0) expect(delayMs).toBeLessThanOrEqual(floorMs + spreadMs);
        expect(afterStable).toBe(isStable(policy, failure));
        if (delayMs > 0) return;
        expect(failure.verdict).toBe('renew');
        expect(afterStable || (before?.afterStable === true && before.delayMs > 0)).toBe(true);
      };
      fc.assert(
        fc.property(policies, failures, (policy, ended) => {
          const reconnects = fold(policy, ended);
          reconnects.forEach((each, i) => check(policy, each, reconnects[i - 1]));
        }),
        { numRuns },
      );
    });

    it('counts attempts since the last stable connection, and links the failures without changing them', () => {
      fc.assert(
        fc.property(policies, failures, (policy, ended) => {
          let attempt = 0;
          fold(Object.freeze(policy), ended.map(Object.freeze)).forEach((next, i) => {
            attempt = isStable(policy, ended[i]!) ? 1 : attempt + 1;
            const { failure, ...reconnect } = Object.freeze(next);
            expect(reconnect.attempt).toBe(attempt);
            expect(failure.endedAt).toBe(ended[i]?.endedAt);
            expect(failure.previous?.endedAt).toBe(ended[i - 1]?.endedAt);
            expect(failure.previous?.previous).toBeUndefined();
          });
        }),
        { numRuns },
      );
    });
  });
});
