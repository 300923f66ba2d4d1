import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { from, map, Observable, of, Subject, throwError } from 'rxjs';
import type { DropReport } from '../../../src/operators/bounded/bounded-queue.js';
import { type ReadableOptions, toReadable } from '../../../src/operators/node/to-readable.js';
import type { Frame } from '../../../src/protocol/frame.js';
import { bufferSizes, chunk } from '../own-bytes/views.js';
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

describe('toReadable in virtual time', () => {
  const mine = new Error('mine');

  /** What a diagram does to a stream: read it, destroy it. */
  const acts: Readonly<Record<string, (stream: Readable) => string>> = {
    // `o`: no chunk is ready.
    r: (stream) => (stream.read() as string | null) ?? 'o',
    x: (stream) => {
      stream.destroy();
      return 'x';
    },
  };

  interface Diagrams {
    readonly source: string;
    /** One diagram per stream, with `r` and `x` from `acts`. */
    readonly acts: readonly string[];
    /** What the reads returned: a chunk, or `o`. */
    readonly given: readonly string[];
    readonly subs: readonly string[];
  }

  /** How a stream closed: by an error, at its end, or before that. */
  type Closed = Error | 'ended' | 'destroyed';

  /** Runs the diagrams. Returns the drop reports with their times, and how each stream closed. */
  const check = async (
    diagrams: Diagrams,
    options: ReadableOptions<string> = {},
  ): Promise<{ reports: (readonly [at: number, report: DropReport])[]; closed: Closed[] }> => {
    const reports: (readonly [number, DropReport])[] = [];
    const streams: Readable[] = [];
    const closing: Promise<unknown>[] = [];
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source$ = cold(diagrams.source, { a: 'a', b: 'b', c: 'c', d: 'd', e: 'e', 0: null as never }, mine);
      const onDrop = (report: DropReport) => reports.push([scheduler.now(), report]);
      const make = toReadable<string>({ onDrop, scheduler, ...options });
      for (const [which, marks] of diagrams.acts.entries()) {
        const stream = make(source$);
        streams.push(stream);
        closing.push(once(stream, 'close').catch((error: unknown) => error));
        expectObservable(cold(marks, acts).pipe(map((act) => act(stream)))).toBe(diagrams.given[which] as string);
      }
      expectSubscriptions(source$.subscriptions).toBe([...diagrams.subs]);
    });
    await turn();
    const closed: Closed[] = [];
    for (const [which, stream] of streams.entries()) {
      const isEnded = stream.readableEnded;
      stream.destroy();
      const error = await closing[which];
      closed.push(error instanceof Error ? error : isEnded ? 'ended' : 'destroyed');
    }
    return { reports, closed };
  };

  describe('the subscription of toReadable', () => {
    it('begins at the first read, and ends with the source', async () => {
      const { closed } = await check({
        source: '   -a-b-|',
        acts: ['  ---r-r-r-r-'],
        given: [' ---o-a-b-o-'],
        subs: ['  ---^----!'],
      });
      expect(closed).toEqual(['ended']);
    });

    it('ends when the stream is destroyed, whether or not a chunk is ready', async () => {
      await check({
        source: '  -a-b-c-d-',
        acts: ['  r-r-x---'],
        given: [' o-a-x---'],
        subs: ['  ^---!'],
      });
      await check({
        source: '  -----a-|',
        acts: ['  r-x'],
        given: [' o-x'],
        subs: ['  ^-!'],
      });
    });

    it('ends with the error of the source, which closes the stream after the waiting chunks', async () => {
      const { closed } = await check({
        source: '  -a-b-#',
        acts: ['  r------rrr'],
        given: [' o------abo'],
        subs: ['  ^----!'],
      });
      expect(closed).toEqual([mine]);
    });
  });

  describe('the bounds of toReadable', () => {
    it('drop the oldest values while the source emits; one chunk is ready in the stream', async () => {
      const source = '  -a-b-c-d-|';
      const acts = ['   r-------rrr'];
      const subs = ['   ^--------!'];
      const { reports } = await check({ source, acts, given: ['o-------ado'], subs }, { capacity: 1 });
      expect(reports).toEqual([[8, { reason: 'overflow', dropped: 2, droppedBytes: 4, total: 2, from: 5, to: 7 }]]);
      const more = { source, acts: ['r-------rrrr'], subs };
      await check({ ...more, given: ['o-------acdo'] }, { capacity: 2 });
      expect((await check({ ...more, given: ['o-------abcd'] }, { capacity: 3 })).reports).toEqual([]);
    });
  });
});
