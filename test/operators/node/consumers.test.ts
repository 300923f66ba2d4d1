import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { config, from, Observable, of, Subject, throwError } from 'rxjs';
import type { BoundOptions, DropReport } from '../../../src/operators/bounded/bounded-queue.js';
import { type ReadableOptions, toReadable } from '../../../src/operators/node/to-readable.js';
import { toAsyncIterable } from '../../../src/operators/to-async-iterable.js';
import type { Frame } from '../../../src/protocol/frame.js';
import { bufferSizes, chunk, fullChunk } from '../own-bytes/views.js';
import { marbles } from '../stream.js';

const mine = new Error('mine');

/** Creates a stream from a subject. */
const bench = (options: ReadableOptions<number> = {}) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const stream = toReadable<number>({ onDrop: (report) => reports.push(report), ...options })(source);
  return { source, reports, stream };
};

describe('toReadable', () => {
  it('emits `data` in the same turn as the value', async () => {
    const { source, stream } = bench();
    const seen: unknown[] = [];
    stream.on('data', (value) => seen.push(value));
    await turn();
    source.next(1);
    source.next(2);
    expect(seen).toEqual([1, 2]);
    source.complete();
    await once(stream, 'close');
  });

  it('emits byte arrays and strings as bytes', async () => {
    const stream = toReadable({ objectMode: false })(from(['ab', Buffer.from('c'), new Uint8Array([100]), '', 'e']));
    expect(stream.readableObjectMode).toBe(false);
    const read = await stream.toArray();
    expect(Buffer.concat(read as Buffer[]).toString()).toBe('abcde');
  });

  it.each(['data', 'readable', 'for await'])(
    'delivers all values before the error to a reader that uses %s',
    async (how) => {
      const source = new Observable<number>((subscriber) => {
        [1, 2, 3].forEach((n) => subscriber.next(n));
        subscriber.error(mine);
      });
      const stream = toReadable()(source);
      const seen: unknown[] = [];
      if (how === 'for await') {
        const loop = async () => {
          for await (const value of stream) seen.push(value);
        };
        await expect(loop()).rejects.toBe(mine);
      } else {
        const failed = once(stream, 'close').catch((error: unknown) => error);
        if (how === 'data') stream.on('data', (value) => seen.push(value));
        else
          stream.on('readable', () => {
            for (let value: unknown; (value = stream.read()) !== null;) seen.push(value);
          });
        expect(await failed).toBe(mine);
      }
      expect(seen).toEqual([1, 2, 3]);
    },
  );

  it('is destroyed with an Error when the source errors with another value', async () => {
    for (const thrown of [undefined, 'a text']) {
      // eslint-disable-next-line rxjs-x/throw-error -- an error may be any value
      const stream = toReadable()(throwError(() => thrown));
      stream.resume();
      const error = await once(stream, 'close').catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).cause).toBe(thrown);
      expect((error as Error).message).toBe("The source errored with a value that isn't an Error");
    }
  });

  it('keeps the order when its reader makes the source emit', async () => {
    const { source, stream } = bench();
    const seen: unknown[] = [];
    stream.on('data', (value: number) => {
      seen.push(value);
      if (value < 3) source.next(value + 1);
      seen.push(-value);
      if (value === 3) source.complete();
    });
    await turn();
    source.next(1);
    expect(seen).toEqual([1, -1, 2, -2, 3, -3]);
    await once(stream, 'close');
  });

  it("is destroyed with an explanation when a value can't be a chunk", async () => {
    await expect(toReadable()(of(1, null)).toArray()).rejects.toThrow(/null can't be a chunk/);
    const wrong = of({}) as unknown as Observable<string>;
    await expect(toReadable({ objectMode: false })(wrong).toArray()).rejects.toThrow(/chunk/);
  });

  it('copies a frame while it waits in the stream', async () => {
    const source = new Subject<Frame>();
    const stream = toReadable()(source);
    stream.read();
    const frames = chunk(65_536, [0, 100], [100, 300]);
    for (const frame of frames) source.next(frame);
    await turn();
    expect([stream.readableLength, ...bufferSizes(frames)]).toEqual([1, 100, 200]);
    stream.destroy();
  });
});

