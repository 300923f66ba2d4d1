import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { concat, config, defer, map, NEVER, Observable, of, pipe, range, Subject, throwError } from 'rxjs';
import type { BoundOptions } from '../../src/operators/bounded/bounds.js';
import type { DropReport } from '../../src/operators/bounded/drop-report.js';
import { OverflowError } from '../../src/operators/bounded/overflow-error.js';
import { toAsyncIterable } from '../../src/operators/to-async-iterable.js';
import type { Frame } from '../../src/protocol/frame.js';
import { bufferSizes, endOfTurn, fullChunk } from './memory/views.js';

const mine = new Error('mine');
const done = { done: true, value: undefined };
const given = <T>(value: T) => ({ done: false, value });
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** An iterator over a source to push to. */
const bench = (options: BoundOptions<number> = {}) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const iterable = toAsyncIterable<number>({ onDrop: (report) => reports.push(report), ...options })(source);
  const iterator = iterable[Symbol.asyncIterator]() as Required<AsyncIterableIterator<number>>;
  return { source, reports, iterable, iterator };
};

/** A turn of the microtask queue later: what a promise has come to, without waiting for it. */
const stateOf = async (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([promise, Promise.resolve('pending')]);

describe('toAsyncIterable', () => {
  it('gives a loop every value, in order, and ends with the source', async () => {
    const seen: number[] = [];
    for await (const n of toAsyncIterable()(range(1, 5))) seen.push(n);
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });

  it('comes last in a pipe', async () => {
    const read = pipe(
      map((n: number) => n * 2),
      toAsyncIterable(),
    );
    const seen: number[] = [];
    for await (const n of read(of(1, 2))) seen.push(n);
    expect(seen).toEqual([2, 4]);
  });

  it('subscribes when the first value is asked for, for each loop anew', async () => {
    let subscriptions = 0;
    const source = defer(() => of((subscriptions += 1)));
    const iterable = toAsyncIterable()(source);
    const first = iterable[Symbol.asyncIterator]();
    expect(subscriptions).toBe(0);
    expect(await first.next()).toEqual(given(1));
    expect(await iterable[Symbol.asyncIterator]().next()).toEqual(given(2));
    expect(await first.next()).toEqual(done);
    expect(subscriptions).toBe(2);
  });

  it('holds what the loop has not asked for, and drops the oldest beyond its bounds', async () => {
    const { source, iterator, reports } = bench({ capacity: 2 });
    const first = iterator.next();
    [1, 2, 3, 4].forEach((n) => source.next(n));
    source.complete();
    expect(await first).toEqual(given(1));
    expect(await iterator.next()).toEqual(given(3));
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1, total: 1 }]);
    expect(await iterator.next()).toEqual(given(4));
    expect(await iterator.next()).toEqual(done);
    expect(reports).toHaveLength(1);
  });

  it('answers several questions in order', async () => {
    const { source, iterator } = bench();
    const asked = [iterator.next(), iterator.next(), iterator.next(), iterator.next()];
    source.next(1);
    source.next(2);
    source.complete();
    expect(await Promise.all(asked)).toEqual([given(1), given(2), done, done]);
  });

  it('throws the error of the source once, after the values that wait', async () => {
    const { source, iterator } = bench();
    const first = iterator.next();
    source.next(1);
    source.next(2);
    source.error(mine);
    expect(await first).toEqual(given(1));
    expect(await iterator.next()).toEqual(given(2));
    await expect(iterator.next()).rejects.toBe(mine);
    expect(await iterator.next()).toEqual(done);
  });

  it('throws the error to the first who waits', async () => {
    const { source, iterator } = bench();
    const asked = [iterator.next(), iterator.next()];
    // eslint-disable-next-line rxjs-x/throw-error -- an error may be any value
    source.error(undefined);
    await expect(asked[0]).rejects.toBeUndefined();
    expect(await asked[1]).toEqual(done);
    expect(
      await toAsyncIterable()(throwError(() => mine))
        [Symbol.asyncIterator]()
        .next()
        .catch((error: unknown) => error),
    ).toBe(mine);
  });

  it('gives `undefined` and Promises as they are', async () => {
    const promise = Promise.resolve(1);
    const seen: unknown[] = [];
    const iterator = toAsyncIterable()(of(undefined, promise))[Symbol.asyncIterator]();
    seen.push(await iterator.next(), await iterator.next(), await iterator.next());
    expect(seen).toEqual([given(undefined), given(promise), done]);
  });

  it('is its own iterable', async () => {
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

describe('a loop that is left', () => {
  it.each([
    ['break', () => true],
    [
      'an exception',
      () => {
        throw mine;
      },
    ],
  ])('by %s unsubscribes, and what waits counts as dropped', async (_how, leave) => {
    const { source, iterable, reports } = bench();
    queueMicrotask(() => [1, 2, 3].forEach((n) => source.next(n)));
    const loop = async () => {
      for await (const n of iterable) if (n === 1 && leave()) break;
    };
    await loop().catch((error: unknown) => expect(error).toBe(mine));
    expect(source.observed).toBe(false);
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
  });

  it('unsubscribes at once, also while a value is waited for', async () => {
    const { source, iterator } = bench();
    const asked = [iterator.next(), iterator.next()];
    const left = iterator.return();
    expect(source.observed).toBe(false);
    expect(await Promise.all([...asked, left, iterator.next(), iterator.return()])).toEqual([
      done,
      done,
      done,
      done,
      done,
    ]);
  });

  it('throws what is thrown in', async () => {
    const { source, iterator, reports } = bench();
    const asked = iterator.next();
    source.next(1);
    source.next(2);
    const thrown = iterator.throw(mine);
    expect(source.observed).toBe(false);
    await expect(thrown).rejects.toBe(mine);
    expect([await asked, await iterator.next()]).toEqual([given(1), done]);
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 1 }]);
  });

  it('before it has begun never subscribes', async () => {
    const { source, iterator, reports } = bench();
    expect(await iterator.return()).toEqual(done);
    expect(await iterator.next()).toEqual(done);
    expect([source.observed, reports]).toEqual([false, []]);
  });

  it('forgets an error that it did not come to', async () => {
    const { source, iterator } = bench();
    const first = iterator.next();
    source.next(1);
    source.error(mine);
    await first;
    expect(await iterator.return()).toEqual(done);
    expect(await iterator.next()).toEqual(done);
  });

  it('stops a source that emits as it is subscribed to', async () => {
    let emitted = 0;
    const endless = range(0, 1_000_000).pipe(map(() => (emitted += 1)));
    const iterator = toAsyncIterable({ capacity: 2, overflow: 'error' })(endless)[Symbol.asyncIterator]();
    expect(await iterator.next()).toEqual(given(1));
    expect(emitted).toBe(4);
  });
});

