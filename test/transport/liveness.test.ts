import { describe, expect, it, jest } from '@jest/globals';
import { defer, map, type Observable, of, take, tap } from 'rxjs';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import { stalled$ } from '../../src/transport/liveness.js';

const MAX_TIMER_MS = 2_147_483_647;

/** A connection on virtual time: when bytes were read, when it was pinged, and how it answers. */
interface Line {
  readonly scheduler: TestScheduler;
  lastReadMs: number;
  readonly pings: number[];
  /** Ms from a ping to its answer; `undefined`: no answer. */
  answersAfterMs?: number | undefined;
  /** Emits when the bytes that arrived are read, in the turn after a timer. */
  reads$: Observable<unknown>;
  readonly stalled$: (idleTimeoutMs: number) => Observable<string>;
}

const marbles = (test: (line: Line, helpers: RunHelpers) => void): void => {
  const scheduler = new TestScheduler((actual, expected) => {
    expect(actual).toEqual(expected);
  });
  scheduler.run((helpers) => {
    const line: Line = {
      scheduler,
      lastReadMs: 0,
      pings: [],
      reads$: of('read'),
      stalled$: (idleTimeoutMs) =>
        stalled$(
          {
            lastReadMs: () => line.lastReadMs,
            ping: () => {
              line.pings.push(scheduler.now());
              if (line.answersAfterMs !== undefined) scheduler.schedule(() => receive(line), line.answersAfterMs);
            },
            now: () => scheduler.now(),
            scheduler,
            reads$: defer(() => line.reads$),
          },
          idleTimeoutMs,
        ).pipe(
          map(() => 's'),
          // It emits once. With a bug, virtual time could run forever.
          take(3),
        ),
    };
    test(line, helpers);
  });
};

const receive = (line: Line): void => {
  line.lastReadMs = line.scheduler.now();
};

/** Reads bytes where the diagram has a `b`. */
const bytes = (line: Line, { hot }: RunHelpers, diagram: string): void => {
  hot(diagram).subscribe(() => receive(line));
};

