import { describe, expect, it } from '@jest/globals';
import { map, range, Subject, take, tap } from 'rxjs';
import { BoundedTurns } from '../../../src/operators/bounded/bounded-turns.js';
import { boundDefaults, type Bounds } from '../../../src/operators/bounded/bounds.js';
import type { DropReport } from '../../../src/operators/bounded/drop-report.js';
import { OverflowError } from '../../../src/operators/bounded/overflow-error.js';
import { marbles } from '../stream.js';

const mine = new Error('mine');
const throwOnOverflow = ({ reason }: DropReport): void => {
  if (reason === 'overflow') throw mine;
};

interface Settings {
  readonly concurrency?: number;
  readonly unsub?: string;
  readonly error?: unknown;
}

/** Checks when turns begin. A turn ends at each mark of `ends`. */
const check = (
  { source, ends, expected, sub }: Readonly<Record<'source' | 'ends' | 'expected' | 'sub', string>>,
  bounds: Partial<Bounds<string>> = {},
  { concurrency = 1, unsub = '', error = mine }: Settings = {},
): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }) => {
    const source$ = cold(source, undefined, mine);
    const turns = new BoundedTurns(source$, concurrency, { ...boundDefaults, ...bounds });
    cold(ends).subscribe(turns.done);
    expectObservable(turns.values$, unsub).toBe(expected, undefined, error);
    expectSubscriptions(source$.subscriptions).toBe(sub);
  });

/** Creates turns with a source of numbers. */
const bench = (concurrency: number, bounds: Partial<Bounds<number>> = {}) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const turns = new BoundedTurns<number>(source, concurrency, {
    ...boundDefaults,
    onDrop: (report) => reports.push(report),
    ...bounds,
  });
  return { source, reports, turns };
};

describe('BoundedTurns', () => {
  it('begins a turn at once if there is a free one, else when a turn ends; completes when the last turn has begun', () => {
    check({
      source: '  -abc-|',
      ends: '    ----x--x--x',
      expected: '-a--b--(c|)',
      sub: '     ^----!',
    });
  });

  it('begins as many turns at a time as `concurrency` allows', () => {
    check(
      {
        source: '  -abcd-e-|',
        ends: '    ----x------xxxx',
        expected: '-ab-c------d(e|)',
        sub: '     ^-------!',
      },
      {},
      { concurrency: 2 },
    );
  });

  it('completes with the source when no value waits, even if turns are active', () => {
    check({
      source: '  -a---|',
      ends: '    --------x',
      expected: '-a---|',
      sub: '     ^----!',
    });
  });

  it('drops values beyond the bounds, and reports them when a turn has ended', () => {
    const reports: DropReport[] = [];
    check(
      {
        source: '  -abcd-|',
        ends: '    --------x--x',
        expected: '-a------c--(d|)',
        sub: '     ^-----!',
      },
      { capacity: 2, onDrop: (report) => reports.push(report) },
    );
    expect(reports).toEqual([{ reason: 'overflow', dropped: 1, droppedBytes: 2, total: 1, from: 4, to: 4 }]);
  });

  it('errors at once with the source, and reports waiting values as dropped', () => {
    const reports: DropReport[] = [];
    check(
      {
        source: '  -abc-#',
        ends: '    --------x',
        expected: '-a---#',
        sub: '     ^----!',
      },
      { onDrop: (report) => reports.push(report) },
    );
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
  });

  it('errors with the policy `error`, and unsubscribes from the source', () => {
    check(
      {
        source: '  -abcd-|',
        ends: '    --------x',
        expected: '-a-#',
        sub: '     ^--!',
      },
      { capacity: 1, overflow: 'error' },
      { error: expect.any(OverflowError) },
    );
  });

  it('errors when `onDrop` throws, after the value whose turn has begun', () => {
    check(
      {
        source: '  -abcd---e',
        ends: '    ------x',
        expected: '-a----(c#)',
        sub: '     ^-----!',
      },
      { capacity: 2, onDrop: throwOnOverflow },
    );
    check(
      {
        source: '  -abc 1s d',
        ends: '    -',
        expected: '-a-- 1s #',
        sub: '     ^--- 1s !',
      },
      { capacity: 1, onDrop: throwOnOverflow },
    );
  });

  it('unsubscribes from the source with its consumer, and drops waiting values', () => {
    const reports: DropReport[] = [];
    check(
      {
        source: '  -abc-------|',
        ends: '    --------x',
        expected: '-a----',
        sub: '     ^----!',
      },
      { onDrop: (report) => reports.push(report) },
      { unsub: ' ^----!' },
    );
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
  });

  it('after its end, begins no turn, accepts no value, and reports its drops once', () => {
    const { source, reports, turns } = bench(1);
    const seen: unknown[] = [];
    turns.values$.subscribe({ next: (n) => seen.push(n), complete: () => seen.push('complete') });
    [1, 2, 3].forEach((n) => source.next(n));
    turns.end();
    turns.done();
    source.next(4);
    source.complete();
    turns.end();
    expect(seen).toEqual([1]);
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
  });

  it('keeps the order of values that arrive while a turn begins', () => {
    const { source, turns } = bench(2);
    const seen: number[] = [];
    turns.values$.subscribe((n) => {
      seen.push(n);
      if (n !== 3) return;
      turns.done();
      source.next(5); // a turn is free, and 4 waits
    });
    [1, 2, 3, 4].forEach((n) => source.next(n));
    turns.done();
    turns.done();
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });

  it('does not grow the stack with turns that end synchronously', () => {
    const { source, turns } = bench(1, { capacity: 20_000 });
    let begun = 0;
    turns.values$.subscribe(() => {
      begun += 1;
      if (begun > 1) turns.done();
    });
    for (let n = 0; n <= 20_000; n += 1) source.next(n);
    expect(begun).toBe(1);
    turns.done();
    expect(begun).toBe(20_001);
  });

  it('stops a source that emits synchronously during `subscribe`', () => {
    let emitted = 0;
    const endless = range(0, 1_000_000).pipe(map(() => (emitted += 1)));
    const turns = new BoundedTurns(endless, 1, boundDefaults);
    const seen: number[] = [];
    turns.values$.pipe(tap(turns.done), take(3)).subscribe((n) => seen.push(n));
    expect([seen, emitted]).toEqual([[1, 2, 3], 3]);
  });
});
