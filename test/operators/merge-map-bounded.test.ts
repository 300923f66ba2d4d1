import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import {
  concat,
  config,
  defer,
  EMPTY,
  finalize,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  range,
  Subject,
  take,
  throwError,
  toArray,
} from 'rxjs';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import type { DropReport } from '../../src/operators/bounded/drop-report.js';
import { mergeMapBounded, type MergeMapBoundedOptions } from '../../src/operators/merge-map-bounded.js';
import { OverflowError } from '../../src/operators/bounded/overflow-error.js';
import { cases } from '../support/cases.js';

const marbles = (test: (helpers: RunHelpers) => void): void => {
  new TestScheduler((actual, expected) => {
    expect(actual).toEqual(expected);
  }).run(test);
};

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
const mine = new Error('mine');
const throwMine = (): never => {
  throw mine;
};

/** Creates a subscription with a source to push to, and work that ends when the test says so. */
const bench = (options: MergeMapBoundedOptions<number> = {}) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const work: { readonly n: number; readonly gate: Subject<string> }[] = [];
  const seen: unknown[] = [];
  const start = (n: number): Observable<string> => {
    const gate = new Subject<string>();
    work.push({ n, gate });
    return gate;
  };
  const subscription = source
    .pipe(mergeMapBounded(start, { onDrop: (report) => reports.push(report), ...options }))
    .subscribe({
      next: (value) => seen.push(value),
      error: (error: unknown) => seen.push(error),
      complete: () => seen.push('complete'),
    });
  const dropped = () => sum(reports.map((report) => report.dropped));
  return { source, reports, work, seen, subscription, dropped };
};

