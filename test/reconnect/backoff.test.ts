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

// Both ways to put the policy to work. Each makes its state at subscription.
const ways: readonly [string, (policy: Policy) => MonoTypeOperatorFunction<string>][] = [
  ['retryWhen(backoff(policy))', (policy) => retryWhen(backoff(policy))],
  [
    'retry({ delay: retryDelay(policy) })',
    (policy) => (source$) => defer(() => source$.pipe(retry({ delay: retryDelay(policy) }))),
  ],
];

const failureOf = (facts: FailureFacts) => createTradeFeedError({ endedAt: 1_000, ...facts });
const uptimeMs = 60_000;

// What an attempt ends with: `x` opened and dropped at once, the capital ones were stable.
const x = failureOf({ stage: 'stream', closeCode: 1006 });
const R = failureOf({ stage: 'stream', closeCode: 1006, uptimeMs });
const B = failureOf({ stage: 'stream', closeCode: 1001, uptimeMs });
const handshake401 = failureOf({ stage: 'handshake', status: 401 });
const limited = failureOf({ stage: 'ticket', status: 429, retryAfterMs: 25 });
const busy = failureOf({ stage: 'handshake', status: 503, retryAfterMs: 25 });
const replaced = failureOf({ stage: 'stream', closeCode: 4001, uptimeMs });

// Errors are compared with all their fields: jest alone would look at the message.
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

// Virtual time has no end of its own: where a feed should end by itself, a broken one must not go on for ever.
const soon = '500ms !';

/** One attempt after the other; the last one again and again. */
const inTurn = (...attempts: readonly Observable<string>[]): Observable<string> => {
  let attempt = 0;
  return defer(() => attempts[Math.min(attempt++, attempts.length - 1)]!);
};

