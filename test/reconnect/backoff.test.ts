import { describe, expect, it, jest } from '@jest/globals';
import {
  defer,
  EMPTY,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  retry,
  retryWhen,
  Subject,
  throwError,
  VirtualTimeScheduler,
} from 'rxjs';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { copyFailure, type FailureFacts, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import type { BackoffPolicy, Reconnect } from '../../src/reconnect/policy.js';
import { backoff, retryDelay } from '../../src/reconnect/backoff.js';

type Policy = Partial<BackoffPolicy>;

// Both operators that apply the policy. Each creates its state at subscription.
const ways: readonly [string, (policy: Policy) => MonoTypeOperatorFunction<string>][] = [
  ['retryWhen(backoff(policy))', (policy) => retryWhen(backoff(policy))],
  [
    'retry({ delay: retryDelay(policy) })',
    (policy) => (source$) => defer(() => source$.pipe(retry({ delay: retryDelay(policy) }))),
  ],
];

const failureOf = (facts: FailureFacts) => createTradeFeedError({ endedAt: 1_000, ...facts });
const uptimeMs = 60_000;

// How an attempt ends: `x` opened and was dropped at once; capital letters are stable connections.
const x = failureOf({ stage: 'stream', closeCode: 1006 });
const R = failureOf({ stage: 'stream', closeCode: 1006, uptimeMs });
const B = failureOf({ stage: 'stream', closeCode: 1001, uptimeMs });
const handshake401 = failureOf({ stage: 'handshake', status: 401 });
const limited = failureOf({ stage: 'ticket', status: 429, retryAfterMs: 25 });
const busy = failureOf({ stage: 'handshake', status: 503, retryAfterMs: 25 });
const replaced = failureOf({ stage: 'stream', closeCode: 4001, uptimeMs });

// Compares errors with all their fields; jest compares only the message.
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, part: unknown) =>
      part instanceof TradeFeedError
        ? { ...part.toJSON(), cause: part.cause }
        : part instanceof Error
          ? String(part)
          : part,
    ),
  );

const marbles = (test: (helpers: RunHelpers, policy: Policy) => void): void => {
  const scheduler = new TestScheduler((actual, expected) => {
    expect(plain(actual)).toEqual(plain(expected));
  });
  scheduler.run((helpers) => {
    test(helpers, { initialDelayMs: 10, maxDelayMs: 40, jitter: 'none', scheduler });
  });
};

// Virtual time never ends: without a bound, a feed that should end and does not would run forever.
const soon = '500ms !';

/** Each subscription runs the next attempt; the last one is repeated. */
const inTurn = (...attempts: readonly Observable<string>[]): Observable<string> => {
  let attempt = 0;
  return defer(() => attempts[Math.min(attempt++, attempts.length - 1)]!);
};

