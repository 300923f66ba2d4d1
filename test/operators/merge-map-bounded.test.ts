import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { defer, EMPTY, finalize, map, mergeMap, NEVER, type Observable, of, Subject, take } from 'rxjs';
import type { DropReport } from '../../src/operators/bounded/bounded-queue.js';
import { mergeMapBounded, type MergeMapBoundedOptions } from '../../src/operators/merge-map-bounded.js';
import { cases } from '../support/cases.js';
import { marbles } from './stream.js';

const mine = new Error('mine');
const throwMine = (): never => {
  throw mine;
};

/** Subscribes to a source the test pushes to, with work that ends when the test says so. */
const bench = (options: MergeMapBoundedOptions<number> = {}, seen: unknown[] = []) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const work: { readonly n: number; readonly gate: Subject<string> }[] = [];
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
  return { source, reports, work, seen, subscription };
};

describe('mergeMapBounded', () => {
  it('starts the next value when the previous one is done, and drops the oldest beyond its capacity', () => {
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

  it('keeps the oldest values with `drop-newest`, and runs as many at a time as `concurrency` allows', () => {
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

  it('gives the same results as mergeMap within its bounds, at any concurrency', () => {
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

  it("doesn't grow the stack when inner Observables complete synchronously", () => {
    let projected = 0;
    const gate = new Subject<number>();
    const values = new Subject<number>();
    values.pipe(mergeMapBounded((n) => (n === 0 ? gate : of((projected += 1))), { capacity: 20_000 })).subscribe();
    for (let n = 0; n <= 20_000; n += 1) values.next(n);
    gate.complete();
    expect(projected).toBe(20_000);
  });

  it('starts the next value once the previous one has been torn down, as mergeMap does', () => {
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
      const setup = bench({ capacity: 2, onDrop: ({ reason, dropped }) => log.push([reason, dropped]) }, log);
      setup.subscription.add(() => log.push('torn down'));
      [0, 1, 2, 3].forEach((n) => setup.source.next(n));
      end(setup);
      expect(log).toEqual([['overflow', 1], ['ended', 2], mine, 'torn down']);
    }
  });
});

describe('a function of the user in mergeMapBounded', () => {
  it('ends the stream when `onDrop` throws, and no drop is lost', () => {
    const dropped: number[] = [];
    const onDrop = (report: DropReport) => {
      dropped.push(report.dropped);
      if (report.reason === 'overflow') throw mine;
    };
    const { source, work, seen, subscription } = bench({ capacity: 2, onDrop });
    [0, 1, 2, 3].forEach((n) => source.next(n));
    work[0]!.gate.complete(); // one waits
    expect([seen, dropped]).toEqual([[mine], [1, 1]]);
    expect(work.map(({ n }) => n)).toEqual([0, 2]);
    expect([source.observed, subscription.closed]).toEqual([false, true]);
  });

  it('may push to the source in `project` and in `onDrop`', () => {
    const source = new Subject<number>();
    const projected: number[] = [];
    const dropped: number[] = [];
    const gate = new Subject<never>();
    const project = (n: number) => {
      projected.push(n);
      if (n < 3) source.next(n + 10);
      return n === 0 ? gate : EMPTY;
    };
    const onDrop = (report: DropReport) => {
      if (dropped.push(report.dropped) === 1) source.next(99);
    };
    source.pipe(mergeMapBounded(project, { capacity: 3, onDrop })).subscribe();
    [0, 1, 2, 3].forEach((n) => source.next(n)); // 10 arrives within 0, and is dropped for 3
    expect(projected).toEqual([0]);
    gate.complete();
    // 11 arrives within 1 and is queued, 12 within 2.
    expect(projected).toEqual([0, 1, 2, 3, 11, 12, 99]);
    expect(dropped).toEqual([1]);
    source.next(2);
    expect(projected.slice(7)).toEqual([2, 12]);
  });

  it('may finish other work and push to the source in `project` without changing the order', () => {
    const source = new Subject<number>();
    const projected: number[] = [];
    const gates = [new Subject<never>(), new Subject<never>()];
    const project = (n: number) => {
      projected.push(n);
      if (n === 2) {
        gates[1]!.complete();
        source.next(4);
      }
      return gates[n] ?? EMPTY;
    };
    source.pipe(mergeMapBounded(project, { concurrency: 2 })).subscribe();
    [0, 1, 2, 3].forEach((n) => source.next(n));
    gates[0]!.complete();
    expect(projected).toEqual([0, 1, 2, 3, 4]);
  });
});

it('mergeMapBounded projects or drops each value exactly once, in order, for any policy and interleaving', () => {
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
        const project = (n: number) => {
          projected.push(n);
          if (next.isSync) {
            next.isSync = false;
            send();
            return EMPTY;
          }
          const gate = new Subject<never>();
          open.push(gate);
          return gate;
        };
        const onDrop = (report: DropReport) => void (dropped += report.dropped);
        const subscription = source
          .pipe(mergeMapBounded(project, { capacity, concurrency, overflow, onDrop }))
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
