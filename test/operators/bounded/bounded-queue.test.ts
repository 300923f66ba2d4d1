import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { config } from 'rxjs';
import { Frame } from '../../../src/index.js';
import { BoundedQueue, reportUnhandled } from '../../../src/operators/bounded/bounded-queue.js';
import { boundDefaults, type Bounds, type Overflow } from '../../../src/operators/bounded/bounds.js';
import type { DropReport } from '../../../src/operators/bounded/drop-report.js';
import { aliveBytes, chunk, endOfTurn, fullChunk } from '../own-bytes/views.js';
import { OverflowError } from '../../../src/operators/bounded/overflow-error.js';
import { cases } from '../../support/cases.js';

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

const queueOfFrames = (bounds: Partial<Bounds<Frame>>) => {
  const reports: DropReport[] = [];
  return {
    queue: new BoundedQueue<Frame>({ ...boundDefaults, onDrop: (report) => reports.push(report), ...bounds }),
    reports,
  };
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
  it.each([
    ['drop-oldest', [2, 3, 4]],
    ['drop-newest', [0, 1, 2]],
  ] as const)('with %s, holds the expected values beyond the capacity', (overflow, expected) => {
    const { queue } = queueOf({ capacity: 3, overflow });
    offerAll(queue, 1, 1, 1, 1, 1);
    expect(numbersIn(queue)).toEqual(expected);
  });

  it.each([
    ['drop-oldest', [2, 3]],
    ['drop-newest', [0, 1]],
  ] as const)('with %s, holds the expected values beyond the byte limit', (overflow, expected) => {
    const { queue } = queueOf({ capacityBytes: 10, overflow });
    offerAll(queue, 4, 4, 3, 5);
    expect(numbersIn(queue)).toEqual(expected);
  });

  it('drops as many of the oldest values as a large value needs', () => {
    const { queue } = queueOf({ capacityBytes: 10 });
    offerAll(queue, 3, 3, 3, 7);
    expect(numbersIn(queue)).toEqual([2, 3]);
  });

  it.each(['drop-oldest', 'drop-newest'] as const)(
    'with %s, drops only a value that is larger than the byte limit',
    (overflow) => {
      const { queue, reports } = queueOf({ capacityBytes: 10, overflow });
      offerAll(queue, 4, 11, 6);
      expect(numbersIn(queue)).toEqual([0, 2]);
      queue.settle();
      expect(reports).toMatchObject([{ dropped: 1, droppedBytes: 11 }]);
    },
  );

  it('throws an OverflowError with a readable message when the bounds are reached and the policy is `error`', () => {
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

  it('reports an overflow once, when at most half of the values are left', () => {
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

  it('reports an overflow only when at most half of the bytes are left', () => {
    const { queue, reports } = queueOf({ capacity: 4, capacityBytes: 10 });
    offerAll(queue, 1, 4, 6); // drops one value
    queue.take();
    queue.settle();
    expect(reports).toEqual([]);
    queue.take();
    queue.settle();
    expect(reports).toHaveLength(1);
  });

  it('reports an overflow when exactly half of the bytes are left', () => {
    const { queue, reports } = queueOf({ capacity: 4, capacityBytes: 10 });
    offerAll(queue, 6, 4, 1); // drops one value
    queue.settle();
    expect(reports).toHaveLength(1);
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

  it('reports waiting values as dropped when it ends, once', () => {
    const { queue, reports } = queueOf({ capacity: 4 });
    offerAll(queue, 5, 6);
    queue.end();
    queue.end();
    expect([queue.hasEnded, queue.size]).toEqual([true, 0]);
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, droppedBytes: 11, total: 2 }]);
  });

  it('starts to count from zero for values after its end', () => {
    const { queue } = queueOf({ capacityBytes: 10, overflow: 'drop-newest' });
    offerAll(queue, 6);
    queue.end();
    offerAll(queue, 4);
    queue.take();
    offerAll(queue, 10, 2);
    expect(numbersIn(queue)).toEqual([0]);
  });

  it('passes an error of `onDrop` at the end to RxJS, and sends the other reports', async () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    try {
      const dropped: number[] = [];
      const { queue } = queueOf({
        capacity: 2,
        onDrop: (report) => {
          dropped.push(report.dropped);
          throw new Error(`mine ${report.dropped}`);
        },
      });
      offerAll(queue, 1, 1, 1);
      queue.end();
      await new Promise((resolve) => setTimeout(resolve));
      expect(dropped).toEqual([1, 2]);
      expect(unhandled.mock.calls).toEqual([[new Error('mine 1')], [new Error('mine 2')]]);
    } finally {
      config.onUnhandledError = null;
    }
  });

  it('has added and counted the value when `onDrop` throws', () => {
    const { queue, clock } = queueOf({
      capacity: 1,
      onDrop: () => {
        throw new Error('mine');
      },
    });
    offerAll(queue, 1, 1);
    clock.now = 2_000;
    expect(() => queue.offer({ n: 2, bytes: 1 })).toThrow('mine');
    expect(numbersIn(queue)).toEqual([2]);
  });

  it.each([NaN, -1, 0.5, Infinity, '1'])('refuses a `bytesOf` that returns %p, and counts the value', (bytes) => {
    const { queue, reports } = queueOf({});
    expect(() => queue.offer({ n: 0, bytes: bytes as number })).toThrow(/`bytesOf` must be a function that returns/);
    queue.end();
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1, droppedBytes: 0 }]);
  });

  it('counts a value when `bytesOf` throws', () => {
    const { queue, reports } = queueOf({
      bytesOf: () => {
        throw new Error('mine');
      },
    });
    expect(() => queue.offer({ n: 0, bytes: 0 })).toThrow('mine');
    queue.end();
    expect(reports).toMatchObject([{ dropped: 1 }]);
  });

  it('copies a frame, so that it does not keep a whole read buffer alive', async () => {
    const queue = new BoundedQueue<Frame>(boundDefaults);
    const [frame] = chunk(65_536, [100, 200]) as [Frame];
    const copy = Buffer.from(frame.data);
    queue.offer(frame);
    await endOfTurn();
    expect(queue.take()).toBe(frame);
    expect(frame.data.buffer.byteLength).toBe(100);
    expect(frame.data).toEqual(copy);
  });

  it('with a capacity of 1, keeps only the newest frame of a full read buffer alive', async () => {
    const queue = new BoundedQueue<Frame>({ ...boundDefaults, capacity: 1 });
    for (const frame of fullChunk(64, 1_000)) queue.offer(frame);
    await endOfTurn();
    expect(queue.take().data.buffer.byteLength).toBe(1_000);
  });

  it('counts payloads, and keeps at most 4/3 of them alive', () => {
    const { queue, reports } = queueOfFrames({ capacityBytes: 9_600 });
    const waiting = Array.from({ length: 12 }, () => chunk(1_000, [0, 800])[0] as Frame);
    for (const frame of waiting) queue.offer(frame);
    expect([queue.size, aliveBytes(waiting)]).toEqual([12, 12_000]);
    queue.offer(chunk(65_536, [0, 1])[0] as Frame);
    expect(queue.size).toBe(12);
    queue.end();
    expect(reports[0]).toMatchObject({ reason: 'overflow', dropped: 1, droppedBytes: 800 });
  });

  it('drops one frame for each new frame of the same size', async () => {
    const { queue, reports } = queueOfFrames({ capacityBytes: 10_000 });
    for (let read = 0; read < 10; read += 1) {
      for (const frame of fullChunk(64, 100)) queue.offer(frame);
      await endOfTurn();
    }
    expect(queue.size).toBe(100);
    queue.end();
    expect(reports[0]).toMatchObject({ reason: 'overflow', dropped: 540, droppedBytes: 54_000 });
  });

  it('never keeps more bytes alive than the limit, nor much less, with any policy', async () => {
    const { queue } = queueOfFrames({ capacityBytes: 20_000 });
    const waiting: Frame[] = [];
    for (let turn = 0; turn < 200; turn += 1) {
      for (const frame of fullChunk(1 + (turn % 12), 1_000)) {
        queue.offer(frame);
        waiting.push(frame);
      }
      waiting.splice(0, waiting.length - queue.size);
      await endOfTurn();
      expect(aliveBytes(waiting)).toBeLessThanOrEqual(20_000);
      if (turn > 5) expect(queue.size).toBe(20);
    }
  });

  it('counts only what a custom `bytesOf` returns', async () => {
    const { queue, reports } = queueOfFrames({ capacityBytes: 4, bytesOf: () => 1 });
    for (const frame of chunk(1_000, [0, 700], [700, 800], [900, 950])) queue.offer(frame);
    await endOfTurn();
    queue.offer(fullChunk(1, 10)[0]!);
    expect(queue.size).toBe(4);
    queue.end();
    expect(reports).toMatchObject([{ reason: 'ended', droppedBytes: 4 }]);
  });

  it('has a correct sum after a waiting value changed its size', () => {
    const { queue } = queueOf({ capacityBytes: 10 });
    const changing = { n: 0, bytes: 2 };
    queue.offer(changing);
    changing.bytes = 10;
    queue.take();
    offerAll(queue, 5, 5);
    expect(numbersIn(queue)).toEqual([0, 1]);
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

describe('reportUnhandled', () => {
  const error = new Error('mine');
  const before = config.onUnhandledError;

  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
    config.onUnhandledError = before;
  });

  it('reports the error to RxJS, in a separate task', () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    reportUnhandled(error);
    expect(unhandled).not.toHaveBeenCalled();
    jest.runAllTimers();
    expect(unhandled.mock.calls).toEqual([[error]]);
    expect(unhandled.mock.calls[0]?.[0]).toBe(error);
  });

  it('reports each thrown value once', () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    for (const thrown of [undefined, 'a text', error]) reportUnhandled(thrown);
    jest.runAllTimers();
    expect(unhandled.mock.calls).toEqual([[undefined], ['a text'], [error]]);
  });

  it('throws the error in a separate task, not to the caller, when RxJS has no handler', () => {
    config.onUnhandledError = null;
    expect(() => reportUnhandled(error)).not.toThrow();
    expect(() => jest.runAllTimers()).toThrow(error);
  });
});