describe('mergeMapBounded', () => {
  it('starts the next value when the one before is done, and drops the oldest beyond its capacity', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const source = hot('--a-b-c-d-e-------|');
      const sub = '       ^-----------------!';
      const inner = cold('  -----(x|)');
      const inners = ['   --^----!', '   -------^----!', '   ------------^----!'];
      const expected = '  -------a----c----e|';
      const project = (value: string) => inner.pipe(map(() => value));
      expectObservable(source.pipe(mergeMapBounded(project, { capacity: 1 }))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(sub);
      expectSubscriptions(inner.subscriptions).toBe(inners);
    });
  });

  it('with `drop-newest`, keeps the oldest values; processes as many at a time as `concurrency` allows', () => {
    marbles(({ cold, hot, expectObservable }) => {
      const source = hot('--a-b-c-d-e-------|');
      const inner = cold('  -----(x|)');
      const newest = '    -------a----b----d|';
      const two = '       -------a-b--c-(d|)';
      const project = (value: string) => inner.pipe(map(() => value));
      expectObservable(source.pipe(mergeMapBounded(project, { capacity: 1, overflow: 'drop-newest' }))).toBe(newest);
      expectObservable(source.pipe(take(4), mergeMapBounded(project, { capacity: 1, concurrency: 2 }))).toBe(
        two.replace('c-d---|', 'c-(d|)'),
      );
    });
  });

  it('has the results of mergeMap if the bounds are not reached, at any concurrency', () => {
    const inner = fc.array(fc.constantFrom('a', 'b', '-', '--'), { maxLength: 4 }).map((parts) => `${parts.join('')}|`);
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 12 }),
        inner,
        fc.integer({ min: 1, max: 3 }),
        (waits, shape, concurrency) => {
          marbles(({ cold, expectObservable }) => {
            const source = cold(`${waits.map((wait) => `${'-'.repeat(wait)}x`).join('')}|`);
            const project = (_: string, index: number) => cold(shape).pipe(map((value) => `${value}${index}`));
            const bounded = source.pipe(mergeMapBounded(project, { concurrency }));
            expectObservable(bounded).toEqual(source.pipe(mergeMap(project, concurrency)));
          });
        },
      ),
      { numRuns: cases(50) },
    );
  });

  it('completes when the source, the waiting values and the active inner Observables are done', () => {
    marbles(({ cold, hot, expectObservable }) => {
      const source = hot('  ab|');
      const inner = cold('  --x|');
      const expected = '    --x--x|';
      expectObservable(source.pipe(mergeMapBounded(() => inner))).toBe(expected);
      expectObservable(cold('--|').pipe(mergeMapBounded(() => inner))).toBe('--|');
    });
  });

  it('errors at once with the source, an inner Observable or `project`, and unsubscribes from all', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const inner = cold('    -------x|');
      const failing = hot('   -a-b#', undefined, mine);
      expectObservable(failing.pipe(mergeMapBounded(() => inner))).toBe('----#', undefined, mine);
      expectSubscriptions(inner.subscriptions).toBe('-^--!');

      const source = hot('    -a-b---');
      const failingInner = cold('--#', undefined, mine);
      expectObservable(source.pipe(mergeMapBounded(() => failingInner))).toBe('---#', undefined, mine);
      expectObservable(source.pipe(mergeMapBounded(throwMine))).toBe('-#', undefined, mine);
      expectSubscriptions(source.subscriptions).toBe(['^--!', '^!']);
    });
  });

  it('unsubscribes from the source and from all inner Observables', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const source = hot('    -a-b-c--');
      const inner = cold('     ------');
      const unsub = '         ------!';
      expectObservable(source.pipe(mergeMapBounded(() => inner, { concurrency: 2 })), unsub).toBe('-------');
      expectSubscriptions(source.subscriptions).toBe('^-----!');
      expectSubscriptions(inner.subscriptions).toBe(['-^----!', '---^--!']);
    });
  });

  it('passes the index of the projected value, from 0', () => {
    const indices: number[] = [];
    const { source, work } = bench();
    const counted = new Subject<number>();
    counted.pipe(mergeMapBounded((_, index) => of(indices.push(index)))).subscribe();
    [5, 6, 7].forEach((n) => counted.next(n));
    expect(indices).toEqual([0, 1, 2]);
    source.next(1);
    expect(work).toHaveLength(1);
  });

  it('accepts Promises and arrays as inner Observables', async () => {
    const seen = await new Promise((resolve) => {
      of(1, 2)
        .pipe(
          mergeMapBounded((n) => (n === 1 ? Promise.resolve([n]) : [[n, n]])),
          toArray(),
        )
        .subscribe(resolve);
    });
    expect(seen).toEqual([[1], [2, 2]]);
  });

  it('has separate state for each subscription', () => {
    const operated = of(1, 2, 3).pipe(mergeMapBounded((n, index) => of([n, index])));
    const runs = [1, 2].map(() => {
      const seen: unknown[] = [];
      operated.subscribe((value) => seen.push(value));
      return seen;
    });
    expect(runs[1]).toEqual(runs[0]);
  });

  it('does not grow the stack with inner Observables that complete synchronously', () => {
    const { source, work, seen } = bench({ capacity: 20_000 });
    let projected = 0;
    const gate = new Subject<number>();
    const values = new Subject<number>();
    values.pipe(mergeMapBounded((n) => (n === 0 ? gate : of((projected += 1))), { capacity: 20_000 })).subscribe();
    for (let n = 0; n <= 20_000; n += 1) values.next(n);
    gate.complete();
    expect(projected).toBe(20_000);
    source.next(1);
    source.complete();
    work[0]!.gate.complete();
    expect(seen).toEqual(['complete']);
  });

  it('starts the next value when the one before has been torn down, as mergeMap does', () => {
    const log: string[] = [];
    const gates = [new Subject<never>(), new Subject<never>()];
    const project = (n: number) =>
      defer(() => {
        log.push(`start ${n}`);
        return (gates[n] as Subject<never>).pipe(finalize(() => log.push(`end ${n}`)));
      });
    of(0, 1).pipe(mergeMapBounded(project)).subscribe();
    gates[0]!.complete();
    expect(log).toEqual(['start 0', 'end 0', 'start 1']);
  });

  it('stops a source and an inner Observable that emit synchronously during `subscribe`', () => {
    let emitted = 0;
    const endless = defer(() => range(0, 1_000_000).pipe(map(() => (emitted += 1))));
    const seen: number[] = [];
    endless
      .pipe(
        mergeMapBounded((n) => of(n)),
        take(3),
      )
      .subscribe((n) => seen.push(n));
    expect([seen, emitted]).toEqual([[1, 2, 3], 3]);
    of(1)
      .pipe(
        mergeMapBounded(() => endless),
        take(3),
      )
      .subscribe();
    expect(emitted).toBe(6);
    endless.pipe(mergeMapBounded(throwMine)).subscribe({ error: () => undefined });
    expect(emitted).toBe(7);
  });
});

