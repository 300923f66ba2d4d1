import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { concat, config, defer, map, NEVER, Observable, of, pipe, range, Subject, throwError } from 'rxjs';
import type { BoundOptions } from '../../src/operators/bounded/bounds.js';
import type { DropReport } from '../../src/operators/bounded/drop-report.js';
import { OverflowError } from '../../src/operators/bounded/overflow-error.js';
import { toAsyncIterable } from '../../src/operators/to-async-iterable.js';
import type { Frame } from '../../src/protocol/frame.js';
import { bufferSizes, fullChunk } from './own-bytes/views.js';

const mine = new Error('mine');
const done = { done: true, value: undefined };
const yielded = <T>(value: T) => ({ done: false, value });
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Creates an iterator over a source to push to. */
const bench = (options: BoundOptions<number> = {}) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const iterable = toAsyncIterable<number>({ onDrop: (report) => reports.push(report), ...options })(source);
  const iterator = iterable[Symbol.asyncIterator]() as Required<AsyncIterableIterator<number>>;
  return { source, reports, iterable, iterator };
};

/** Returns the state of a promise one microtask later, without waiting for it. */
const stateOf = async (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([promise, Promise.resolve('pending')]);

describe('toAsyncIterable', () => {
  it('emits every value to a loop, in order, and ends with the source', async () => {
    const seen: number[] = [];
    for await (const n of toAsyncIterable()(range(1, 5))) seen.push(n);
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });

  it('can be last in a pipe', async () => {
    const read = pipe(
      map((n: number) => n * 2),
      toAsyncIterable(),
    );
    const seen: number[] = [];
    for await (const n of read(of(1, 2))) seen.push(n);
    expect(seen).toEqual([2, 4]);
  });

  it('subscribes when the first value is requested, separately for each loop', async () => {
    let subscriptions = 0;
    const source = defer(() => of((subscriptions += 1)));
    const iterable = toAsyncIterable()(source);
    const first = iterable[Symbol.asyncIterator]();
    expect(subscriptions).toBe(0);
    expect(await first.next()).toEqual(yielded(1));
    expect(await iterable[Symbol.asyncIterator]().next()).toEqual(yielded(2));
    expect(await first.next()).toEqual(done);
    expect(subscriptions).toBe(2);
  });

  it('holds values that the loop has not requested, and drops the oldest beyond its bounds', async () => {
    const { source, iterator, reports } = bench({ capacity: 2 });
    const first = iterator.next();
    [1, 2, 3, 4].forEach((n) => source.next(n));
    source.complete();
    expect(await first).toEqual(yielded(1));
    expect(await iterator.next()).toEqual(yielded(3));
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1, total: 1 }]);
    expect(await iterator.next()).toEqual(yielded(4));
    expect(await iterator.next()).toEqual(done);
    expect(reports).toHaveLength(1);
  });

  it('answers several requests in order', async () => {
    const { source, iterator } = bench();
    const pending = [iterator.next(), iterator.next(), iterator.next(), iterator.next()];
    source.next(1);
    source.next(2);
    source.complete();
    expect(await Promise.all(pending)).toEqual([yielded(1), yielded(2), done, done]);
  });

  it('throws the error of the source once, after the waiting values', async () => {
    const { source, iterator } = bench();
    const first = iterator.next();
    source.next(1);
    source.next(2);
    source.error(mine);
    expect(await first).toEqual(yielded(1));
    expect(await iterator.next()).toEqual(yielded(2));
    await expect(iterator.next()).rejects.toBe(mine);
    expect(await iterator.next()).toEqual(done);
  });

  it('rejects the first pending request with the error', async () => {
    const { source, iterator } = bench();
    const pending = [iterator.next(), iterator.next()];
    // eslint-disable-next-line rxjs-x/throw-error -- an error may be any value
    source.error(undefined);
    await expect(pending[0]).rejects.toBeUndefined();
    expect(await pending[1]).toEqual(done);
    expect(
      await toAsyncIterable()(throwError(() => mine))
        [Symbol.asyncIterator]()
        .next()
        .catch((error: unknown) => error),
    ).toBe(mine);
  });

  it('emits `undefined` and Promises unchanged', async () => {
    const promise = Promise.resolve(1);
    const seen: unknown[] = [];
    const iterator = toAsyncIterable()(of(undefined, promise))[Symbol.asyncIterator]();
    seen.push(await iterator.next(), await iterator.next(), await iterator.next());
    expect(seen).toEqual([yielded(undefined), yielded(promise), done]);
  });

  it('returns itself as its iterator', async () => {
    const { source, iterator } = bench();
    queueMicrotask(() => {
      source.next(1);
      source.complete();
    });
    const seen: number[] = [];
    for await (const n of iterator) seen.push(n);
    expect(seen).toEqual([1]);
  });
});