const done = { done: true, value: undefined };
const yielded = <T>(value: T) => ({ done: false, value });
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Creates an iterator over a source the test pushes to. */
const looping = (options: BoundOptions<number> = {}) => {
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
    const { source, iterator } = looping();
    const pending = [iterator.next(), iterator.next(), iterator.next(), iterator.next()];
    source.next(1);
    source.next(2);
    source.complete();
    expect(await Promise.all(pending)).toEqual([yielded(1), yielded(2), done, done]);
  });

  it('rejects the first pending request with the error', async () => {
    const { source, iterator } = looping();
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
    const { source, iterable, reports } = looping();
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
    const { source, iterator } = looping({ capacity: 2, onDrop: failing(mine) });
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
        const { source, iterator } = looping({ capacity: 1, onDrop: failing(other) });
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
        const { source, iterator, reports } = looping({ capacity, overflow });
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

type Loop = Required<AsyncIterableIterator<string, undefined>>;
/** What a letter of a diagram does to a consumer, and the result as text. */
type Acts<C> = Readonly<Record<string, (consumer: C) => string | Promise<string>>>;

/** The answer of an iterator as text: a value, the end, an error. */
const drawn = (answer: Promise<IteratorResult<string, undefined>>): Promise<string> =>
  answer.then(
    ({ done, value }) => (done === true ? '|' : value),
    (error: unknown) => (error === mine ? '#' : (error as Error).name),
  );

/** Requests the next value, leaves, leaves with an error. */
const ofLoops: Acts<Loop> = {
  n: (loop) => drawn(loop.next()),
  r: (loop) => drawn(loop.return()),
  t: (loop) => drawn(loop.throw(mine)),
};

/** Reads a chunk (`o`: none is ready), destroys the stream. */
const ofStreams: Acts<Readable> = {
  r: (stream) => (stream.read() as string | null) ?? 'o',
  x: (stream) => {
    stream.destroy();
    return 'x';
  },
};

interface Diagrams {
  readonly source: string;
  /** What happens to each consumer. */
  readonly acts: readonly string[];
  readonly subs: readonly string[];
  /** The results of the acts of each consumer, in order. */
  readonly results: readonly string[];
}

type Reports = readonly (readonly [at: number, report: DropReport])[];

/** Runs the diagrams. Returns the drop reports, each with its time, and the consumers. */
const run = async <C>(
  { source, acts, subs, results }: Diagrams,
  convert: (options: BoundOptions<string>) => (source$: Observable<string>) => () => C,
  letters: Acts<C>,
  options: BoundOptions<string>,
): Promise<{ reports: Reports; consumers: readonly C[] }> => {
  const reports: (readonly [number, DropReport])[] = [];
  const consumers: C[] = [];
  const given: Promise<string>[][] = acts.map(() => []);
  marbles(({ cold, expectSubscriptions }, scheduler) => {
    const source$ = cold(source, undefined, mine);
    const onDrop = (report: DropReport) => reports.push([scheduler.now(), report]);
    const consumer = convert({ onDrop, scheduler, ...options })(source$);
    acts.forEach((marks, which) => {
      const each = consumer();
      consumers.push(each);
      cold(marks, letters).subscribe((act) => given[which]?.push(Promise.resolve(act(each))));
    });
    expectSubscriptions(source$.subscriptions).toBe([...subs]);
  });
  const texts = await Promise.all(given.map(async (each) => (await Promise.all(each)).join(' ')));
  expect(texts).toEqual(results);
  return { reports, consumers };
};

const loops = (diagrams: Diagrams, options: BoundOptions<string> = {}) => {
  const convert = (all: BoundOptions<string>) => (source$: Observable<string>) => {
    const iterable = toAsyncIterable<string>(all)(source$);
    return () => iterable[Symbol.asyncIterator]() as Loop;
  };
  return run(diagrams, convert, ofLoops, options);
};

/** Runs the diagrams of one stream. Returns also how it closed: by an error, at its end, or before that. */
const streams = async (diagrams: Diagrams, options: BoundOptions<string> = {}) => {
  let closing: Promise<unknown> | undefined;
  const convert = (all: BoundOptions<string>) => (source$: Observable<string>) => () => {
    const stream = toReadable<string>(all)(source$);
    closing = once(stream, 'close').catch((error: unknown) => error);
    return stream;
  };
  const { reports, consumers } = await run(diagrams, convert, ofStreams, options);
  await turn();
  const { readableEnded } = consumers[0] as Readable;
  consumers[0]?.destroy();
  const error = await closing;
  return { reports, closed: error instanceof Error ? error : readableEnded ? 'ended' : 'destroyed' };
};

describe('the subscription of an AsyncIterable', () => {
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
  ])('%s', async (_title, source, acts, subs, results) => {
    await loops({ source, acts, subs, results });
  });
});

