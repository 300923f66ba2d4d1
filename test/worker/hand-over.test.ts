import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setImmediate as turn } from 'node:timers/promises';
import { Observable } from 'rxjs';
import { Frame } from '../../src/protocol/frame.js';
import { emitFrames } from '../../src/worker/block.js';
import { HandOver, Store } from '../../src/worker/hand-over.js';
import { countHandled, createProgress, type EventItem, type Item } from '../../src/worker/messages.js';
import { cases } from '../support/cases.js';

const frame = (bytes = 100): Frame => new Frame('market', Buffer.from(new ArrayBuffer(bytes)), false, 1, 1);
const failed = { type: 'error', error: { kind: 'thrown', id: 1, message: undefined } } as const;

const watermarksOf = (batches: readonly (readonly Item[])[]) =>
  batches.map((items) => {
    const last = items.at(-1);
    return last?.type === 'event' && last.event.type === 'watermark' ? last.event.at : undefined;
  });

const start = (capacityBytes = 2 ** 28) => {
  const progress = createProgress();
  const batches: (readonly Item[])[] = [];
  const handOver = new HandOver(
    (items, buffers) => {
      // The very same objects. jest would compare them byte by byte.
      const blocks = items.flatMap((item) => (item.type === 'frames' ? [item.bytes] : []));
      expect(buffers).toHaveLength(blocks.length);
      expect(blocks.every((block, n) => block === buffers[n])).toBe(true);
      batches.push(items);
    },
    progress,
    capacityBytes,
  );
  const counts = () =>
    batches.map((items) => items.reduce((sum, item) => sum + (item.type === 'frames' ? item.count : 0), 0));
  return {
    progress,
    batches,
    handOver,
    counts,
    put: (count: number, bytes?: number) => Array.from({ length: count }, () => handOver.addFrame(frame(bytes))),
  };
};

