import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Observable } from 'rxjs';
import { Frame } from '../../src/protocol/frame.js';
import { emitFrames } from '../../src/worker/block.js';
import type { EventItem, Item } from '../../src/worker/messages.js';
import { createStore, type Store } from '../../src/worker/store.js';
import { cases } from '../support/cases.js';

const frame = (n: number, bytes = 1_000, connection = 1): Frame =>
  new Frame('market', Buffer.alloc(bytes, `${n} `.padEnd(10)), false, n, connection);
const opened = (connection: number): EventItem => ({
  type: 'event',
  event: { type: 'opened', at: 0, feed: 'market', connection },
});

/** Summarizes items: the numbers of frames, the dropped frames and the events. */
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
    store.addFrame(frame(n, bytes));
    store.shrink();
  }
};
const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe('the store of a worker', () => {
  it('returns frames and events in their order', () => {
    const store = createStore(1e6);
    expect(store.isEmpty).toBe(true);
    store.addEvent(opened(1));
    fill(store, 1, 3);
    store.addEvent(opened(2));
    fill(store, 4, 5);
    expect(store.isEmpty).toBe(false);
    expect(inShort(store.take(1e6))).toEqual(['opened', 1, 2, 3, 'opened', 4, 5]);
    expect(store.isEmpty).toBe(true);
    expect(store.take(1e6)).toEqual([]);
  });

  it('returns blocks up to a size, and one block whatever its size', () => {
    const store = createStore(64_000);
    fill(store, 1, 10);
    store.addEvent(opened(2));
    expect(inShort(store.take(2_500))).toEqual([1, 2]);
    expect(inShort(store.take(10))).toEqual([3]);
    expect(inShort(store.take(1e6))).toEqual([...range(4, 10), 'opened']);
  });

  it('drops the oldest blocks beyond the capacity and reports them in their place, but never drops events', () => {
    const store = createStore(64_000);
    store.addEvent(opened(1));
    fill(store, 1, 40);
    store.addEvent(opened(2));
    fill(store, 41, 120);
    const items = inShort(store.take(1e6));
    // A row of 16 bytes belongs to each frame except the last one, which is not in a block yet: 62 frames fit, and the last one.
    expect(items).toEqual(['opened', '-40 (1 to 40)', 'opened', '-17 (41 to 57)', ...range(58, 120)]);
  });

  it('counts taken blocks until they are released', () => {
    const store = createStore(64_000);
    fill(store, 1, 60);
    const taken = store.take(1e6);
    fill(store, 61, 90);
    expect(inShort(taken)).toEqual(range(1, 60));
    expect(inShort(store.take(1e6))[0]).toBe('-27 (61 to 87)');
    store.release(63 * 1_016);
    fill(store, 101, 140);
    expect(inShort(store.take(1e6))).toEqual(range(101, 140));
  });

  it('drops a frame that is larger than the capacity, unless it is taken first', () => {
    const store = createStore(64_000);
    fill(store, 1, 1, 100_000);
    expect(inShort(store.take(1))).toEqual([1]);
    store.release(100_016);
    fill(store, 2, 2, 100_000);
    store.addFrame(frame(3));
    store.shrink();
    expect(inShort(store.take(1e6))).toEqual(['-1 (2 to 2)', 3]);
  });

  it('never stores more than its capacity and one read, and reports every dropped frame', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 5_000, max: 50_000 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 4_000 }), fc.constantFrom('take', 'event')), {
          maxLength: 200,
        }),
        (capacity, steps) => {
          const store = createStore(capacity);
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
              // Two frames of one read.
              const read = Buffer.alloc(step);
              for (const part of [read.subarray(0, step / 2), read.subarray(step / 2)]) {
                put += 1;
                store.addFrame(new Frame('market', part, false, put, 1));
                store.shrink();
              }
            }
          }
          while (!store.isEmpty) take();
          expect({ events, all: taken + missed }).toEqual({ events: added, all: put });
        },
      ),
      { numRuns: cases(100) },
    );
  });
});