describe('a loop that ends early', () => {
  it.each([
    ['break', () => true],
    [
      'an exception',
      () => {
        throw mine;
      },
    ],
  ])('by %s unsubscribes, and reports the waiting values as dropped', async (_how, leave) => {
    const { source, iterable, reports } = bench();
    queueMicrotask(() => [1, 2, 3].forEach((n) => source.next(n)));
    const loop = async () => {
      for await (const n of iterable) if (n === 1 && leave()) break;
    };
    await loop().catch((error: unknown) => expect(error).toBe(mine));
    expect(source.observed).toBe(false);
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
  });

  it('unsubscribes at once, also while a request is pending', async () => {
    const { source, iterator } = bench();
    const pending = [iterator.next(), iterator.next()];
    const left = iterator.return();
    expect(source.observed).toBe(false);
    expect(await Promise.all([...pending, left, iterator.next(), iterator.return()])).toEqual([
      done,
      done,
      done,
      done,
      done,
    ]);
  });

  it('throws the error passed to `throw`', async () => {
    const { source, iterator, reports } = bench();
    const pending = iterator.next();
    source.next(1);
    source.next(2);
    const thrown = iterator.throw(mine);
    expect(source.observed).toBe(false);
    await expect(thrown).rejects.toBe(mine);
    expect([await pending, await iterator.next()]).toEqual([yielded(1), done]);
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 1 }]);
  });

  it('never subscribes if it ended before it began', async () => {
    const { source, iterator, reports } = bench();
    expect(await iterator.return()).toEqual(done);
    expect(await iterator.next()).toEqual(done);
    expect([source.observed, reports]).toEqual([false, []]);
  });

  it('drops an error that it did not reach', async () => {
    const { source, iterator } = bench();
    const first = iterator.next();
    source.next(1);
    source.error(mine);
    await first;
    expect(await iterator.return()).toEqual(done);
    expect(await iterator.next()).toEqual(done);
  });

  it('stops a source that emits synchronously during `subscribe`', async () => {
    let emitted = 0;
    const endless = range(0, 1_000_000).pipe(map(() => (emitted += 1)));
    const iterator = toAsyncIterable({ capacity: 2, overflow: 'error' })(endless)[Symbol.asyncIterator]();
    expect(await iterator.next()).toEqual(yielded(1));
    expect(emitted).toBe(4);
  });
});

describe('drops of toAsyncIterable', () => {
  it('end the loop with an OverflowError with the policy `error`, after the waiting values', async () => {
    const { source, iterator, reports } = bench({ capacity: 2, overflow: 'error' });
    const first = iterator.next();
    [1, 2, 3, 4, 5].forEach((n) => source.next(n));
    expect(source.observed).toBe(false);
    expect([await first, await iterator.next(), await iterator.next()]).toEqual([yielded(1), yielded(2), yielded(3)]);
    await expect(iterator.next()).rejects.toBeInstanceOf(OverflowError);
    expect(await iterator.next()).toEqual(done);
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1, total: 1 }]);
  });

  it('end the loop with the error of `onDrop`, after the waiting values', async () => {
    const { source, iterator } = bench({
      capacity: 2,
      onDrop: () => {
        throw mine;
      },
    });
    const first = iterator.next();
    [1, 2, 3, 4].forEach((n) => source.next(n));
    expect(await first).toEqual(yielded(1));
    expect(await iterator.next()).toEqual(yielded(3)); // half is free: `onDrop` is called
    expect(source.observed).toBe(false);
    expect(await iterator.next()).toEqual(yielded(4));
    await expect(iterator.next()).rejects.toBe(mine);
  });

  it('end the loop with the error of `onDrop` after the source has completed', async () => {
    const { source, iterator } = bench({
      capacity: 1,
      onDrop: () => {
        throw mine;
      },
    });
    const first = iterator.next();
    [1, 2, 3].forEach((n) => source.next(n));
    source.complete();
    expect([await first, await iterator.next()]).toEqual([yielded(1), yielded(3)]);
    await expect(iterator.next()).rejects.toBe(mine);
  });

  it('do not replace the error of the source by an error of `onDrop`', async () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    try {
      const other = new Error('of onDrop');
      const { source, iterator } = bench({
        capacity: 1,
        onDrop: () => {
          throw other;
        },
      });
      const first = iterator.next();
      [1, 2, 3].forEach((n) => source.next(n));
      source.error(mine);
      expect([await first, await iterator.next()]).toEqual([yielded(1), yielded(3)]);
      await expect(iterator.next()).rejects.toBe(mine);
      await new Promise((resolve) => setTimeout(resolve));
      expect(unhandled.mock.calls).toEqual([[other]]);
    } finally {
      config.onUnhandledError = null;
    }
  });

  it('pass an error of `onDrop` to RxJS if it has ended the loop itself', async () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    try {
      const { source, iterator } = bench({
        capacity: 1,
        onDrop: () => {
          void iterator.return();
          throw mine;
        },
      });
      const first = iterator.next();
      [1, 2, 3].forEach((n) => source.next(n));
      expect([await first, await iterator.next(), await iterator.next()]).toEqual([yielded(1), yielded(3), done]);
      await new Promise((resolve) => setTimeout(resolve));
      expect(unhandled.mock.calls).toEqual([[mine]]);
    } finally {
      config.onUnhandledError = null;
    }
  });

  it('allow `onDrop` to end the loop', async () => {
    const { source, iterator } = bench({ capacity: 1, onDrop: () => void iterator.return() });
    const first = iterator.next();
    [1, 2, 3].forEach((n) => source.next(n));
    expect([await first, await iterator.next(), await iterator.next()]).toEqual([yielded(1), yielded(3), done]);
    expect(source.observed).toBe(false);
  });
});