describe('stalled$', () => {
  it('pings after idleTimeoutMs of silence, and emits after the same time again', () => {
    marbles((line, { expectObservable, flush }) => {
      const expected = '20ms (s|)';
      expectObservable(line.stalled$(10)).toBe(expected);
      flush();
      expect(line.pings).toEqual([10]);
    });
  });

  it('waits at most 5 s for an answer', () => {
    marbles((line, { expectObservable, flush }) => {
      const expected = '35s (s|)';
      expectObservable(line.stalled$(30_000)).toBe(expected);
      flush();
      expect(line.pings).toEqual([30_000]);
    });
  });

  it.each([
    [4_999, 9_998],
    [5_000, 10_000],
    [5_001, 10_001],
  ])('with an idleTimeoutMs of %i emits after %i ms', (idleTimeoutMs, ms) => {
    marbles((line, { expectObservable }) => {
      expectObservable(line.stalled$(idleTimeoutMs)).toBe(`${ms}ms (s|)`);
    });
  });

  it('keeps a quiet connection while it answers', () => {
    marbles((line, { expectObservable, flush }) => {
      line.answersAfterMs = 3;
      const unsub = '   50ms !';
      const expected = '';
      expectObservable(line.stalled$(10), unsub).toBe(expected);
      flush();
      // 10 ms after each answer.
      expect(line.pings).toEqual([10, 23, 36, 49]);
    });
  });

  it('emits when the answers stop', () => {
    marbles((line, { expectObservable, flush }) => {
      line.answersAfterMs = 3;
      line.scheduler.schedule(() => {
        line.answersAfterMs = undefined;
      }, 20);
      const expected = '33ms (s|)';
      expectObservable(line.stalled$(10)).toBe(expected);
      flush();
      expect(line.pings).toEqual([10, 23]);
    });
  });

  it('restarts the wait after any byte', () => {
    marbles((line, helpers) => {
      const source = '  ----b----b---------';
      const expected = '29ms (s|)';
      bytes(line, helpers, source);
      helpers.expectObservable(line.stalled$(10)).toBe(expected);
      helpers.flush();
      expect(line.pings).toEqual([19]);
    });
  });

  it('accepts any byte after the ping as its answer', () => {
    marbles((line, helpers) => {
      const source = '  15ms b';
      const expected = '35ms (s|)';
      bytes(line, helpers, source);
      helpers.expectObservable(line.stalled$(10)).toBe(expected);
      helpers.flush();
      expect(line.pings).toEqual([10, 25]);
    });
  });

  it('accepts an answer in the same ms as the ping', () => {
    marbles((line, { expectObservable, flush }) => {
      line.answersAfterMs = 0;
      const unsub = '   35ms !';
      expectObservable(line.stalled$(10), unsub).toBe('');
      flush();
      expect(line.pings).toEqual([10, 21, 32]);
    });
  });

  it('accepts an answer in the last ms', () => {
    marbles((line, { expectObservable, flush }) => {
      line.answersAfterMs = 10;
      const unsub = '   35ms !';
      expectObservable(line.stalled$(10), unsub).toBe('');
      flush();
      expect(line.pings).toEqual([10, 30]);
    });
  });

  it('does not ping if bytes that had arrived are read in the turn after the timer', () => {
    marbles((line, { cold, expectObservable, flush }) => {
      // The event loop was blocked: the timer fires first, the socket is read 2 ms later.
      line.reads$ = cold('--(r|)').pipe(
        take(1),
        tap(() => receive(line)),
      );
      const unsub = '   40ms !';
      expectObservable(line.stalled$(10), unsub).toBe('');
      flush();
      expect(line.pings).toEqual([]);
    });
  });

  it('keeps the connection if the answer had arrived and is read in the turn after the timer', () => {
    marbles((line, { cold, expectObservable, expectSubscriptions, flush }) => {
      const nothing = cold(' --(r|)');
      const answer = cold('  --(r|)');
      let turn = 0;
      line.reads$ = defer(() => {
        turn += 1;
        return turn === 2 ? answer.pipe(tap(() => receive(line))) : nothing;
      });
      const unsub = '        30ms !';
      const nothingSub = '   10ms ^-!';
      const answerSub = '    22ms ^-!';
      expectObservable(line.stalled$(10), unsub).toBe('');
      expectSubscriptions(nothing.subscriptions).toBe(nothingSub);
      expectSubscriptions(answer.subscriptions).toBe(answerSub);
      flush();
      expect(line.pings).toEqual([12]);
    });
  });

  it('emits only after the sockets were read without new bytes', () => {
    marbles((line, { cold, expectObservable }) => {
      line.reads$ = cold('--(r|)');
      const expected = '  10ms -- 10ms --(s|)';
      expectObservable(line.stalled$(10)).toBe(expected);
    });
  });

  it('checks again in 1 ms if a timer fires too early', () => {
    marbles((line, helpers) => {
      // The clock of `now` is slower than the clock of the timers, as can happen in Node.
      const { scheduler } = line;
      const pings: number[] = [];
      const early$ = stalled$(
        {
          lastReadMs: () => 0,
          ping: () => pings.push(scheduler.now()),
          now: () => scheduler.now() * 0.95,
          scheduler,
          reads$: of(0),
        },
        10,
      );
      helpers
        .expectObservable(
          early$.pipe(
            map(() => 's'),
            take(3),
          ),
        )
        .toBe('21ms (s|)');
      helpers.flush();
      expect(pings).toEqual([11]);
    });
  });

  it('never emits and schedules nothing if it is disabled', () => {
    marbles((line, { expectObservable, flush }) => {
      expectObservable(line.stalled$(0), '60m !').toBe('');
      flush();
      expect(line.pings).toEqual([]);
      line.stalled$(0).subscribe();
      expect(line.scheduler.actions).toHaveLength(0);
    });
  });

  it.each([2 ** 31, 1e12, Infinity])('does not ping too early with an idleTimeoutMs of %d', (ms) => {
    marbles((line, { expectObservable, flush }) => {
      expectObservable(line.stalled$(ms), `${MAX_TIMER_MS}ms !`).toBe('');
      flush();
      expect(line.pings).toEqual([]);
    });
  });

  it('pings on time if the wait is longer than the longest timer', () => {
    marbles((line, { expectObservable, flush }) => {
      expectObservable(line.stalled$(MAX_TIMER_MS + 1_000)).toBe(`${MAX_TIMER_MS + 6_000}ms (s|)`);
      flush();
      expect(line.pings).toEqual([MAX_TIMER_MS + 1_000]);
    });
  });

  it('measures the silence since the last read, not since the subscription', () => {
    marbles((line, { expectObservable, flush }) => {
      const sub = '     4ms ^';
      const expected = '20ms (s|)';
      expectObservable(line.stalled$(10), sub).toBe(expected);
      flush();
      expect(line.pings).toEqual([10]);
    });
  });

  it.each([
    ['the silence', '5ms !'],
    ['the turn after the timer', '11ms !'],
    ['the wait for an answer', '15ms !'],
    ['the last turn', '23ms !'],
  ])('cleans up when it is unsubscribed during %s', (_when, unsub) => {
    marbles((line, { cold, expectObservable, flush }) => {
      line.reads$ = cold('--(r|)');
      expectObservable(line.stalled$(10), unsub).toBe('');
      flush();
      expect(line.scheduler.actions).toHaveLength(0);
      expect(line.lastReadMs).toBe(0);
    });
  });

  it('watches each subscription separately', () => {
    marbles((line, { expectObservable, flush }) => {
      const watch$ = line.stalled$(10);
      expectObservable(watch$).toBe('20ms (s|)');
      expectObservable(watch$, '- ^').toBe('20ms (s|)');
      flush();
      expect(line.pings).toEqual([10, 10]);
    });
  });

  it('uses the clock and the timers of Node by default', () => {
    jest.useFakeTimers();
    try {
      const heardMs = performance.now();
      const [ping, next] = [jest.fn(), jest.fn()];
      const subscription = stalled$({ lastReadMs: () => heardMs, ping }, 30_000).subscribe(next);
      jest.advanceTimersByTime(29_999);
      expect(ping).not.toHaveBeenCalled();
      jest.advanceTimersByTime(2);
      expect(ping).toHaveBeenCalledTimes(1);
      jest.advanceTimersByTime(4_990);
      expect(next).not.toHaveBeenCalled();
      jest.advanceTimersByTime(20);
      expect(next).toHaveBeenCalledTimes(1);
      expect(subscription.closed).toBe(true);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});
