import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EMPTY, NEVER, type Observable, Subject, map, mergeMap, of } from 'rxjs';
import { Frame } from '../../src/index.js';
import {
  BoundedQueue,
  type Bounds,
  type DropReport,
  type Overflow,
  OverflowError,
  boundDefaults,
} from '../../src/operators/bounded/bounded-queue.js';
import { BoundedReader } from '../../src/operators/bounded/bounded-reader.js';
import { Ring, SizedQueue } from '../../src/operators/bounded/ring.js';
import type { SourceError } from '../../src/operators/items/item.js';
import { type MergeMapBoundedOptions, mergeMapBounded } from '../../src/operators/merge-map-bounded.js';
import { cases } from '../support/cases.js';
import { aliveBytes, aliveOf, chunk } from './own-bytes/views.js';
import { marbles } from './stream.js';

interface Sized {
  readonly n: number;
  readonly bytes: number;
}

const queueOf = (bounds: Partial<Bounds<Sized>>) => {
  const reports: DropReport[] = [];
  const clock = { now: 0 };
  const queue = new BoundedQueue<Sized>({
    ...boundDefaults,
    bytesOf: ({ bytes }) => bytes,
    onDrop: (report) => reports.push(report),
    scheduler: { ...boundDefaults.scheduler, now: () => clock.now },
    ...bounds,
  });
  return { queue, reports, clock };
};

const offerAll = (queue: BoundedQueue<Sized>, ...sizes: readonly number[]): void => {
  sizes.forEach((bytes, n) => queue.offer({ n, bytes }));
};

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

describe('BoundedQueue', () => {
  it('throws a readable OverflowError when the bounds are reached and the policy is `error`', () => {
    const { queue, reports } = queueOf({ capacity: 2, capacityBytes: 10, overflow: 'error' });
    offerAll(queue, 1, 2);
    const overflow = { name: 'OverflowError', capacity: 2, capacityBytes: 10 };
    expect(() => queue.offer({ n: 3, bytes: 3 })).toThrow(expect.objectContaining(overflow));
    expect(() => queue.offer({ n: 4, bytes: 10 })).toThrow(
      /slower than the feed: 2 values of 3 bytes .* a value of 10 bytes .* `capacity`/,
    );
    expect(() => queue.offer({ n: 4, bytes: 11 })).toThrow(/A value of 11 bytes is larger than `capacityBytes`\./);
    queue.end();
    expect(reports).toMatchObject([
      { reason: 'overflow', dropped: 3, droppedBytes: 24, total: 3 },
      { reason: 'ended', dropped: 2, droppedBytes: 3, total: 5 },
    ]);
  });

  it.each([NaN, -1, 0.5, Infinity, '1'])('refuses a `bytesOf` that returns %p, and counts the value', (bytes) => {
    const { queue, reports } = queueOf({});
    expect(() => queue.offer({ n: 0, bytes: bytes as number })).toThrow(/`bytesOf` must be a function that returns/);
    queue.end();
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1, droppedBytes: 0 }]);
  });

  it('counts payloads, and keeps at most 4/3 of them alive', () => {
    const reports: DropReport[] = [];
    const onDrop = (report: DropReport) => reports.push(report);
    const queue = new BoundedQueue<Frame>({ ...boundDefaults, capacityBytes: 9_600, onDrop });
    const waiting = Array.from({ length: 12 }, () => chunk(1_000, [0, 800])[0] as Frame);
    for (const frame of waiting) queue.offer(frame);
    expect([queue.size, aliveBytes(waiting)]).toEqual([12, 12_000]);
    queue.offer(chunk(65_536, [0, 1])[0] as Frame);
    expect(queue.size).toBe(12);
    queue.end();
    expect(reports[0]).toMatchObject({ reason: 'overflow', dropped: 1, droppedBytes: 800 });
  });

  it('has the same values and reports as a plain array, for any policy, interleaving and clock', () => {
    const wait = fc.integer({ min: -1_100, max: 700 });
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ bytes: fc.integer({ min: 0, max: 12 }), wait }) },
      { weight: 2, arbitrary: fc.constant('take' as const) },
    );
    const bounds = fc.record({
      overflow: fc.constantFrom<Overflow[]>('drop-oldest', 'drop-newest', 'error'),
      capacity: fc.integer({ min: 1, max: 6 }),
      capacityBytes: fc.integer({ min: 1, max: 30 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), bounds, (steps, { overflow, ...limits }) => {
        const { queue, reports, clock } = queueOf({ overflow, ...limits });
        const waiting: Sized[] = [];
        const expected: DropReport[] = [];
        let drops: Omit<DropReport, 'reason' | 'total'> | undefined;
        let total = 0;
        const bytesIn = (values: readonly Sized[]) => sum(values.map(({ bytes }) => bytes));
        const fits = (bytes: number) =>
          waiting.length < limits.capacity && bytesIn(waiting) + bytes <= limits.capacityBytes;
        const drop = (values: readonly Sized[]) => {
          const { dropped, droppedBytes, from } = drops ?? { dropped: 0, droppedBytes: 0, from: clock.now };
          const counts = { dropped: dropped + values.length, droppedBytes: droppedBytes + bytesIn(values) };
          drops = { ...counts, from, to: clock.now };
          total += values.length;
        };
        const report = (reason: DropReport['reason']) => {
          if (drops !== undefined) expected.push({ reason, ...drops, total });
          drops = undefined;
        };
        const offer = (value: Sized) => {
          if (overflow === 'drop-oldest' && value.bytes <= limits.capacityBytes)
            while (!fits(value.bytes)) drop(waiting.splice(0, 1));
          if (fits(value.bytes)) waiting.push(value);
          else drop([value]);
          const isRefused = overflow === 'error' && waiting.at(-1) !== value;
          if (isRefused) expect(() => queue.offer(value)).toThrow(OverflowError);
          else queue.offer(value);
          // A long overflow is reported every second, even if the clock was set back.
          if (!isRefused && drops && Math.abs(drops.to - drops.from) >= 1_000) report('overflow');
        };
        steps.forEach((each, n) => {
          if (each === 'take') {
            if (waiting.length === 0) return;
            expect(queue.take()).toEqual(waiting.shift());
            queue.settle();
            // An overflow is over once half of the values and of the bytes are free.
            if (waiting.length * 2 <= limits.capacity && bytesIn(waiting) * 2 <= limits.capacityBytes)
              report('overflow');
          } else {
            clock.now += each.wait;
            offer({ n, bytes: each.bytes });
          }
          expect([queue.size, reports]).toEqual([waiting.length, expected]);
        });
        queue.end();
        report('overflow');
        if (waiting.length > 0) drop(waiting);
        report('ended');
        expect(reports).toEqual(expected);
      }),
      { numRuns: cases(200) },
    );
  });
});

