import { describe, expect, it, jest } from '@jest/globals';
import { config, Observable, Subject } from 'rxjs';
import type { BoundOptions, DropReport, Overflow } from '../../src/operators/bounded/bounded-queue.js';
import { toAsyncIterable } from '../../src/operators/to-async-iterable.js';
import type { Frame } from '../../src/protocol/frame.js';
import { bufferSizes, fullChunk } from './own-bytes/views.js';
import { marbles } from './stream.js';
import fc from 'fast-check';

const mine = new Error('mine');
const done = { done: true, value: undefined };
const yielded = <T>(value: T) => ({ done: false, value });
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Creates an iterator over a source the test pushes to. */
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
  it('answers several requests in order', async () => {
    const { source, iterator } = bench();
    const pending = [iterator.next(), iterator.next(), iterator.next(), iterator.next()];
    source.next(1);
    source.next(2);
    source.complete();
    expect(await Promise.all(pending)).toEqual([yielded(1), yielded(2), done, done]);
  });

  it('rejects the first pending request with the error', async () => {
    const { source, iterator } = bench();
    const pending = [iterator.next(), iterator.next()];
    // eslint-disable-next-line rxjs-x/throw-error -- an error may be any value
    source.error(undefined);
    await expect(pending[0]).rejects.toBeUndefined();
    expect(await pending[1]).toEqual(done);
  });
});

