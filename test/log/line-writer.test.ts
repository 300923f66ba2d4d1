import { describe, expect, it, jest } from '@jest/globals';
import { NEVER } from 'rxjs';
import type { LineStore } from '../../src/log/line-store.js';
import { LineWriter } from '../../src/log/line-writer.js';
import { type Head, startOf } from '../../src/protocol/place.js';
import { fakeTimers } from '../support/fake-timers.js';

const headAt = (offset: number, gen = 2): Head => ({ ...startOf('a', offset), gen, after: 1, began: 0, count: 1 });
const away = { refused: 'away', error: new Error('away') } as const;

/** A writer that has appended messages of `bytes` at the offsets below `count`, and what its store receives. */
const start = (count: number, bytes = 10) => {
  const [again, live, refused, fenced]: [number[], number[], unknown[], number[]] = [[], [], [], []];
  const end = jest.fn<LineStore['end']>();
  const store: LineStore = {
    ...{ end, stored$: NEVER },
    append: ({ offset }, _, only) => {
      if (only === 'store') again.push(offset);
      if (only === 'live') live.push(offset);
    },
    read: async function* () {},
    last: () => Promise.resolve(undefined),
    exists: () => Promise.resolve(true),
    since: () => Promise.resolve(undefined),
    extent: () => Promise.resolve(undefined),
  };
  const limit = { maxBytes: Infinity };
  const writer = new LineWriter(store, {
    maxBytes: () => limit.maxBytes,
    refused: (error) => refused.push(error),
    fenced: (gen) => fenced.push(gen),
  });
  const append = (from: number, to: number, isUnheard = false): void => {
    for (let n = from; n < to; n += 1) writer.append(headAt(n), Buffer.alloc(bytes), isUnheard);
  };
  append(0, count);
  return { writer, append, again, live, refused, fenced, end, limit, [Symbol.dispose]: () => writer.close() };
};

const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms);
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);
const mebibyte = 1024 * 1024;