describe('drops of mergeMapBounded', () => {
  it('are reported once each time the queue overflows, and add up', () => {
    const { source, work, reports } = bench({ capacity: 4 });
    for (let n = 0; n < 11; n += 1) source.next(n);
    expect(reports).toEqual([]);
    work[0]!.gate.complete();
    expect(reports).toEqual([]);
    work[1]!.gate.complete();
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 6, total: 6 }]);
    expect(work.map(({ n }) => n)).toEqual([0, 7, 8]);
  });

  it.each([
    ['are reported after a second, by the clock of the scheduler', 995, [3, 1, 1]],
    ['are not reported earlier while they continue', 994, [4, 1]],
  ])('%s', (_title, waitMs, received) => {
    const reports: DropReport[] = [];
    marbles(({ cold, expectObservable }) => {
      const options = { capacity: 1, onDrop: (report: DropReport) => reports.push(report) };
      const source = cold(`a 99ms (bcd) ${waitMs}ms e 99ms f`); // c, d, e and f each drop the value before
      expectObservable(source.pipe(mergeMapBounded(() => NEVER, options)), '3s !').toBe('');
    });
    expect(reports.map(({ dropped }) => dropped)).toEqual(received);
    expect(reports[0]).toMatchObject({ reason: 'overflow', from: 100 });
    expect(reports.at(-1)).toMatchObject({ reason: 'ended', total: 5, to: 3_000 });
  });

  it('are reported before the error, with the values that still wait', () => {
    for (const end of [
      ({ source }: ReturnType<typeof bench>) => source.error(mine),
      ({ work }: ReturnType<typeof bench>) => work[0]!.gate.error(mine),
    ]) {
      const log: unknown[] = [];
      const setup = bench({ capacity: 2, onDrop: ({ reason, dropped }) => log.push([reason, dropped]) });
      setup.subscription.add(() => log.push('torn down'));
      const { source, seen } = setup;
      [0, 1, 2, 3].forEach((n) => source.next(n));
      end(setup);
      expect(log).toEqual([['overflow', 1], ['ended', 2], 'torn down']);
      expect(seen).toEqual([mine]);
    }
    const log: unknown[] = [];
    const source = new Subject<number>();
    source
      .pipe(mergeMapBounded(() => NEVER, { capacity: 1, onDrop: ({ reason }) => log.push(reason) }))
      .subscribe({ error: (error) => log.push(error) });
    [0, 1, 2].forEach((n) => source.next(n));
    source.error(mine);
    expect(log).toEqual(['overflow', 'ended', mine]);
  });

  it('are reported before the error of an inner Observable and of `project`', () => {
    for (const fail of [() => throwError(() => mine), throwMine]) {
      const log: unknown[] = [];
      const source = new Subject<number>();
      const gate = new Subject<never>();
      source
        .pipe(
          mergeMapBounded((n) => (n === 0 ? gate : fail()), {
            capacity: 2,
            onDrop: ({ dropped }) => log.push(dropped),
          }),
        )
        .subscribe({ error: (error) => log.push(error) });
      [0, 1, 2].forEach((n) => source.next(n));
      gate.complete();
      expect(log).toEqual([1, mine]);
      expect(source.observed).toBe(false);
    }
  });

  it('include the waiting values when the consumer unsubscribes', () => {
    const { source, subscription, reports } = bench();
    [0, 1, 2].forEach((n) => source.next(n));
    subscription.unsubscribe();
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
    expect(source.observed).toBe(false);
  });

  it('end the stream with an OverflowError with the policy `error`', () => {
    const { source, seen, reports, work } = bench({ capacity: 1, overflow: 'error' });
    [0, 1, 2].forEach((n) => source.next(n));
    expect(seen).toEqual([expect.any(OverflowError)]);
    expect(reports).toMatchObject([
      { reason: 'overflow', dropped: 1 },
      { reason: 'ended', dropped: 1, total: 2 },
    ]);
    expect([work.length, source.observed, work[0]!.gate.observed]).toEqual([1, false, false]);
  });

  it('do not include a value that is processed at once, of any size', () => {
    const { source, work, reports } = bench({ capacityBytes: 1, bytesOf: () => 100 });
    source.next(0);
    expect([work.length, reports]).toEqual([1, []]);
  });
});