describe('a loop that ends early', () => {
  const throwMine = () => {
    throw mine;
  };
  it.each([
    ['break', () => true],
    ['an exception', throwMine],
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
});

describe('drops of toAsyncIterable', () => {
  const failing = (error: unknown) => () => {
    throw error;
  };

  it('end the loop after the waiting values if `onDrop` throws', async () => {
    const { source, iterator } = bench({ capacity: 2, onDrop: failing(mine) });
    const first = iterator.next();
    [1, 2, 3, 4].forEach((n) => source.next(n));
    expect(await first).toEqual(yielded(1));
    expect(await iterator.next()).toEqual(yielded(3)); // calls `onDrop`, because half is free
    expect(source.observed).toBe(false);
    expect(await iterator.next()).toEqual(yielded(4));
    await expect(iterator.next()).rejects.toBe(mine);
  });

  it("end the loop if `onDrop` throws after the source completed, but don't replace the source's error", async () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    try {
      const other = new Error('of onDrop');
      for (const isError of [false, true]) {
        const { source, iterator } = bench({ capacity: 1, onDrop: failing(other) });
        const first = iterator.next();
        [1, 2, 3].forEach((n) => source.next(n));
        if (isError) source.error(mine);
        else source.complete();
        expect([await first, await iterator.next()]).toEqual([yielded(1), yielded(3)]);
        await expect(iterator.next()).rejects.toBe(isError ? mine : other);
        await new Promise((resolve) => setTimeout(resolve));
        expect(unhandled.mock.calls).toEqual(isError ? [[other]] : []);
      }
    } finally {
      config.onUnhandledError = null;
    }
  });
});

it('toAsyncIterable keeps the order if the source emits during a request', async () => {
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

it('toAsyncIterable emits or drops each value exactly once, in order, for any policy and interleaving', async () => {
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

it("toAsyncIterable doesn't copy a frame that a loop waits for", async () => {
  const source = new Subject<Frame>();
  const loop = toAsyncIterable()(source)[Symbol.asyncIterator]();
  const first = loop.next();
  const frames = fullChunk(3, 1_000);
  for (const frame of frames) source.next(frame);
  expect((await first).value).toBe(frames[0]);
  expect(bufferSizes(frames)).toEqual([3_000, 1_000, 1_000]);
  await loop.return?.();
});

describe('toAsyncIterable in virtual time', () => {
  type Iterator = Required<AsyncIterableIterator<string, undefined>>;

  /** What a diagram does to an iterator: request the next value, leave, leave with an error. */
  const acts: Readonly<Record<string, (iterator: Iterator) => Promise<IteratorResult<string, undefined>>>> = {
    n: (iterator) => iterator.next(),
    r: (iterator) => iterator.return(),
    t: (iterator) => iterator.throw(mine),
  };

  /** The settled promises as text: a value, the end, an error. */
  const drawn = (answer: Promise<IteratorResult<string, undefined>>): Promise<string> =>
    answer.then(
      ({ done, value }) => (done === true ? '|' : value),
      (error: unknown) => (error === mine ? '#' : (error as Error).name),
    );

  interface Diagrams {
    readonly source: string;
    /** One diagram per iterator, with `n`, `r` and `t` from `acts`. */
    readonly requests: readonly string[];
    readonly subs: readonly string[];
    /** The expected results, in order, for each iterator. */
    readonly results: readonly string[];
  }

  /** Runs the diagrams. Returns the drop reports, each with its time. */
  const check = async (
    { source, requests, subs, results }: Diagrams,
    options: BoundOptions<string> = {},
  ): Promise<(readonly [at: number, report: DropReport])[]> => {
    const reports: (readonly [number, DropReport])[] = [];
    const settled: Promise<string>[][] = requests.map(() => []);
    marbles(({ cold, expectSubscriptions }, scheduler) => {
      const source$ = cold(source, undefined, mine);
      const onDrop = (report: DropReport) => reports.push([scheduler.now(), report]);
      const iterable = toAsyncIterable<string>({ onDrop, scheduler, ...options })(source$);
      for (const [which, marks] of requests.entries()) {
        const iterator = iterable[Symbol.asyncIterator]() as Iterator;
        cold(marks, acts).subscribe((act) => settled[which]?.push(drawn(act(iterator))));
      }
      expectSubscriptions(source$.subscriptions).toBe([...subs]);
    });
    const emitted = await Promise.all(settled.map(async (each) => (await Promise.all(each)).join(' ')));
    expect(emitted).toEqual(results);
    return reports;
  };

  it.each<[string, string, string[], string[], string[]]>([
    ['begins with the first request, and ends with the source', '-a-b-|', ['---n---n-n-n'], ['---^----!'], ['a b | |']],
    ['does not begin without a request', '-a|', ['----'], [], ['']],
    ['does not begin after a return', '-a|', ['--r-n-r-'], [], ['| | |']],
    ['does not begin after a throw', '-a|', ['--t-n'], [], ['# |']],
    ['ends with the loop', '-a-b-c-d-', ['n-n---r--n'], ['^-----!'], ['a b | |']],
    ['ends with the loop while it waits for a value', '-----a-|', ['nn-r'], ['^--!'], ['| | |']],
    ['ends with an exception of the loop', '-a---b-|', ['n-n-t--n'], ['^---!'], ['a | # |']],
    ['throws the error of the source after the waiting values', '-a-b-#', ['n------nn-n'], ['^----!'], ['a b # |']],
    ['throws an error at once', '-#', ['--n--n'], ['--^!'], ['# |']],
    [
      'is separate for each iterator, from its first request to its end',
      '  -a-b-c-|',
      ['  n-n-r---', '---n-n-n--n', '-------r'],
      ['  ^---!   ', '---^------!'],
      ['a b |', 'a b c |', '|'],
    ],
  ])('the subscription %s', async (_title, source, requests, subs, results) => {
    await check({ source, requests, subs, results });
  });

  const bounded = (capacity: number, requests: string, sub: string, results: string, overflow?: Overflow) =>
    check(
      { source: '-a-b-c-d-|', requests: [requests], subs: [sub], results: [results] },
      { capacity, ...(overflow && { overflow }) },
    );

  it('drops the oldest values, as few as possible, and reports them when the queue is empty', async () => {
    const report = { reason: 'overflow', to: 7 };
    expect(await bounded(1, 'n-------n--n', '^--------!', 'a d |')).toEqual([
      [8, { ...report, dropped: 2, droppedBytes: 4, total: 2, from: 5 }],
    ]);
    expect(await bounded(2, 'n-------nnn', '^--------!', 'a c d |')).toEqual([
      [8, { ...report, dropped: 1, droppedBytes: 2, total: 1, from: 7 }],
    ]);
    expect(await bounded(3, 'n-------nnnn', '^--------!', 'a b c d |')).toEqual([]);
  });

  it('ends the subscription at the first value beyond the bounds, with the policy `error`', async () => {
    expect(await bounded(1, 'n--------n-n-n', '^----!', 'a b OverflowError |', 'error')).toMatchObject([
      [9, { reason: 'overflow', dropped: 1, from: 5, to: 5 }],
    ]);
  });
});