describe('BoundedReader', () => {
  it('accepts no value after reporting a failure, even if the source continues', () => {
    const source = new Subject<number>();
    const seen: unknown[] = [];
    const taker = {
      wants: false,
      next: (value: number) => seen.push(value),
      end: (failure: SourceError | undefined) => {
        seen.push(failure?.error);
        source.next(3);
      },
    };
    const mine = new Error('mine');
    const onDrop = () => {
      throw mine;
    };
    const reader = new BoundedReader<number>(source, { ...boundDefaults, capacity: 1, onDrop }, taker);
    reader.pull();
    [1, 2].forEach((n) => source.next(n));
    taker.wants = true;
    reader.pull();
    expect(seen).toEqual([2, mine]);
    expect(source.observed).toBe(false);
  });

  it("passes on a value that arrived during `next`, even if the consumer doesn't pull for it", () => {
    const source = new Subject<number>();
    const seen: number[] = [];
    const taker = {
      wants: true,
      next: (value: number) => {
        taker.wants = false;
        if (seen.push(value) === 1) source.next(2);
        taker.wants = true;
      },
      end: () => undefined,
    };
    new BoundedReader<number>(source, boundDefaults, taker).pull();
    source.next(1);
    expect(seen).toEqual([1, 2]);
  });
});

describe('Ring', () => {
  it('returns values in order of insertion, with the right size, oldest value and bytes, for any interleaving', () => {
    const push = fc.record({ push: fc.option(fc.nat(), { nil: undefined }) });
    const step = fc.oneof(
      { weight: 12, arbitrary: push },
      { weight: 9, arbitrary: fc.constant('shift' as const) },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
        const ring = new Ring<number | undefined>();
        const queue = new SizedQueue<{ readonly bytes: number }>();
        const model: (number | undefined)[] = [];
        for (const each of steps) {
          if (each === 'shift') {
            queue.shift();
            expect(ring.shift()).toBe(model.shift());
          } else if (each === 'clear') {
            ring.clear();
            queue.clear();
            model.length = 0;
          } else {
            ring.push(each.push);
            queue.push({ bytes: each.push ?? 0 });
            model.push(each.push);
          }
          expect(queue.bytes).toBe(model.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0));
          expect([ring.size, ring.oldest, ring.newest]).toEqual([model.length, model[0], model.at(-1)]);
          expect(model.map((_, index) => ring.at(index))).toEqual(model);
        }
      }),
      { numRuns: cases(100) },
    );
  });

  it("doesn't keep removed values alive", async () => {
    const ring = new Ring<object>();
    const removed: WeakRef<object>[] = [];
    const pushMany = (count: number) => {
      for (let n = 0; n < count; n += 1) {
        const value = {};
        removed.push(new WeakRef(value));
        ring.push(value);
      }
    };
    pushMany(40);
    while (ring.size > 20) ring.shift();
    ring.clear();
    pushMany(5);
    while (ring.size > 0) ring.shift();
    expect([await aliveOf(removed), ring.size]).toEqual([0, 0]);
  });
});

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
  it('starts the next value when the previous one is done, and drops the oldest or the newest beyond its capacity', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const source = hot('--a-b-c-d-e-------|');
      const sub = '       ^-----------------!';
      const inner = cold('  -----(x|)');
      const inners = ['   --^----!', '   -------^----!', '   ------------^----!'];
      const oldest = '    -------a----c----e|';
      const newest = '    -------a----b----d|';
      const boundedTo = (work: typeof inner, overflow?: Overflow) =>
        source.pipe(mergeMapBounded((value) => work.pipe(map(() => value)), { capacity: 1, overflow }));
      expectObservable(boundedTo(inner)).toBe(oldest);
      expectObservable(boundedTo(cold('-----(x|)'), 'drop-newest')).toBe(newest);
      expectSubscriptions(source.subscriptions).toBe([sub, sub]);
      expectSubscriptions(inner.subscriptions).toBe(inners);
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
});

describe('drops of mergeMapBounded', () => {
  it('are reported after a second, by the clock of the scheduler', () => {
    const reports: DropReport[] = [];
    marbles(({ cold, expectObservable }) => {
      const options = { capacity: 1, onDrop: (report: DropReport) => reports.push(report) };
      const source = cold('a 99ms (bcd) 995ms e 99ms f'); // c, d, e and f each drop the value before
      expectObservable(source.pipe(mergeMapBounded(() => NEVER, options)), '3s !').toBe('');
    });
    expect(reports.map(({ dropped }) => dropped)).toEqual([3, 1, 1]);
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
