import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { defer, from, map, Observable, of, range, Subject, throwError } from 'rxjs';
import type { DropReport } from '../../../src/operators/bounded/drop-report.js';
import { type ReadableOptions, toReadable } from '../../../src/operators/node/to-readable.js';
import { OverflowError } from '../../../src/operators/bounded/overflow-error.js';
import type { Frame } from '../../../src/protocol/frame.js';
import { bufferSizes, chunk, fullChunk } from '../own-bytes/views.js';

const mine = new Error('mine');

/** A stream of a subject. */
const bench = (options: ReadableOptions<number> = {}) => {
  const source = new Subject<number>();
  const reports: DropReport[] = [];
  const stream = toReadable<number>({ onDrop: (report) => reports.push(report), ...options })(source);
  return { source, reports, stream };
};

/** A writable that accepts a chunk when the test calls a function. */
const slowWriter = () => {
  const seen: unknown[] = [];
  let taken: (() => void) | undefined;
  const writer = new Writable({
    objectMode: true,
    highWaterMark: 1,
    write: (chunk, _encoding, done) => {
      seen.push(chunk);
      taken = done;
    },
  });
  const takeOne = async () => {
    taken?.();
    await turn();
  };
  return { writer, seen, takeOne };
};

describe('toReadable', () => {
  it('emits every value in order, and ends with the source', async () => {
    expect(await toReadable()(range(1, 1_000)).toArray()).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1));
  });

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

  it('subscribes when it is read', async () => {
    let subscriptions = 0;
    const stream = toReadable()(defer(() => of((subscriptions += 1))));
    await turn();
    expect(subscriptions).toBe(0);
    expect(await stream.toArray()).toEqual([1]);
  });

  it('emits byte arrays and strings as bytes', async () => {
    const stream = toReadable({ objectMode: false })(from(['ab', Buffer.from('c'), new Uint8Array([100]), '', 'e']));
    expect(stream.readableObjectMode).toBe(false);
    const read = await stream.toArray();
    expect(Buffer.concat(read as Buffer[]).toString()).toBe('abcde');
  });

  it('queues values for a busy reader, and drops the oldest when the queue is full', async () => {
    const { source, stream, reports } = bench({ capacity: 2 });
    const { writer, seen, takeOne } = slowWriter();
    const piped = pipeline(stream, writer);
    await turn();
    for (let n = 1; n <= 20; n += 1) source.next(n);
    source.complete();
    for (let i = 0; i < 10; i += 1) await takeOne();
    await piped;
    expect(seen.slice(-2)).toEqual([19, 20]);
    expect(seen.length).toBeLessThanOrEqual(5); // two, one in each stream, and one at work
    expect(reports).toHaveLength(1);
    expect(seen.length + reports[0]!.dropped).toBe(20);
  });

  it('works in a pipeline with a transform', async () => {
    const seen: string[] = [];
    const double = new Transform({
      objectMode: true,
      transform: (n: number, _encoding, done) => {
        setImmediate(done, null, `${n * 2}`);
      },
    });
    await pipeline(toReadable()(range(1, 50)), double, async (chunks: AsyncIterable<string>) => {
      for await (const chunk of chunks) seen.push(chunk);
    });
    expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => String((i + 1) * 2)));
  });

  it('is destroyed with the error of the source, after the waiting values', async () => {
    const { source, stream } = bench();
    const { writer, seen, takeOne } = slowWriter();
    const piped = pipeline(stream, writer).catch((error: unknown) => error);
    await turn();
    for (let n = 1; n <= 5; n += 1) source.next(n);
    source.error(mine);
    for (let i = 0; i < 8; i += 1) await takeOne();
    expect(await piped).toBe(mine);
    expect(seen).toEqual([1, 2, 3, 4, 5]);
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

  it('delivers the chunk in the stream before the error', async () => {
    const { source, stream } = bench();
    const seen: unknown[] = [];
    stream.read();
    source.next(1);
    source.error(mine);
    const closed = once(stream, 'close').catch((error: unknown) => error);
    stream.on('data', (value) => seen.push(value));
    expect([await closed, seen]).toEqual([mine, [1]]);
  });

  it('is destroyed with an Error when the source errors with another value', async () => {
    for (const thrown of [undefined, 'a text']) {
      // eslint-disable-next-line rxjs-x/throw-error -- an error may be any value
      const stream = toReadable()(throwError(() => thrown));
      stream.resume();
      const error = await once(stream, 'close').catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).cause).toBe(thrown);
      expect((error as Error).message).toBe('The source errored with a value that is not an Error');
    }
  });

  it('unsubscribes immediately when it is destroyed, and counts the waiting values as dropped', async () => {
    for (const error of [undefined, mine]) {
      const { source, stream, reports } = bench();
      stream.read();
      [1, 2, 3].forEach((n) => source.next(n));
      const closed = once(stream, 'close').catch((caught: unknown) => caught);
      stream.destroy(error);
      expect(source.observed).toBe(false);
      expect(reports).toMatchObject([{ reason: 'ended', dropped: 2, total: 2 }]);
      if (error !== undefined) expect(await closed).toBe(mine);
      else await closed;
    }
  });

  it('does not subscribe when it is destroyed before the first read', async () => {
    const { source, stream } = bench();
    stream.destroy();
    await once(stream, 'close');
    expect(source.observed).toBe(false);
  });

  it('can be destroyed by its reader within a turn', async () => {
    const { source, stream, reports } = bench();
    const seen: unknown[] = [];
    stream.on('data', (value) => {
      seen.push(value);
      if (value === 2) stream.destroy();
    });
    await turn();
    const closed = once(stream, 'close');
    [1, 2, 3].forEach((n) => source.next(n));
    await closed;
    expect([seen, source.observed, reports]).toEqual([[1, 2], false, []]);
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

  it("is destroyed with an OverflowError with `overflow: 'error'`", async () => {
    const { source, stream, reports } = bench({ capacity: 1, overflow: 'error' });
    stream.read();
    [1, 2, 3].forEach((n) => source.next(n));
    expect(source.observed).toBe(false);
    await expect(stream.toArray()).rejects.toBeInstanceOf(OverflowError);
    expect(reports).toMatchObject([{ reason: 'overflow', dropped: 1, total: 1 }]);
  });

  it('is destroyed with an explanation when a value cannot be a chunk', async () => {
    await expect(toReadable()(of(1, null)).toArray()).rejects.toThrow(/null cannot be a chunk/);
    const wrong = of({}) as unknown as Observable<string>;
    await expect(toReadable({ objectMode: false })(wrong).toArray()).rejects.toThrow(/chunk/);
  });

  it('refuses invalid options when it is called', () => {
    expect(() => toReadable({ objectMode: 1 as never })).toThrow(/`objectMode` must be true or false/);
    expect(() => toReadable({ capacity: -1 })).toThrow(/`capacity` must be a whole number, 1 or more, got -1/);
    expect(() => toReadable({ highWaterMark: 1 } as object)).toThrow(/`highWaterMark` must be left out/);
  });

  it('copies the frame that waits in the stream', async () => {
    const source = new Subject<Frame>();
    const stream = toReadable()(source);
    stream.read();
    const frames = chunk(65_536, [0, 100], [100, 300]);
    for (const frame of frames) source.next(frame);
    await turn();
    expect([stream.readableLength, ...bufferSizes(frames)]).toEqual([1, 100, 200]);
    stream.destroy();
  });

  it('does not copy a frame that a flowing stream passes on at once', () => {
    const source = new Subject<Frame>();
    const taken: Frame[] = [];
    const stream = toReadable()(source).on('data', (frame: Frame) => taken.push(frame));
    stream.read();
    const frames = fullChunk(64, 1_000);
    for (const frame of frames) source.next(frame);
    expect([taken, new Set(bufferSizes(taken))]).toEqual([frames, new Set([64_000])]);
    stream.destroy();
  });

  it('creates a new Readable for each Observable', async () => {
    const make = toReadable<number>({ capacity: 5_000 });
    const [a, b] = [make(of(1)), make(of(2).pipe(map((n) => n)))];
    expect(a).toBeInstanceOf(Readable);
    expect(await Promise.all([a.toArray(), b.toArray()])).toEqual([[1], [2]]);
  });
});
