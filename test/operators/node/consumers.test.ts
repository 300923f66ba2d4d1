import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { config, from, Observable, of, Subject, throwError } from 'rxjs';
import type { BoundOptions, DropReport, Overflow } from '../../../src/operators/bounded/bounded-queue.js';
import { type ReadableOptions, toReadable } from '../../../src/operators/node/to-readable.js';
import { toAsyncIterable } from '../../../src/operators/to-async-iterable.js';
import type { Frame } from '../../../src/protocol/frame.js';
import { bufferSizes, chunk } from '../own-bytes/views.js';

const mine = new Error('mine');
const throwMine = (): never => {
  throw mine;
};

/** Creates a stream over a source the test pushes to. */
const streamOf = (options: ReadableOptions<number> = {}) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const stream = toReadable<number>({ onDrop: (report) => reports.push(report), ...options })(source);
  return { source, reports, stream };
};

/** Returns how a stream closed: by an error, at its end, or before that. */
const endOf = (stream: Readable): Promise<unknown> =>
  once(stream, 'close').then(
    () => (stream.readableEnded ? 'ended' : 'destroyed'),
    (error: unknown) => error,
  );

describe('toReadable', () => {
  it('subscribes at the first read, emits `data` in the same turn as the value, and ends with the source', async () => {
    const { source, stream } = streamOf();
    expect(source.observed).toBe(false);
    const seen: unknown[] = [];
    stream.on('data', (value) => seen.push(value));
    await turn();
    expect(source.observed).toBe(true);
    source.next(1);
    source.next(2);
    expect(seen).toEqual([1, 2]);
    source.complete();
    expect(await endOf(stream)).toBe('ended');
  });

  it.each(['before a value', 'after a value'])('unsubscribes when it is destroyed %s', async (when) => {
    const { source, stream } = streamOf();
    stream.read();
    if (when === 'after a value') source.next(1);
    stream.destroy();
    expect(source.observed).toBe(false);
    expect(await endOf(stream)).toBe('destroyed');
  });

  it('emits byte arrays and strings as bytes', async () => {
    const stream = toReadable({ objectMode: false })(from(['ab', Buffer.from('c'), new Uint8Array([100]), '', 'e']));
    expect(stream.readableObjectMode).toBe(false);
    const read = await stream.toArray();
    expect(Buffer.concat(read as Buffer[]).toString()).toBe('abcde');
  });

  it.each<[string, (stream: Readable, see: (value: unknown) => void) => void]>([
    ['data', (stream, see) => stream.on('data', see)],
    [
      'readable',
      (stream, see) =>
        stream.on('readable', () => {
          for (let value: unknown; (value = stream.read()) !== null;) see(value);
        }),
    ],
    ['for await', (stream, see) => void stream.forEach(see).catch(() => undefined)],
  ])('delivers all values before the error to a reader that uses %s', async (_how, read) => {
    const source = new Observable<number>((subscriber) => {
      [1, 2, 3].forEach((n) => subscriber.next(n));
      subscriber.error(mine);
    });
    const stream = toReadable()(source);
    const seen: unknown[] = [];
    read(stream, (value) => seen.push(value));
    expect(await endOf(stream)).toBe(mine);
    expect(seen).toEqual([1, 2, 3]);
  });

  it.each([undefined, 'a text'])('is destroyed with an Error when the source errors with %j', async (thrown) => {
    // eslint-disable-next-line rxjs-x/throw-error -- an error may be any value
    const stream = toReadable()(throwError(() => thrown));
    stream.resume();
    const error = await endOf(stream);
    expect(error).toEqual(new Error("The source errored with a value that isn't an Error"));
    expect((error as Error).cause).toBe(thrown);
  });

  it('keeps the order when its reader makes the source emit', async () => {
    const { source, stream } = streamOf();
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

  it('copies a frame while it waits in the stream', () => {
    const source = new Subject<Frame>();
    const stream = toReadable()(source);
    stream.read();
    for (const frame of chunk(65_536, [0, 100])) source.next(frame);
    expect(bufferSizes([stream.read() as Frame])).toEqual([100]);
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
  const iterate = () => iterable[Symbol.asyncIterator]() as Required<AsyncIterableIterator<number>>;
  return { source, reports, iterable, iterate, iterator: iterate() };
};

describe('toAsyncIterable', () => {
  it('subscribes at the first request, answers all in order, and ends with the source', async () => {
    const { source, iterator } = looping();
    expect(source.observed).toBe(false);
    const pending = [iterator.next(), iterator.next(), iterator.next(), iterator.next()];
    source.next(1);
    source.next(2);
    source.complete();
    expect(await Promise.all(pending)).toEqual([yielded(1), yielded(2), done, done]);
  });

  it.each(['return', 'throw'] as const)(
    '%s ends the loop, even if it never began or waits for a value',
    async (how) => {
      const { source, iterate } = looping();
      for (const hasBegun of [false, true]) {
        const iterator = iterate();
        const pending = hasBegun ? iterator.next() : undefined;
        const left = iterator[how](mine);
        await (how === 'throw' ? expect(left).rejects.toBe(mine) : expect(left).resolves.toEqual(done));
        expect(source.observed).toBe(false);
        expect([(await pending) ?? done, await iterator.next()]).toEqual([done, done]);
      }
    },
  );

  it('throws the error of the source after the waiting values, once', async () => {
    const { source, iterator } = looping();
    const first = iterator.next();
    [1, 2].forEach((n) => source.next(n));
    // eslint-disable-next-line rxjs-x/throw-error -- an error may be any value
    source.error(undefined);
    expect([await first, await iterator.next()]).toEqual([yielded(1), yielded(2)]);
    const pending = [iterator.next(), iterator.next()];
    await expect(pending[0]).rejects.toBeUndefined();
    expect(await pending[1]).toEqual(done);
  });

  it.each([
    ['break', () => true],
    ['an exception', throwMine],
  ])('unsubscribes when a loop ends early by %s, and reports the waiting values as dropped', async (_how, leave) => {
    const { source, iterable, reports } = looping();
    queueMicrotask(() => [1, 2, 3].forEach((n) => source.next(n)));
    const loop = async () => {
      for await (const n of iterable) if (n === 1 && leave()) break;
    };
    await loop().catch((error: unknown) => expect(error).toBe(mine));
    expect(source.observed).toBe(false);
    expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
  });

  it('ends the subscription at the first value beyond the bounds with the policy `error`', async () => {
    const { source, iterator, reports } = looping({ capacity: 1, overflow: 'error' });
    const first = iterator.next();
    [1, 2, 3].forEach((n) => source.next(n));
    expect(source.observed).toBe(false);
    expect([await first, await iterator.next()]).toEqual([yielded(1), yielded(2)]);
    await expect(iterator.next()).rejects.toMatchObject({ name: 'OverflowError' });
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1 }]);
  });

  it('ends after the waiting values if `onDrop` throws', async () => {
    const { source, iterator } = looping({ capacity: 2, onDrop: throwMine });
    const first = iterator.next();
    [1, 2, 3, 4].forEach((n) => source.next(n));
    expect(await first).toEqual(yielded(1));
    expect(await iterator.next()).toEqual(yielded(3)); // calls `onDrop`, because half is free
    expect(source.observed).toBe(false);
    expect(await iterator.next()).toEqual(yielded(4));
    await expect(iterator.next()).rejects.toBe(mine);
  });

  it("ends with what `onDrop` throws after the source completed, but with the source's error if it has one", async () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    try {
      const other = new Error('of the source');
      for (const isError of [false, true]) {
        const { source, iterator } = looping({ capacity: 1, onDrop: throwMine });
        const first = iterator.next();
        [1, 2, 3].forEach((n) => source.next(n));
        if (isError) source.error(other);
        else source.complete();
        expect([await first, await iterator.next()]).toEqual([yielded(1), yielded(3)]);
        await expect(iterator.next()).rejects.toBe(isError ? other : mine);
        await new Promise((resolve) => setTimeout(resolve));
        expect(unhandled.mock.calls).toEqual(isError ? [[mine]] : []);
      }
    } finally {
      config.onUnhandledError = null;
    }
  });

  it('keeps the order if the source emits during a request', async () => {
    let pending: Promise<unknown> | undefined;
    const source = new Observable<number>((subscriber) => {
      subscriber.next(1);
      pending = iterator.next();
      subscriber.next(2);
    });
    const iterator = toAsyncIterable()(source)[Symbol.asyncIterator]();
    expect([await iterator.next(), await pending]).toEqual([yielded(1), yielded(2)]);
  });

  it('emits or drops each value exactly once, in order, for any policy and interleaving', async () => {
    const step = fc.constantFrom('send' as const, 'send' as const, 'ask' as const);
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 80, size: 'max' }),
        fc.constantFrom<Overflow[]>('drop-oldest', 'drop-newest', 'error'),
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
});