describe('the subscription of a Readable', () => {
  it.each<[string, string, string, string, string, unknown]>([
    ['begins at the first read, and ends with the source', '-a-b-|', '---r-r-r-r-', '---^----!', 'o a b o', 'ended'],
    ['ends when the stream is destroyed', '-a-b-c-d-', 'r-r-x---', '^---!', 'o a x', 'destroyed'],
    ['ends when the stream is destroyed without a chunk', '-----a-|', 'r-x', '^-!', 'o x', 'destroyed'],
    ['ends with the error of the source, after the waiting chunks', '-a-b-#', 'r------rrr', '^----!', 'o a b o', mine],
  ])('%s', async (_title, source, acts, sub, results, closed) => {
    expect((await streams({ source, acts: [acts], subs: [sub], results: [results] })).closed).toBe(closed);
  });
});

describe('the bounds of a consumer', () => {
  const diagrams = (acts: string, results: string, sub = '^--------!'): Diagrams => ({
    ...{ source: '-a-b-c-d-|', acts: [acts], subs: [sub], results: [results] },
  });
  const report = { reason: 'overflow', to: 7 };
  const two = [[8, { ...report, dropped: 2, droppedBytes: 4, total: 2, from: 5 }]];

  it('drop the oldest values, as few as possible, and report them when the queue is empty', async () => {
    expect((await loops(diagrams('n-------n--n', 'a d |'), { capacity: 1 })).reports).toEqual(two);
    expect((await loops(diagrams('n-------nnn', 'a c d |'), { capacity: 2 })).reports).toEqual([
      [8, { ...report, dropped: 1, droppedBytes: 2, total: 1, from: 7 }],
    ]);
    expect((await loops(diagrams('n-------nnnn', 'a b c d |'), { capacity: 3 })).reports).toEqual([]);
  });

  it('do not count the chunk that is ready in a stream', async () => {
    expect((await streams(diagrams('r-------rrr', 'o a d o'), { capacity: 1 })).reports).toEqual(two);
    await streams(diagrams('r-------rrrr', 'o a c d o'), { capacity: 2 });
    expect((await streams(diagrams('r-------rrrr', 'o a b c d'), { capacity: 3 })).reports).toEqual([]);
  });

  it('end the subscription at the first value beyond them, with the policy `error`', async () => {
    const options = { capacity: 1, overflow: 'error' } as const;
    const { reports } = await loops(diagrams('n--------n-n-n', 'a b OverflowError |', '^----!'), options);
    expect(reports).toMatchObject([[9, { reason: 'overflow', dropped: 1, from: 5, to: 5 }]]);
  });
});