describe.each(ways)('%s', (_how, reconnect) => {
  it('passes frames through and keeps one connection while nothing fails', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('  -a--b--');
      const sub = '          ^-------!';
      const expected = '     -a--b--';
      expectObservable(source.pipe(reconnect(policy)), sub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('renews at once after a stable connection, each time', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('  -a-#      ', undefined, R);
      const subs = ['        ^--!      ', '---^--!   ', '------^--!', '---------^!'];
      const expected = '     -a--a--a--';
      const unsub = '        ----------!';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('waits longer after each connection that opens and drops at once, up to the longest wait', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('a#', undefined, x);
      const subs = ['^!', '- 10ms ^!', '- 10ms - 20ms ^!', '- 10ms - 20ms - 40ms ^!', '- 10ms - 20ms - 40ms - 40ms ^!'];
      const expected = 'a 10ms a 20ms a 40ms a 40ms a';
      const unsub = '   - 10ms - 20ms - 40ms - 40ms -- 39ms !';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('starts with the first wait again after a stable connection', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const unstable = cold('-#', undefined, x);
      const stable = cold('  -#', undefined, B);
      const unstableSubs = ['^!', '- 10ms ^!', '- 10ms - 20ms - 10ms ^!'];
      const stableSubs = '         - 10ms - 20ms ^!';
      const unsub = '              - 10ms - 20ms - 10ms - 19ms !';
      expectObservable(inTurn(unstable, unstable, stable, unstable).pipe(reconnect(policy)), unsub).toBe('');
      expectSubscriptions(unstable.subscriptions).toBe(unstableSubs);
      expectSubscriptions(stable.subscriptions).toBe(stableSubs);
    });
  });

  it('does not renew at once twice if the attempt after a stable connection is refused', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const stable = cold(' --#', undefined, R);
      const refused = cold('-#', undefined, handshake401);
      const stableSub = '   ^-!';
      const refusedSubs = ['--^!', '--- 20ms ^!'];
      const unsub = '       --- 20ms - 39ms !';
      expectObservable(inTurn(stable, refused).pipe(reconnect(policy)), unsub).toBe('');
      expectSubscriptions(stable.subscriptions).toBe(stableSub);
      expectSubscriptions(refused.subscriptions).toBe(refusedSubs);
    });
  });

  it('renews at once in the handshake if the previous connection was stable and there was a wait', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const stable = cold(' --#', undefined, B);
      const refused = cold('-#', undefined, handshake401);
      const stableSub = '   ^-!';
      const refusedSubs = ['-- 10ms ^!', '-- 10ms -^!'];
      const unsub = '       -- 10ms -- 39ms !';
      expectObservable(inTurn(stable, refused).pipe(reconnect(policy)), unsub).toBe('');
      expectSubscriptions(stable.subscriptions).toBe(stableSub);
      expectSubscriptions(refused.subscriptions).toBe(refusedSubs);
    });
  });

  it('waits exactly as long as the service requests', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-#', undefined, limited);
      const subs = ['      ^!', '- 25ms ^!', '- 25ms - 25ms ^!'];
      const unsub = '      - 25ms - 25ms - 24ms !';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe('');
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('waits at least as long as the service requests when it backs off', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-#', undefined, busy);
      const subs = ['      ^!', '- 25ms ^!', '- 25ms - 25ms ^!', '- 25ms - 25ms - 40ms ^!'];
      const unsub = '      - 25ms - 25ms - 40ms - 39ms !';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe('');
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('stops at once with a failure whose verdict is stop', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-a-#', undefined, replaced);
      const sub = '        ^--!';
      const expected = '   -a-#';
      expectObservable(source.pipe(reconnect(policy)), soon).toBe(expected, undefined, replaced);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('sets `previous` of the failure that stops the feed', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const revoked = failureOf({ stage: 'stream', closeCode: 4003, reason: 'access revoked', uptimeMs });
      const forbidden = failureOf({ stage: 'ticket', status: 403 });
      const stable = cold('-a-#', undefined, revoked);
      const refused = cold('  --#', undefined, forbidden);
      const stableSub = '   ^--!';
      const refusedSub = '  ---^-!';
      const expected = '    -a---#';
      expectObservable(inTurn(stable, refused).pipe(reconnect(policy)), soon).toBe(
        expected,
        undefined,
        copyFailure(forbidden, { previous: revoked }),
      );
      expectSubscriptions(stable.subscriptions).toBe(stableSub);
      expectSubscriptions(refused.subscriptions).toBe(refusedSub);
    });
  });

  it('never retries an exception of the user', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const mine = new TypeError('mine');
      const source = cold('-a-#', undefined, mine);
      const sub = '        ^--!';
      const expected = '   -a-#';
      expectObservable(source.pipe(reconnect(policy)), soon).toBe(expected, undefined, mine);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('stops after maxAttempts reconnects in a row', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-#', undefined, x);
      const subs = ['      ^!', '- 10ms ^!', '- 10ms - 20ms ^!'];
      const expected = '   - 10ms - 20ms -#';
      const last = copyFailure(x, { previous: x });
      const exhausted = copyFailure(
        createTradeFeedError({
          stage: 'stream',
          code: 'retries-exhausted',
          endedAt: 1_000,
          detail: 'maxAttempts is 2; the last failure was connection-lost',
          cause: last,
        }),
        { previous: x },
      );
      expectObservable(source.pipe(reconnect({ ...policy, maxAttempts: 2 })), soon).toBe(
        expected,
        undefined,
        exhausted,
      );
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('stops at the first failure when maxAttempts is 0', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-a-#', undefined, R);
      const sub = '        ^--!';
      const expected = '   -a-#';
      const exhausted = createTradeFeedError({
        stage: 'stream',
        code: 'retries-exhausted',
        endedAt: 1_000,
        uptimeMs,
        detail: 'maxAttempts is 0; the last failure was connection-lost',
        cause: R,
      });
      expectObservable(source.pipe(reconnect({ ...policy, maxAttempts: 0 })), soon).toBe(
        expected,
        undefined,
        exhausted,
      );
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('does not connect again if the consumer unsubscribes during a wait', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('a#', undefined, x);
      const sub = '        ^!';
      const unsub = '      - 9ms !';
      const expected = '   a';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('leaves nothing scheduled if the consumer unsubscribes during a wait', () => {
    const scheduler = new VirtualTimeScheduler();
    const feed$ = throwError(() => x).pipe(reconnect({ scheduler }));
    const subscription = feed$.subscribe();
    expect(scheduler.actions).toHaveLength(1);
    subscription.unsubscribe();
    expect(scheduler.actions).toHaveLength(0);
  });

  it('completes with its source without a retry', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-a-|');
      const sub = '        ^--!';
      const expected = '   -a-|';
      expectObservable(source.pipe(reconnect(policy)), soon).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('counts the attempts of each subscription separately', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-#', undefined, x);
      const feed$ = source.pipe(reconnect(policy));
      const one = '  ^-- 10ms - 15ms !';
      const two = '  ----- 10ms ^!';
      expectObservable(feed$, one).toBe('');
      expectObservable(feed$, two).toBe('');
      expectSubscriptions(source.subscriptions).toBe(['^!', '- 10ms ^!', '----- 10ms ^!']);
    });
  });

  it('handles failures during subscription', () => {
    marbles(({ cold, expectObservable }, policy) => {
      const failing$ = throwError(() => x);
      const source$ = inTurn(failing$, failing$, failing$, cold<string>('(a|)'));
      const expected = '10ms 20ms 40ms (a|)';
      expectObservable(source$.pipe(reconnect(policy)), soon).toBe(expected);
    });
  });

  it('throws for an invalid policy from the call itself', () => {
    expect(() => backoff({ factor: 0 })).toThrow(TradeFeedError);
    expect(() => retryDelay({ factor: 0 })).toThrow('`backoff.factor` must be a number, 1 or more, got 0');
  });
});

