import { describe, expect, it } from '@jest/globals';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Subject } from 'rxjs';
import { Frame } from '../../src/index.js';
import {
  boundDefaults,
  BoundedQueue,
  type Bounds,
  type DropReport,
  type Overflow,
  OverflowError,
} from '../../src/operators/bounded/bounded-queue.js';
import { BoundedReader } from '../../src/operators/bounded/bounded-reader.js';
import { Ring } from '../../src/operators/bounded/ring.js';
import type { SourceError } from '../../src/operators/items/item.js';
import { cases } from '../support/cases.js';
import { aliveBytes, chunk } from './own-bytes/views.js';
import fc from 'fast-check';

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

const numbersIn = (queue: BoundedQueue<Sized>): number[] =>
  Array.from({ length: queue.size }, () => {
    const { n } = queue.take();
    return n;
  });

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

describe('BoundedQueue', () => {
  it('throws a readable OverflowError when the bounds are reached and the policy is `error`', () => {
    const { queue, reports } = queueOf({ capacity: 2, capacityBytes: 10, overflow: 'error' });
    offerAll(queue, 1, 2);
    expect(() => queue.offer({ n: 3, bytes: 3 })).toThrow(
      expect.objectContaining({
        name: 'OverflowError',
        capacity: 2,
        capacityBytes: 10,
        message: expect.stringMatching(/slower than the feed: 2 values of 3 bytes .* a value of 3 bytes .* `capacity`/),
      }),
    );
    expect(() => queue.offer({ n: 4, bytes: 10 })).toThrow(/slower than the feed: .* a value of 10 bytes/);
    expect(() => queue.offer({ n: 4, bytes: 11 })).toThrow(/A value of 11 bytes is larger than `capacityBytes`\./);
    expect(() => queue.offer({ n: 4, bytes: 11 })).toThrow(OverflowError);
    queue.end();
    expect(reports).toMatchObject([
      { reason: 'overflow', dropped: 4, droppedBytes: 35, total: 4 },
      { reason: 'ended', dropped: 2, droppedBytes: 3, total: 6 },
    ]);
  });

  it("reports an overflow once, when it's down to half of the values", () => {
    const { queue, reports, clock } = queueOf({ capacity: 4 });
    clock.now = 100;
    offerAll(queue, 1, 1, 1, 1, 1);
    clock.now = 900;
    queue.offer({ n: 5, bytes: 1 });
    queue.take();
    queue.settle();
    queue.offer({ n: 6, bytes: 1 });
    queue.offer({ n: 7, bytes: 1 });
    queue.take();
    queue.settle();
    expect(reports).toEqual([]);
    queue.take();
    queue.settle();
    queue.settle();
    expect(reports).toEqual([{ reason: 'overflow', dropped: 3, droppedBytes: 3, total: 3, from: 100, to: 900 }]);
    offerAll(queue, 1, 1, 1);
    numbersIn(queue);
    queue.settle();
    expect(reports).toMatchObject([{ total: 3 }, { dropped: 1, total: 4 }]);
  });

  it('reports a long overflow every second', () => {
    const { queue, reports, clock } = queueOf({ capacity: 1 });
    for (clock.now = 0; clock.now <= 2_500; clock.now += 100) offerAll(queue, 1);
    queue.end();
    expect(reports.map(({ reason, dropped, from, to }) => [reason, dropped, from, to])).toEqual([
      ['overflow', 11, 100, 1_100],
      ['overflow', 11, 1_200, 2_200],
      ['overflow', 3, 2_300, 2_500],
      ['ended', 1, 2_600, 2_600],
    ]);
  });

  it('resets its counts before `onDrop` can throw or cause another drop', () => {
    const dropped: number[] = [];
    const { queue, clock } = queueOf({
      capacity: 1,
      onDrop: (report) => {
        dropped.push(report.dropped);
        if (report.total === 2) offerAll(queue, 1, 1);
        throw new Error('mine');
      },
    });
    offerAll(queue, 1, 1);
    clock.now = 2_000;
    expect(() => offerAll(queue, 1)).toThrow('mine');
    expect(() => {
      queue.take();
      queue.settle();
    }).toThrow('mine');
    expect(dropped).toEqual([2, 2]);
  });

  it("reports an overflow of bytes when it's down to half of the bytes", () => {
    const { queue, reports } = queueOf({ capacityBytes: 8 });
    offerAll(queue, 1, 1, 6, 1);
    for (const expected of [0, 1]) {
      queue.take();
      queue.settle();
      expect(reports).toHaveLength(expected);
    }
  });

  it('reports a long overflow even if the clock was set back by a second', () => {
    const { queue, reports, clock } = queueOf({ capacity: 1 });
    for (const now of [5_000, 5_000, 4_001, 4_000]) {
      clock.now = now;
      offerAll(queue, 1);
    }
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 3, from: 5_000, to: 4_000 }]);
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

  it('has the same order, bounds and counts as a plain array, for any policy and interleaving', () => {
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ bytes: fc.integer({ min: 0, max: 12 }), wait: fc.integer({ min: 0, max: 400 }) }),
      },
      { weight: 2, arbitrary: fc.constant('take' as const) },
    );
    const overflows = fc.constantFrom<Overflow[]>('drop-oldest', 'drop-newest', 'error');
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120, size: 'max' }),
        overflows,
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 30 }),
        (steps, overflow, capacity, capacityBytes) => {
          const { queue, reports, clock } = queueOf({ capacity, capacityBytes, overflow });
          const model: Sized[] = [];
          let taken = 0;
          let sent = 0;
          let sentBytes = 0;
          let takenBytes = 0;
          let errors = 0;
          const bytesIn = () => sum(model.map(({ bytes }) => bytes));
          const fits = (bytes: number) => model.length < capacity && bytesIn() + bytes <= capacityBytes;
          steps.forEach((each, n) => {
            if (each === 'take') {
              if (queue.size === 0) return;
              const value = queue.take();
              expect(value).toEqual(model.shift());
              queue.settle();
              taken += 1;
              takenBytes += value.bytes;
              return;
            }
            clock.now += each.wait;
            const value = { n, bytes: each.bytes };
            sent += 1;
            sentBytes += each.bytes;
            if (overflow === 'drop-oldest' && each.bytes <= capacityBytes) while (!fits(each.bytes)) model.shift();
            const isAccepted = fits(each.bytes);
            if (isAccepted) model.push(value);
            try {
              queue.offer(value);
            } catch (error) {
              expect(error).toBeInstanceOf(OverflowError);
              errors += 1;
              expect(isAccepted).toBe(false);
            }
            expect(queue.size).toBe(model.length);
          });
          const waiting = model.length;
          queue.end();
          const dropped = sum(reports.map((report) => report.dropped));
          expect(taken + dropped).toBe(sent);
          expect(takenBytes + sum(reports.map((report) => report.droppedBytes))).toBe(sentBytes);
          expect(reports.at(-1)?.total ?? 0).toBe(dropped);
          expect(sum(reports.filter(({ reason }) => reason === 'ended').map((report) => report.dropped))).toBe(waiting);
          if (overflow === 'error') expect(errors).toBe(dropped - waiting);
          else expect(errors).toBe(0);
        },
      ),
      { numRuns: cases(100) },
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
  it('returns values in order of insertion, with the right size and oldest value, for any interleaving', () => {
    const step = fc.oneof(
      { weight: 12, arbitrary: fc.record({ push: fc.option(fc.nat(), { nil: undefined }) }) },
      { weight: 9, arbitrary: fc.constant('shift' as const) },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
        const ring = new Ring<number | undefined>();
        let model: (number | undefined)[] = [];
        for (const each of steps) {
          if (each === 'shift') expect(ring.shift()).toBe(model.shift());
          else if (each === 'clear') {
            ring.clear();
            model = [];
          } else {
            ring.push(each.push);
            model.push(each.push);
          }
          expect([ring.size, ring.oldest]).toEqual([model.length, model[0]]);
          expect(model.map((_, index) => ring.at(index))).toEqual(model);
        }
        while (model.length > 0) expect(ring.shift()).toBe(model.shift());
        expect(ring.size).toBe(0);
      }),
      { numRuns: cases(100) },
    );
  });

  it("doesn't keep removed values alive", async () => {
    const ring = new Ring<object>();
    const collected = await collectedOf((tracked) => {
      for (let i = 0; i < 40; i += 1) ring.push(tracked({}));
      while (ring.size > 20) ring.shift();
      ring.clear();
      for (let i = 0; i < 5; i += 1) ring.push(tracked({}));
      while (ring.size > 0) ring.shift();
    });
    expect(collected).toBe(45);
    expect(ring.size).toBe(0);
  });
});

// Counts how many of the created objects get garbage-collected.
const collectedOf = async (use: (tracked: (object: object) => object) => void): Promise<number> => {
  const references: WeakRef<object>[] = [];
  use((object) => {
    references.push(new WeakRef(object));
    return object;
  });
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const count = () => references.filter((reference) => reference.deref() === undefined).length;
  for (let turn = 0; turn < 20 && count() < references.length; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
  }
  return count();
};