describe('the hand-over', () => {
  it('sends all frames of a turn at its end while the main thread keeps up', async () => {
    const { put, counts, handOver, batches, progress } = start();
    put(3);
    expect(counts()).toEqual([]);
    await turn();
    expect(counts()).toEqual([3]);
    expect(countHandled(progress)).toBe(false);
    put(1);
    handOver.addEvent(failed);
    await turn();
    expect(counts()).toEqual([3, 1]);
    expect(batches[1]?.at(-2)).toBe(failed);
    expect(watermarksOf(batches)).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it('sends two batches ahead, and the rest together once one was handled', async () => {
    const { put, counts, handOver, progress } = start();
    for (const count of [1, 2, 3, 4]) {
      put(count);
      await turn();
    }
    expect(counts()).toEqual([1, 2]);
    expect(countHandled(progress)).toBe(true);
    handOver.resume();
    expect(counts()).toEqual([1, 2, 7]);
    expect(countHandled(progress)).toBe(false);
    put(1);
    await turn();
    expect(counts()).toEqual([1, 2, 7, 1]);
  });

  it('says with each batch up to what time all frames were sent', async () => {
    const { handOver, batches, progress } = start();
    const receivedAt = Date.now() - 1_000;
    const read = (bytes: number) => new Frame('market', Buffer.from(new ArrayBuffer(bytes)), false, receivedAt, 1);
    // Sends a block during a read: more frames of that read, with the same time, follow.
    for (let n = 0; n < 6; n += 1) handOver.addFrame(read(20_000));
    expect(watermarksOf(batches)).toEqual([receivedAt]);
    const before = Date.now();
    await turn();
    expect(watermarksOf(batches)[1]).toBeGreaterThanOrEqual(before);
    // With two unhandled batches, the watermark isn't later than the waiting frames, whatever the clock shows.
    for (let n = 0; n < 200; n += 1) handOver.addFrame(read(20_000));
    await turn();
    expect(batches).toHaveLength(2);
    countHandled(progress);
    handOver.resume();
    expect(watermarksOf(batches).slice(2)).toEqual([receivedAt]);
    countHandled(progress);
    handOver.resume();
    expect(watermarksOf(batches)[3]).toBeGreaterThanOrEqual(before);
  });

  it('sends a watermark on request, unless frames wait or a batch is unhandled', async () => {
    const { handOver, batches, put } = start();
    const before = Date.now();
    handOver.sendWatermark();
    expect(watermarksOf(batches)[0]).toBeGreaterThanOrEqual(before);
    expect(batches[0]).toHaveLength(1);
    put(1);
    handOver.sendWatermark();
    expect(batches).toHaveLength(1);
    await turn();
    handOver.sendWatermark();
    expect(batches).toHaveLength(2);
  });

  it('counts unhandled batches against the capacity', async () => {
    const { put, counts, handOver, progress, batches } = start(640_000);
    put(30, 50_000);
    await turn();
    const [ahead] = [counts().reduce((a, b) => a + b)];
    countHandled(progress);
    countHandled(progress);
    handOver.resume();
    const missed = batches.flat().find(({ type }) => type === 'missed');
    expect(missed).toMatchObject({ type: 'missed' });
    const all = counts().reduce((a, b) => a + b);
    expect(all - ahead).toBeGreaterThan(0);
    expect(all + (missed as { readonly frames: number }).frames).toBe(30);
  });
});

const numbered = (n: number, bytes = 1_000, connection = 1): Frame =>
  new Frame('market', Buffer.alloc(bytes, `${n} `.padEnd(10)), false, n, connection);
const opened = (connection: number): EventItem => ({
  type: 'event',
  event: { type: 'opened', at: 0, feed: 'market', connection },
});

/** Summarizes items: the frames' numbers, the dropped frames and the events. */
const inShort = (items: readonly Item[]): readonly (string | number)[] =>
  items.flatMap((item): readonly (string | number)[] => {
    if (item.type === 'missed') return [`-${item.frames} (${item.from} to ${item.to})`];
    if (item.type !== 'frames') return [item.type === 'event' ? item.event.type : item.type];
    const numbers: number[] = [];
    const frames$ = new Observable<Frame>((subscriber) => emitFrames(item, 1, subscriber));
    frames$.subscribe((each) => numbers.push(Number.parseInt(each.text(), 10)));
    return numbers;
  });
const fill = (store: Store, from: number, to: number, bytes?: number): void => {
  for (let n = from; n <= to; n += 1) {
    store.addFrame(numbered(n, bytes));
    store.shrink();
  }
};
const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe('the store of a worker', () => {
  it('returns blocks up to a total size, but at least one', () => {
    const store = new Store(64_000);
    fill(store, 1, 10);
    store.addEvent(opened(2));
    expect(inShort(store.take(2_500))).toEqual([1, 2]);
    expect(inShort(store.take(10))).toEqual([3]);
    expect(inShort(store.take(1e6))).toEqual([...range(4, 10), 'opened']);
  });

  it('drops the oldest blocks beyond its capacity, reports them in their place, and never drops events', () => {
    const store = new Store(64_000);
    store.addEvent(opened(1));
    fill(store, 1, 40);
    store.addEvent(opened(2));
    fill(store, 41, 120);
    const items = inShort(store.take(1e6));
    // Each frame has a row of 16 bytes, except the last, which isn't in a block yet: 62 frames fit, plus the last.
    expect(items).toEqual(['opened', '-40 (1 to 40)', 'opened', '-17 (41 to 57)', ...range(58, 120)]);
  });

  it('counts taken blocks until they are released', () => {
    const store = new Store(64_000);
    fill(store, 1, 60);
    const taken = store.take(1e6);
    fill(store, 61, 90);
    expect(inShort(taken)).toEqual(range(1, 60));
    expect(inShort(store.take(1e6))[0]).toBe('-27 (61 to 87)');
    store.release(63 * 1_016);
    fill(store, 101, 140);
    expect(inShort(store.take(1e6))).toEqual(range(101, 140));
  });

  it('drops a frame larger than the capacity, unless it is taken first', () => {
    const store = new Store(64_000);
    fill(store, 1, 1, 100_000);
    expect(inShort(store.take(1))).toEqual([1]);
    store.release(100_016);
    fill(store, 2, 2, 100_000);
    store.addFrame(numbered(3));
    store.shrink();
    expect(inShort(store.take(1e6))).toEqual(['-1 (2 to 2)', 3]);
  });

  it('never stores more than its capacity plus one read, and reports every dropped frame', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 5_000, max: 50_000 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 4_000 }), fc.constantFrom('take', 'event')), {
          maxLength: 200,
        }),
        (capacity, steps) => {
          const store = new Store(capacity);
          let put = 0;
          let [events, taken, missed, added] = [0, 0, 0, 0];
          let last = 0;
          const take = () => {
            const items = store.take(10_000);
            let bytes = 0;
            for (const item of items) {
              if (item.type === 'frames') {
                bytes += item.bytes.byteLength;
                taken += item.count;
                expect(item.from).toBe(last + 1);
                last = item.to;
              } else if (item.type === 'missed') {
                missed += item.frames;
                expect([item.from, item.to - item.from + 1]).toEqual([last + 1, item.frames]);
                last = item.to;
              } else events += 1;
            }
            expect(bytes).toBeLessThanOrEqual(Math.max(capacity, 10_000) + 4_100);
            store.release(bytes);
          };
          for (const step of steps) {
            if (step === 'take') take();
            else if (step === 'event') {
              store.addEvent(opened(1));
              added += 1;
            } else {
              // Two frames from one read.
              const read = Buffer.alloc(step);
              for (const part of [read.subarray(0, step / 2), read.subarray(step / 2)]) {
                put += 1;
                store.addFrame(new Frame('market', part, false, put, 1));
                store.shrink();
              }
            }
          }
          while (!store.isEmpty()) take();
          expect({ events, all: taken + missed }).toEqual({ events: added, all: put });
        },
      ),
      { numRuns: cases(100) },
    );
  });
});