describe('a function of the user in mergeMapBounded', () => {
  it('ends the stream when `onDrop` throws, and no drop is lost', () => {
    const dropped: number[] = [];
    const { source, work, seen, subscription } = bench({
      capacity: 2,
      onDrop: (report) => {
        dropped.push(report.dropped);
        if (report.reason === 'overflow') throw mine;
      },
    });
    [0, 1, 2, 3].forEach((n) => source.next(n));
    work[0]!.gate.complete(); // one waits
    expect(seen).toEqual([mine]);
    expect(dropped).toEqual([1, 1]);
    expect(work.map(({ n }) => n)).toEqual([0, 2]);
    expect([source.observed, subscription.closed]).toEqual([false, true]);
  });

  it('ends the stream when `onDrop` throws during a drop', () => {
    const now = jest.fn(() => 0);
    const { source, seen } = bench({
      capacity: 1,
      scheduler: { now, schedule: () => EMPTY.subscribe() },
      onDrop: ({ reason }) => {
        if (reason === 'overflow') throw mine;
      },
    });
    [0, 1, 2].forEach((n) => source.next(n));
    now.mockReturnValue(1_000);
    source.next(3);
    expect(seen).toEqual([mine]);
  });

  it('causes an unhandled error of RxJS when `onDrop` throws on unsubscribing', async () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    try {
      const { source, subscription, seen } = bench({ onDrop: throwMine });
      [0, 1].forEach((n) => source.next(n));
      subscription.unsubscribe();
      await new Promise((resolve) => setTimeout(resolve));
      expect(unhandled.mock.calls).toEqual([[mine]]);
      expect(seen).toEqual([]);
    } finally {
      config.onUnhandledError = null;
    }
  });

  it('ends the stream when `bytesOf` throws, with the value counted', () => {
    const { source, seen, dropped } = bench({ bytesOf: throwMine });
    [0, 1].forEach((n) => source.next(n));
    expect([seen, dropped()]).toEqual([[mine], 1]);
  });

  it('may unsubscribe in `onDrop`', () => {
    const { source, work, subscription, seen } = bench({ capacity: 2, onDrop: () => subscription.unsubscribe() });
    for (let n = 0; n < 4; n += 1) source.next(n);
    work[0]!.gate.complete();
    expect([subscription.closed, source.observed, seen]).toEqual([true, false, []]);
    expect(work.map(({ n, gate }) => [n, gate.observed])).toEqual([
      [0, false],
      [2, false],
    ]);
  });

  it('may push to the source in `project` and in `onDrop`', () => {
    const source = new Subject<number>();
    const projected: number[] = [];
    const reports: DropReport[] = [];
    const gate = new Subject<never>();
    source
      .pipe(
        mergeMapBounded(
          (n) => {
            projected.push(n);
            if (n < 3) source.next(n + 10);
            return n === 0 ? gate : EMPTY;
          },
          {
            capacity: 3,
            onDrop: (report) => {
              reports.push(report);
              if (reports.length === 1) source.next(99);
            },
          },
        ),
      )
      .subscribe();
    [0, 1, 2, 3].forEach((n) => source.next(n)); // 10 arrives within 0, and is dropped for 3
    expect(projected).toEqual([0]);
    gate.complete();
    // 11 arrives within 1 and is queued, 12 within 2.
    expect(projected).toEqual([0, 1, 2, 3, 11, 12, 99]);
    expect(reports).toMatchObject([{ dropped: 1 }]);
    source.next(2);
    expect(projected.slice(7)).toEqual([2, 12]);
  });

  it('may end another turn and push to the source in `project`, without a change of the order', () => {
    const source = new Subject<number>();
    const projected: number[] = [];
    const gates = [new Subject<never>(), new Subject<never>()];
    source
      .pipe(
        mergeMapBounded(
          (n) => {
            projected.push(n);
            if (n === 2) {
              gates[1]!.complete();
              source.next(4);
            }
            return gates[n] ?? EMPTY;
          },
          { concurrency: 2 },
        ),
      )
      .subscribe();
    [0, 1, 2, 3].forEach((n) => source.next(n));
    gates[0]!.complete();
    expect(projected).toEqual([0, 1, 2, 3, 4]);
  });

  it('may push to the source when the stream has failed: nothing more is projected', () => {
    const source = new Subject<number>();
    const projected: number[] = [];
    source
      .pipe(
        mergeMapBounded(
          (n) => {
            projected.push(n);
            return throwError(() => mine);
          },
          { concurrency: 2 },
        ),
      )
      .subscribe({ error: () => source.next(2) });
    source.next(1);
    expect(projected).toEqual([1]);
  });
});