describe('drops of toAsyncIterable', () => {
  it('end the loop with an OverflowError where the policy says so, after the values that wait', async () => {
    const { source, iterator, reports } = bench({ capacity: 2, overflow: 'error' });
    const first = iterator.next();
    [1, 2, 3, 4, 5].forEach((n) => source.next(n));
    expect(source.observed).toBe(false);
    expect([await first, await iterator.next(), await iterator.next()]).toEqual([given(1), given(2), given(3)]);
    await expect(iterator.next()).rejects.toBeInstanceOf(OverflowError);
    expect(await iterator.next()).toEqual(done);
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1, total: 1 }]);
  });

  it('end the loop with what `onDrop` throws, after the values that wait', async () => {
    const { source, iterator } = bench({
      capacity: 2,
      onDrop: () => {
        throw mine;
      },
    });
    const first = iterator.next();
    [1, 2, 3, 4].forEach((n) => source.next(n));
    expect(await first).toEqual(given(1));
    expect(await iterator.next()).toEqual(given(3)); // half is free: `onDrop`
    expect(source.observed).toBe(false);
    expect(await iterator.next()).toEqual(given(4));
    await expect(iterator.next()).rejects.toBe(mine);
  });

  it('end the loop with what `onDrop` throws after the source has completed', async () => {
    const { source, iterator } = bench({
      capacity: 1,
      onDrop: () => {
        throw mine;
      },
    });
    const first = iterator.next();
    [1, 2, 3].forEach((n) => source.next(n));
    source.complete();
    expect([await first, await iterator.next()]).toEqual([given(1), given(3)]);
    await expect(iterator.next()).rejects.toBe(mine);
  });

  it('do not let `onDrop` hide the error of the source', async () => {
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
      expect([await first, await iterator.next()]).toEqual([given(1), given(3)]);
      await expect(iterator.next()).rejects.toBe(mine);
      await new Promise((resolve) => setTimeout(resolve));
      expect(unhandled.mock.calls).toEqual([[other]]);
    } finally {
      config.onUnhandledError = null;
    }
  });

  it('leave what `onDrop` throws to RxJS when it has left the loop itself', async () => {
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
      expect([await first, await iterator.next(), await iterator.next()]).toEqual([given(1), given(3), done]);
      await new Promise((resolve) => setTimeout(resolve));
      expect(unhandled.mock.calls).toEqual([[mine]]);
    } finally {
      config.onUnhandledError = null;
    }
  });

  it('let the loop be left from `onDrop`', async () => {
    const { source, iterator } = bench({ capacity: 1, onDrop: () => void iterator.return() });
    const first = iterator.next();
    [1, 2, 3].forEach((n) => source.next(n));
    expect([await first, await iterator.next(), await iterator.next()]).toEqual([given(1), given(3), done]);
    expect(source.observed).toBe(false);
  });
});

it('takes a source that emits while it is asked: order stays', async () => {
  const values = new Subject<number>();
  let asked: Promise<unknown> | undefined;
  const source = new Observable<number>((subscriber) => {
    subscriber.next(1);
    asked = iterator.next();
    subscriber.next(2);
    return values.subscribe(subscriber);
  });
  const iterator = toAsyncIterable()(source)[Symbol.asyncIterator]();
  expect(await iterator.next()).toEqual(given(1));
  expect(await asked).toEqual(given(2));
  const next = iterator.next();
  expect(await stateOf(next)).toBe('pending');
  values.complete();
  expect(await next).toEqual(done);
});

it('refuses options that cannot work, at once', () => {
  expect(() => toAsyncIterable({ capacity: 0 })).toThrow(/`capacity` must be a whole number/);
  expect(() => toAsyncIterable({ highWaterMark: 1 } as object)).toThrow(/`highWaterMark` must be left out/);
});

it('gives or drops each value exactly once, in order, whatever the policy and the interleaving', async () => {
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

it('copies no frame that a loop takes within the turn, even if it awaits something for each', async () => {
  const source = new Subject<Frame>();
  const taken: Frame[] = [];
  const loop = (async () => {
    for await (const frame of toAsyncIterable()(source)) {
      await Promise.resolve();
      taken.push(frame);
    }
  })();
  for (const frame of fullChunk(64, 1_000)) source.next(frame);
  await endOfTurn();
  expect(taken).toHaveLength(64);
  expect(new Set(bufferSizes(taken))).toEqual(new Set([64_000]));
  source.complete();
  await loop;
});