describe('backoff', () => {
  it('calls onReconnect before each wait, and not when the feed stops', () => {
    marbles(({ cold, expectObservable, flush }, policy) => {
      const reported: [number, Reconnect][] = [];
      const report = (reconnect: Reconnect) => reported.push([policy.scheduler!.now(), reconnect]);
      const source = inTurn(cold('-#', undefined, x), cold('-#', undefined, B), cold('-#', undefined, replaced));
      const expected = '     - 10ms - 10ms -#';
      expectObservable(source.pipe(retryWhen(backoff(policy, report))), soon).toBe(
        expected,
        undefined,
        copyFailure(replaced, { previous: B }),
      );
      flush();
      expect(reported.map(([at, { failure, attempt, delayMs }]) => [at, failure.code, attempt, delayMs])).toEqual([
        [1, 'connection-lost', 1, 10],
        [12, 'server-shutdown', 1, 10],
      ]);
    });
  });

  it('errors with the exception of a listener and stops', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const mine = new Error('mine');
      const source = cold('-#', undefined, x);
      const notifier = backoff(policy, () => {
        throw mine;
      });
      expectObservable(source.pipe(retryWhen(notifier)), soon).toBe('-#', undefined, mine);
      expectSubscriptions(source.subscriptions).toBe('^!');
    });
  });

  it('emits once for each failure, at the end of its wait, and never completes', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }, policy) => {
      const failures = hot('-x 30ms x--', { x });
      const sub = '         ^ 60ms !';
      const expected = '    - 10ms o 40ms o';
      expectObservable(backoff(policy)(failures).pipe(map(() => 'o')), sub).toBe(expected);
      expectSubscriptions(failures.subscriptions).toBe(sub);
    });
  });

  it('uses the default policy without options', () => {
    jest.useFakeTimers();
    try {
      let attempts = 0;
      const source$ = defer(() => {
        attempts += 1;
        return attempts === 1 ? throwError(() => x) : EMPTY;
      });
      const complete = jest.fn();
      source$.pipe(retryWhen(backoff())).subscribe({ complete });
      expect(attempts).toBe(1);
      jest.advanceTimersByTime(500);
      expect(attempts).toBe(2);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('backoff with wakes$', () => {
  const floorMs = 25;

  it('ends a wait at once, and subscribes to wakes$ only during waits', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-a#', undefined, x);
      const wakes = hot('  ---w-------');
      const wakeSubs = ['  --^!', '-----^----------!'];
      const subs = ['      ^-!', '---^-!', '----- 20ms ^-!'];
      const unsub = '      ----------------!';
      const expected = '   -a--a-------';
      expectObservable(source.pipe(retryWhen(backoff(policy, undefined, wakes))), unsub).toBe(expected);
      expectSubscriptions(wakes.subscriptions).toBe(wakeSubs);
      expectSubscriptions(source.subscriptions).toBe(subs.slice(0, 2));
    });
  });

  it('waits normally without a wake, and ignores a wake during an attempt', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('--#', undefined, x);
      const wakes = hot('  -w----------w');
      const subs = ['      ^-!', '-- 10ms ^-!', '-- 10ms -- 20ms ^-!'];
      const wakeSubs = ['  --^---------!', '-- 10ms --^-------------------!'];
      const unsub = '      -- 10ms -- 20ms --!';
      expectObservable(source.pipe(retryWhen(backoff(policy, undefined, wakes))), unsub).toBe('');
      expectSubscriptions(source.subscriptions).toBe(subs);
      expectSubscriptions(wakes.subscriptions).toBe(
        [wakeSubs[0]!, '-- 10ms --^ 19ms !', '-- 10ms -- 20ms --^!'].slice(0, 2),
      );
    });
  });

  it('ends a wait once, however many wakes arrive', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('---#', undefined, x);
      const wakes = hot('  ----(www)-www');
      const subs = ['      ^--!', '----^--!', '---------- ^--!'];
      const unsub = '      -------------!';
      expectObservable(
        source.pipe(retryWhen(backoff({ ...policy, initialDelayMs: 40 }, undefined, wakes))),
        unsub,
      ).toBe('');
      expectSubscriptions(source.subscriptions).toBe([subs[0]!, subs[1]!, '----------^--!']);
    });
  });

  it.each([
    ['during the floor, ends the wait with the floor', 10, floorMs],
    ['with the floor, ends the wait with it', 25, floorMs],
    ['after the floor, ends the wait at once', 31, 31],
    ['never, does not change the wait', 1_000, 160],
  ])('a wake %s', (_when, at, waited) => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('#', undefined, failureOf({ stage: 'handshake', status: 503, retryAfterMs: floorMs }));
      const wakes = hot(`${at}ms w`);
      const subs = ['(^!)', `${waited}ms (^!)`];
      const slow = { ...policy, initialDelayMs: 160, maxDelayMs: 160 };
      expectObservable(source.pipe(retryWhen(backoff(slow, undefined, wakes))), `${waited + 1}ms !`).toBe('');
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('continues to count the attempts', () => {
    marbles(({ cold, hot, expectObservable, flush }, policy) => {
      const reported: (readonly [number, number])[] = [];
      const report = ({ attempt, delayMs }: Reconnect) => reported.push([attempt, delayMs]);
      const wakes = hot('  -w-w-w-w');
      expectObservable(cold('#', undefined, x).pipe(retryWhen(backoff(policy, report, wakes))), '--------!').toBe('');
      flush();
      expect(reported).toEqual([
        ...[
          [1, 10],
          [2, 20],
          [3, 40],
          [4, 40],
          [5, 40],
        ],
      ]);
    });
  });

  it('leaves nothing scheduled and no subscription if the consumer unsubscribes after a wake during a floor', () => {
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