it('refuses invalid options at once', () => {
  const callWith = (options: unknown, project: unknown = () => EMPTY) =>
    (() => mergeMapBounded(project as () => never, options as object)) as () => unknown;
  for (const [options, message] of [
    [{ concurrency: 0 }, /`concurrency` must be a whole number, 1 or more, got 0/],
    [{ concurrency: Infinity }, /`concurrency`/],
    [{ capacity: 0 }, /`capacity` must be a whole number, 1 or more, got 0/],
    [{ capacity: 1.5 }, /`capacity`/],
    [{ capacityBytes: 0 }, /`capacityBytes` must be a number of bytes above 0, got 0/],
    [{ capacityBytes: NaN }, /`capacityBytes`/],
    [{ overflow: 'block' }, /`overflow` must be 'drop-oldest' or 'drop-newest' or 'error'/],
    [{ bytesOf: 3 }, /`bytesOf` must be a function/],
    [{ onDrop: 'log' }, /`onDrop` must be a function/],
    [{ scheduler: {} }, /`scheduler` must be an RxJS scheduler/],
    [{ size: 3 }, /`size` must be left out: the options are capacity, .*concurrency/],
    [null, /`options` must be an object/],
  ] as const)
    expect(callWith(options)).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringMatching(message) }),
    );
  expect(callWith({}, 'project')).toThrow(/`project` must be a function/);
  expect(callWith({ capacity: undefined, capacityBytes: Infinity })).not.toThrow();
});

it('projects or drops each value exactly once, in order, for any policy and interleaving', () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.constant('send' as const) },
    { weight: 3, arbitrary: fc.nat({ max: 3 }) },
    { weight: 1, arbitrary: fc.constant('send within' as const) },
  );
  const end = fc.constantFrom('complete', 'error', 'inner error', 'unsubscribe');
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 120, size: 'max' }),
      end,
      fc.constantFrom<('drop-oldest' | 'drop-newest')[]>('drop-oldest', 'drop-newest'),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 3 }),
      (steps, ending, overflow, capacity, concurrency) => {
        const source = new Subject<number>();
        const projected: number[] = [];
        const open: Subject<never>[] = [];
        let dropped = 0;
        let sent = 0;
        const next = { isSync: false };
        const send = () => {
          sent += 1;
          source.next(sent);
        };
        const subscription = source
          .pipe(
            mergeMapBounded(
              (n) => {
                projected.push(n);
                if (next.isSync) {
                  next.isSync = false;
                  send();
                  return EMPTY;
                }
                const gate = new Subject<never>();
                open.push(gate);
                return gate;
              },
              { capacity, concurrency, overflow, onDrop: (report) => (dropped += report.dropped) },
            ),
          )
          .subscribe({ error: () => undefined });
        for (const each of steps) {
          if (each === 'send') send();
          else if (each === 'send within') next.isSync = true;
          else open.splice(each, 1)[0]?.complete();
          expect(open.length).toBeLessThanOrEqual(concurrency);
          expect(sent - projected.length - dropped).toBeGreaterThanOrEqual(0);
        }
        next.isSync = false;
        if (ending === 'unsubscribe') subscription.unsubscribe();
        else if (ending === 'error') source.error(mine);
        else if (ending === 'inner error' && open.length > 0) open[0]!.error(mine);
        else {
          source.complete();
          while (open.length > 0) open.shift()!.complete();
        }
        expect(subscription.closed).toBe(true);
        expect(projected.length + dropped).toBe(sent);
        expect(projected).toEqual([...new Set(projected)].sort((a, b) => a - b));
      },
    ),
    { numRuns: cases(100) },
  );
});

it('needs no more memory for 100 000 values than for one: the other values are dropped', () => {
  const { source, work, dropped, subscription } = bench({ capacity: 100 });
  concat(range(0, 100_000), NEVER).subscribe(source);
  subscription.unsubscribe();
  expect(work.length + dropped()).toBe(100_000);
});