describe.each(ways)('%s', (_how, reconnect) => {
  it('passes frames on and stays on one connection while nothing fails', () => {
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

  it('waits longer after each connection that opens and drops at once, up to the cap', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('a#', undefined, x);
      const subs = ['^!', '- 10ms ^!', '- 10ms - 20ms ^!', '- 10ms - 20ms - 40ms ^!', '- 10ms - 20ms - 40ms - 40ms ^!'];
      const expected = 'a 10ms a 20ms a 40ms a 40ms a';
      const unsub = '   - 10ms - 20ms - 40ms - 40ms -- 39ms !';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('begins anew after a stable connection', () => {
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

  it('does not renew at once a second time when the attempt after a stable connection is refused', () => {
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

  it('renews at once at the handshake when a stable connection had ended before and the wait is behind', () => {
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

  it('waits as long as the service says, not longer', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-#', undefined, limited);
      const subs = ['      ^!', '- 25ms ^!', '- 25ms - 25ms ^!'];
      const unsub = '      - 25ms - 25ms - 24ms !';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe('');
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('takes what the service says for a floor where it backs off', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-#', undefined, busy);
      const subs = ['      ^!', '- 25ms ^!', '- 25ms - 25ms ^!', '- 25ms - 25ms - 40ms ^!'];
      const unsub = '      - 25ms - 25ms - 40ms - 39ms !';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe('');
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('stops at once at a failure that stops, with that failure', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-a-#', undefined, replaced);
      const sub = '        ^--!';
      const expected = '   -a-#';
      expectObservable(source.pipe(reconnect(policy)), soon).toBe(expected, undefined, replaced);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('tells in `previous` what led to the failure that stops', () => {
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

  it("never retries what is somebody else's exception", () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const mine = new TypeError('mine');
      const source = cold('-a-#', undefined, mine);
      const sub = '        ^--!';
      const expected = '   -a-#';
      expectObservable(source.pipe(reconnect(policy)), soon).toBe(expected, undefined, mine);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('gives up after maxAttempts reconnects in a row', () => {
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

  it('gives up at the first failure when maxAttempts is 0', () => {
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

  it('does not connect again when the consumer leaves during a wait', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('a#', undefined, x);
      const sub = '        ^!';
      const unsub = '      - 9ms !';
      const expected = '   a';
      expectObservable(source.pipe(reconnect(policy)), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('leaves nothing scheduled when the consumer leaves during a wait', () => {
    const scheduler = new VirtualTimeScheduler();
    const feed$ = throwError(() => x).pipe(reconnect({ scheduler }));
    const subscription = feed$.subscribe();
    expect(scheduler.actions).toHaveLength(1);
    subscription.unsubscribe();
    expect(scheduler.actions).toHaveLength(0);
  });

  it('completes when its source does: an end that is no failure is not retried', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('-a-|');
      const sub = '        ^--!';
      const expected = '   -a-|';
      expectObservable(source.pipe(reconnect(policy)), soon).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('gives each subscription attempts of its own', () => {
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

  it('survives failures that come at subscription', () => {
    marbles(({ cold, expectObservable }, policy) => {
      const failing$ = throwError(() => x);
      const source$ = inTurn(failing$, failing$, failing$, cold<string>('(a|)'));
      const expected = '10ms 20ms 40ms (a|)';
      expectObservable(source$.pipe(reconnect(policy)), soon).toBe(expected);
    });
  });

  it('refuses a policy that is not valid from the call itself', () => {
    expect(() => backoff({ factor: 0 })).toThrow(TradeFeedError);
    expect(() => retryDelay({ factor: 0 })).toThrow('`backoff.factor` must be a number, 1 or more, got 0');
  });
});

describe('backoff', () => {
  it('tells of each decision before its wait begins, and of none that stops', () => {
    marbles(({ cold, expectObservable, flush }, policy) => {
      const told: [number, Reconnect][] = [];
      const tell = (reconnect: Reconnect) => told.push([policy.scheduler!.now(), reconnect]);
      const source = inTurn(cold('-#', undefined, x), cold('-#', undefined, B), cold('-#', undefined, replaced));
      const expected = '     - 10ms - 10ms -#';
      expectObservable(source.pipe(retryWhen(backoff(policy, tell))), soon).toBe(
        expected,
        undefined,
        copyFailure(replaced, { previous: B }),
      );
      flush();
      expect(told.map(([at, { failure, attempt, delayMs }]) => [at, failure.code, attempt, delayMs])).toEqual([
        [1, 'connection-lost', 1, 10],
        [12, 'server-shutdown', 1, 10],
      ]);
    });
  });

  it('gives the error of a listener to the consumer and does not go on', () => {
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

  it('emits once for each failure, when its wait is over, and never completes by itself', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }, policy) => {
      const failures = hot('-x 30ms x--', { x });
      const sub = '         ^ 60ms !';
      const expected = '    - 10ms o 40ms o';
      expectObservable(backoff(policy)(failures).pipe(map(() => 'o')), sub).toBe(expected);
      expectSubscriptions(failures.subscriptions).toBe(sub);
    });
  });

  it('waits with the policy of its defaults when none is given', () => {
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

  it('ends a wait at once, and subscribes to wakes$ during waits alone', () => {
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

  it('waits as ever where none comes, and takes no notice of one that comes while an attempt goes on', () => {
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

  it('ends a wait once, however many come', () => {
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
    ['never, leaves the wait as it is', 1_000, 160],
  ])('one that comes %s', (_when, at, waited) => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, policy) => {
      const source = cold('#', undefined, failureOf({ stage: 'handshake', status: 503, retryAfterMs: floorMs }));
      const wakes = hot(`${at}ms w`);
      const subs = ['(^!)', `${waited}ms (^!)`];
      const slow = { ...policy, initialDelayMs: 160, maxDelayMs: 160 };
      expectObservable(source.pipe(retryWhen(backoff(slow, undefined, wakes))), `${waited + 1}ms !`).toBe('');
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('counts the attempts on', () => {
    marbles(({ cold, hot, expectObservable, flush }, policy) => {
      const told: (readonly [number, number])[] = [];
      const tell = ({ attempt, delayMs }: Reconnect) => told.push([attempt, delayMs]);
      const wakes = hot('  -w-w-w-w');
      expectObservable(cold('#', undefined, x).pipe(retryWhen(backoff(policy, tell, wakes))), '--------!').toBe('');
      flush();
      expect(told).toEqual([
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

  it('leaves nothing scheduled, and no subscription, when the consumer leaves during a floor that was woken', () => {
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