it('keeps the order for a source that emits during a request', async () => {
  const values = new Subject<number>();
  let pending: Promise<unknown> | undefined;
  const source = new Observable<number>((subscriber) => {
    subscriber.next(1);
    pending = iterator.next();
    subscriber.next(2);
    return values.subscribe(subscriber);
  });
  const iterator = toAsyncIterable()(source)[Symbol.asyncIterator]();
  expect(await iterator.next()).toEqual(yielded(1));
  expect(await pending).toEqual(yielded(2));
  const next = iterator.next();
  expect(await stateOf(next)).toBe('pending');
  values.complete();
  expect(await next).toEqual(done);
});

it('refuses invalid options at once', () => {
  expect(() => toAsyncIterable({ capacity: 0 })).toThrow(/`capacity` must be a whole number/);
  expect(() => toAsyncIterable({ highWaterMark: 1 } as object)).toThrow(/`highWaterMark` must be left out/);
});

it('emits or drops each value exactly once, in order, for any policy and interleaving', async () => {
  const step = fc.constantFrom('send' as const, 'send' as const, 'ask' as const);
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 80, size: 'max' }),
      fc.constantFrom<('drop-oldest' | 'drop-newest' | 'error')[]>('drop-oldest', 'drop-newest', 'error'),
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom('complete', 'error', 'return'),
      async (steps, overflow, capacity, ending) => {
        const { source, iterator, reports } = bench({ capacity, overflow });
        const answers: Promise<IteratorResult<number>>[] = [iterator.next()];
        let sent = 0;
        for (const each of steps) {
          if (each === 'ask') answers.push(iterator.next());
          else if (source.observed) source.next((sent += 1));
        }
        if (ending === 'return') await iterator.return();
        else if (ending === 'error') source.error(mine);
        else source.complete();
        const seen: number[] = [];
        for (let ends = 0, i = 0; ends < 2; i += 1) {
          const answer = await (answers[i] ?? iterator.next()).catch(() => done as IteratorResult<number>);
          if (answer.done === true) ends += 1;
          else seen.push(answer.value);
        }
        await Promise.allSettled(answers);
        expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
        expect(seen.length + sum(reports.map(({ dropped }) => dropped))).toBe(sent);
      },
    ),
  );
});

it('keeps a subscription no longer than its loop', async () => {
  const finalized = jest.fn();
  const source = new Observable<number>((subscriber) => {
    subscriber.next(1);
    return finalized;
  });
  for await (const _ of toAsyncIterable()(concat(source, NEVER))) break;
  expect(finalized).toHaveBeenCalledTimes(1);
});

it('does not copy a frame that a loop waits for', async () => {
  const source = new Subject<Frame>();
  const loop = toAsyncIterable()(source)[Symbol.asyncIterator]();
  const first = loop.next();
  const frames = fullChunk(3, 1_000);
  for (const frame of frames) source.next(frame);
  expect((await first).value).toBe(frames[0]);
  expect(bufferSizes(frames)).toEqual([3_000, 1_000, 1_000]);
  await loop.return?.();
});