describe('a writer of a line', () => {
  it.each<[string, Head | undefined, readonly number[]]>([
    ['what the store lacks', headAt(3), [4, 5]],
    ['what was stored as well, if the store has lost it', undefined, numbers(0, 6)],
    ['all of its generation, if the store has only an earlier one', headAt(9, 1), numbers(0, 6)],
  ])('sends again %s', async (_, end, expected) => {
    using _timers = fakeTimers();
    using test = start(6);
    test.end.mockResolvedValue(end);
    test.writer.stored({ upTo: 5 });
    test.writer.stored(away);
    await advance(0);
    expect(test.again).toEqual(expected);
    test.writer.stored({ upTo: 6 });
    expect(test.refused).toEqual([away.error, undefined]);
  });

  it('keeps at most 2 MiB of what is stored, and at most 16 MiB of what is not', async () => {
    using _timers = fakeTimers();
    using test = start(5, mebibyte);
    test.end.mockResolvedValue(undefined);
    test.writer.stored({ upTo: 5 });
    test.writer.stored(away);
    await advance(0);
    expect(test.again.splice(0)).toEqual([3, 4]);
    test.append(5, 25);
    test.writer.stored(away);
    await advance(100);
    expect(test.again).toEqual(numbers(9, 25));
  });

  it('keeps what nobody would hear until the store answers', async () => {
    using _timers = fakeTimers();
    using test = start(1);
    test.end.mockResolvedValue(headAt(0));
    test.writer.stored(away);
    test.append(1, 2);
    test.append(2, 4, true);
    expect(test.live).toEqual([1]);
    await advance(0);
    expect(test.again).toEqual([1, 2, 3]);
  });

  it('sends nothing again if a later generation continues the line, and says which', async () => {
    using _timers = fakeTimers();
    using test = start(3);
    test.end.mockResolvedValue(headAt(1, 3));
    test.writer.stored({ refused: 'fenced', error: new Error('fenced') });
    await advance(0);
    test.append(3, 4);
    test.writer.stored(away);
    await advance(0);
    expect(test.again).toEqual([]);
    expect(test.end).toHaveBeenCalledTimes(1);
    expect(test.refused).toEqual([undefined]);
    expect(test.fenced).toEqual([3]);
  });

  it('asks a store that does not answer again after 100 ms, then later, up to 2 s, and at once when it is back', async () => {
    using _timers = fakeTimers();
    using test = start(1);
    test.end.mockRejectedValue(away.error);
    test.writer.stored(away);
    const asked: number[] = [];
    for (const ms of [0, 100, 200, 400, 800, 1_600, 2_000, 2_000]) {
      await advance(ms);
      asked.push(test.end.mock.calls.length);
    }
    expect(asked).toEqual(numbers(1, 9));
    test.end.mockResolvedValue(undefined);
    test.writer.retry();
    await advance(0);
    expect(test.again).toEqual([0]);
  });

  it('asks a store that was away and is back where the line ends: it can have lost what it had confirmed', async () => {
    using _timers = fakeTimers();
    using test = start(6);
    test.writer.stored({ upTo: 6 });
    test.end.mockResolvedValue(headAt(3));
    test.writer.retry();
    test.writer.retry();
    await advance(0);
    expect(test.again).toEqual([4, 5]);
    expect(test.end).toHaveBeenCalledTimes(1);
    test.writer.close();
    test.writer.retry();
    expect(test.end).toHaveBeenCalledTimes(1);
  });

  it('waits before it sends again what a store takes no more, and does not say meanwhile that the store works', async () => {
    using _timers = fakeTimers();
    using test = start(1);
    test.end.mockResolvedValue(undefined);
    const full = { refused: 'full', error: new Error('full') } as const;
    test.writer.stored(full);
    await advance(0);
    expect(test.again.splice(0)).toEqual([0]);
    for (const ms of [100, 200, 400]) {
      test.writer.stored(full);
      await advance(ms - 1);
      expect(test.again.splice(0)).toEqual([]);
      await advance(1);
      expect(test.again.splice(0)).toEqual([0]);
    }
    expect(test.refused).not.toContain(undefined);
    test.writer.stored({ upTo: 1 });
    expect(test.refused.at(-1)).toBeUndefined();
    test.writer.stored(full);
    await advance(0);
    expect(test.again).toEqual([0]);
  });

  it('says that the store works again if it lacks nothing', async () => {
    using _timers = fakeTimers();
    using test = start(1);
    test.end.mockResolvedValue(headAt(0));
    test.writer.stored(away);
    await advance(0);
    expect(test.refused).toEqual([away.error, undefined]);
  });

  it('does not wait for what has become too large for the store', async () => {
    using _timers = fakeTimers();
    using test = start(2, 100);
    test.append(2, 4);
    test.writer.append(headAt(4), Buffer.alloc(10));
    test.end.mockResolvedValue(undefined);
    test.limit.maxBytes = 99;
    test.writer.stored(away);
    await advance(0);
    expect(test.again.splice(0)).toEqual([4]);
    test.limit.maxBytes = 9;
    test.writer.retry();
    await advance(0);
    expect([test.again, test.refused]).toEqual([[], [away.error, undefined]]);
  });

  it('sends nothing after it was closed', async () => {
    using _timers = fakeTimers();
    using test = start(1);
    test.end.mockResolvedValue(undefined);
    test.writer.stored(away);
    test.writer.close();
    await advance(5_000);
    expect(test.again).toEqual([]);
  });

  it('first sends again what waits, although another message comes while the store answers', async () => {
    using _timers = fakeTimers();
    using test = start(2);
    test.end.mockImplementation(() => {
      test.append(2, 3);
      return Promise.resolve(undefined);
    });
    test.writer.stored(away);
    await advance(0);
    expect(test.live).toEqual([2]);
    expect(test.again).toEqual([0, 1, 2]);
  });
});
