import { describe, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { left, right } from 'fp-ts/lib/Either.js';
import { Subject, asyncScheduler, filter, from, map, type SchedulerLike, tap } from 'rxjs';
import { type ConflateOptions, conflate } from '../../src/operators/conflate.js';
import { type DistinctRecentOptions, distinctRecent } from '../../src/operators/distinct-recent.js';
import {
  Conflated,
  Decoded,
  bytesOf,
  frameOf as frameIn,
  isFrame,
  isLifecycle,
  isLogged,
  timeOf,
  withOwnBytes,
} from '../../src/operators/items/item.js';
import { Frame } from '../../src/protocol/frame.js';
import { cases } from '../support/cases.js';
import { holders } from './own-bytes/holders.js';
import { bufferSizes, chunk } from './own-bytes/views.js';
import { disconnected, emittedBy, frameOf, gapOf, issued, marbles, opened, reconnecting } from './stream.js';
import { requested, stopped, watermark } from './stream.js';

const relayed = new Frame('raw', new Uint8Array(3), true, 9, 1);
const frame = frameOf('grün', 7);
const decoded = new Decoded({ n: 1 }, frame);
const strangers = [
  ...['opened', 'gap', 'disconnected', 'trade', 5].map((type) => ({ type })),
  ...[
    { type: 'gap', from: 1 },
    { type: 'gap', to: 1 },
    { type: 'gap', failure: { endedAt: 1 } },
  ],
  ...[
    { type: 'disconnected', at: 1 },
    { type: 'disconnected', failure: { endedAt: 1 } },
  ],
  ...[undefined, null, 0, '', 'gap', [], () => 1, Symbol('gap')],
];
/** Times that no Date can have: one of them would stop all windows. */
const noTimes = [NaN, Infinity, -Infinity, 1e300, -1e300];
const eventsAt = (at: number) => [
  ...[requested(at), issued(at), opened(at), disconnected(at), stopped(at), reconnecting(at, 1), watermark(at)],
  ...[gapOf(at, 2), gapOf(1, at)],
];

describe('isLifecycle', () => {
  it('knows each event', () => {
    expect(eventsAt(1).filter((event) => !isLifecycle(event))).toEqual([]);
  });

  it('returns false for frames, values created from them, all other values, and events at no time', () => {
    const others = [frame, decoded, ...strangers, ...noTimes.flatMap(eventsAt)];
    expect(others.filter((item) => isLifecycle(item))).toEqual([]);
  });
});

describe('timeOf', () => {
  it('reads what decodeEither emits', () => {
    expect([right(decoded), left({ type: 'decode-failure', receivedAt: 8 })].map(timeOf)).toEqual([7, 8]);
    expect([right(1), left('no'), left(undefined), { _tag: 'Left' }].map(timeOf)).toEqual(Array(4).fill(undefined));
    expect(frameIn(right(decoded))).toBe(frame);
  });

  it('returns when a frame was read, an event happened, or a gap ended', () => {
    expect([frame, decoded, opened(3), requested(4), gapOf(5, 9)].map(timeOf)).toEqual([7, 7, 3, 4, 9]);
    for (const item of [...strangers, ...noTimes.map((at) => frameOf('a', at))]) expect(timeOf(item)).toBeUndefined();
  });
});

describe('bytesOf', () => {
  it('returns the size of a payload, of a byte array, and of a text in memory', () => {
    expect([frame, decoded, Buffer.from('abc'), new Uint8Array(4), 'abc'].map(bytesOf)).toEqual([5, 5, 3, 4, 6]);
    expect([undefined, null, 5, {}, opened(1)].map(bytesOf)).toEqual([0, 0, 0, 0, 0]);
  });
});

describe('isLogged', () => {
  it('returns true for the records of a log and for values created from them', () => {
    const record = Object.assign(new Frame('market', Buffer.alloc(0), false, 1, 1), { offset: 5 });
    const all = [record, new Decoded(1, record), { ...gapOf(1, 2), offset: 9 }];
    for (const value of all) expect(isLogged(value)).toBe(true);
    for (const value of [frame, decoded, gapOf(1, 2), opened(1), ...strangers]) expect(isLogged(value)).toBe(false);
  });
});

describe('a frame that arrived over a relay', () => {
  it('is a frame for all of these functions, even inside values created from it', () => {
    for (const value of [
      relayed,
      new Decoded(1, relayed),
      new Conflated('key', relayed, 1),
      right(new Decoded(1, relayed)),
    ])
      expect([frameIn(value), timeOf(value), bytesOf(value), isLifecycle(value)]).toEqual([relayed, 9, 3, false]);
    expect([isFrame(relayed), isLogged(relayed)]).toEqual([true, false]);
  });
});

describe('withOwnBytes', () => {
  it('returns a copy of a frame with all its fields, and of a value created from it, and changes neither', () => {
    const [sparse] = chunk(1_000, [0, 10]) as [Frame];
    const logged = Object.freeze(Object.assign(sparse, { offset: 5 }));
    const values = [
      logged,
      new Decoded(1, logged),
      right(new Decoded(2, logged)),
      new Conflated('key', new Decoded(3, logged), 1),
      Object.assign(new Decoded(4, logged), { note: 'mine' }),
    ];
    for (const value of values) {
      const kept = withOwnBytes<object>(value);
      expect(kept).not.toBe(value);
      expect(kept).toStrictEqual(value);
      expect(bufferSizes([frameIn(kept) as Frame])).toEqual([10]);
      expect(withOwnBytes<unknown>(kept)).toBe(kept);
    }
    expect(bufferSizes([logged])).toEqual([1_000]);
  });

  it("returns objects of the user's classes as they are, because they may have private fields", () => {
    class Marked extends Frame {
      readonly #mark = 1;
      mark(): number {
        return this.#mark;
      }
    }
    class Price<A> extends Decoded<A> {}
    const [{ data }] = chunk(1_000, [0, 10]) as [Frame];
    const marked = new Marked('raw', data, false, 1, 1);
    expect(withOwnBytes(marked).mark()).toBe(1);
    const price = new Price(1, frameOf('a', 1));
    for (const value of [marked, new Decoded(1, marked), price]) expect(withOwnBytes<unknown>(value)).toBe(value);
  });
});

const frameBytes = 1_000;

/** Creates frames in buffers of `bufferBytes`, each behind `headBytes`, as a socket or a worker does. */
const reads = (bufferBytes: number, headBytes: number): Frame[][] => {
  let n = 0;
  return Array.from({ length: 4 }, () => {
    const buffer = Buffer.allocUnsafeSlow(bufferBytes);
    const frames: Frame[] = [];
    for (let at = headBytes; at + frameBytes <= bufferBytes; at += frameBytes + headBytes) {
      const data = buffer.subarray(at, at + frameBytes).fill(n % 251);
      data.writeUInt32LE(n);
      n += 1;
      frames.push(new Frame('market', data, true, Date.now(), 1));
    }
    return frames;
  });
};

const sum = (sizes: readonly { readonly byteLength: number }[]) =>
  sizes.reduce((all, { byteLength }) => all + byteLength, 0);

/** Some of the frames of a feed: all, a fifth, most of them. */
const parts = [5, 1, 0.7].map((every) =>
  filter((frame: Frame) => (every < 1 ? frame.data.readUInt32LE() % 10 < 7 : frame.data.readUInt32LE() % every === 0)),
);

describe.each([
  ['reads of 64 KiB', 65_536, 4],
  ['blocks of 256 KiB, as of a worker', 262_144, 0],
])('three subscribers that hold frames of one shared feed, all or some of them: %s', (_, bufferBytes, headBytes) => {
  it.each(Object.entries(holders))('%s keeps at most 1.5 times their bytes alive', async (_name, hold) => {
    const subject = new Subject<Frame>();
    const drains = parts.map((part) => hold(subject.pipe(part)));
    for (const frames of reads(bufferBytes, headBytes)) {
      for (const frame of frames) subject.next(frame);
      await turn();
    }
    for (const drain of drains) {
      const held = await drain();
      // If an operator holds almost nothing, its ratio means nothing.
      expect(sum(held)).toBeGreaterThan(20_000);
      expect(sum([...new Set(held.map(({ buffer }) => buffer))]) / sum(held)).toBeLessThanOrEqual(1.5);
    }
  });
});

// Letter and number: a1 is the value 1 of the key a.
const item = (text: string) => ({ key: text[0] as string, n: Number(text[1]) });
const newest = (text: string, count: number) => new Conflated(text[0] as string, item(text), count);

const values = { a: item('a1'), b: item('a2'), c: item('a3'), p: item('p1'), q: item('p2'), g: gapOf(1, 2) };

const check = (
  source: string,
  expected: string,
  emitted: Readonly<Record<string, unknown>>,
  options: ConflateOptions = {},
  sub?: string,
): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }) => {
    const source$ = cold(source, values);
    const result$ = source$.pipe(
      conflate((each) => each.key, 10, options),
      map((each) => each as unknown),
    );
    expectObservable(result$, sub).toBe(expected, { ...emitted, g: values.g });
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });

describe('conflate', () => {
  it('holds a watermark until the values before it are emitted', () => {
    marbles(({ cold, expectObservable }) => {
      const events = { a: item('a1'), u: watermark(1), v: watermark(2), w: watermark(3) };
      const source$ = cold<object>(' u-a-v-w---------w---', events);
      const expected = '            u---------(Aw)--w---';
      const result$ = source$.pipe(
        conflate((each) => (each as { readonly key: string }).key, 10),
        map((each) => each as unknown),
      );
      expectObservable(result$, '^--------------------!').toBe(expected.trim(), { ...events, A: newest('a1', 1) });
    });
  });

  it('emits lifecycle events in order, after the waiting values', () => {
    const source = '  g-ap-b-g--c---------';
    const sub = '     ^--------------------!';
    const expected = 'g------(VWg)--------X';
    check(source, expected, { V: newest('a2', 2), W: newest('p1', 1), X: newest('a3', 1) }, {}, sub);
  });

  it('emits waiting values before it completes or errors', () => {
    check('-a-b-|', '-----(V|)', { V: newest('a2', 2) });
    check('-a-b-#', '-----(V#)', { V: newest('a2', 2) });
    check('-----|', '-----|', {});
  });

  it('emits all waiting values as soon as there are maxKeys keys', () => {
    const source = '  -a-b-p--c---';
    const sub = '     ^----------!';
    const expected = '-----(VW)-X-';
    check(source, expected, { V: newest('a2', 2), W: newest('p1', 1), X: newest('a3', 1) }, { maxKeys: 2 }, sub);
  });

  it('counts every value exactly once, and emits the newest of each batch', () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.boolean()));
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 4 }), (all, maxKeys) => {
        const sent = all.map(([key, isEvent], n) => (isEvent ? values.g : { key, n }));
        const conflated$ = from(sent).pipe(
          conflate((each) => (each as { readonly key: number }).key, 10_000, { maxKeys }),
        );
        const received = emittedBy(conflated$).filter((each) => each.type === 'conflated');
        for (let key = 0; key <= 5; key += 1) {
          const its = sent.filter((each) => 'key' in each && each.key === key);
          let end = 0;
          for (const { value, count } of received.filter((each) => each.key === key)) {
            end += count;
            expect(value).toBe(its[end - 1]);
          }
          expect(end).toBe(its.length);
        }
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('distinctRecent', () => {
  it('drops an item whose key first arrived less than `ttlMs` ago', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('  --a-b-a-a-a-b--|');
      const sub = '         ^--------------!';
      const expected = '    --a-b-----a-b--|';
      const result = source.pipe(distinctRecent((item) => item, { ttlMs: 8 }));
      const later = hot('   --a-------a|').pipe(distinctRecent((item) => item, { ttlMs: 9 }));
      expectObservable(result).toBe(expected);
      expectObservable(later).toBe('--a--------|');
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  /** Returns which frames pass. The clock is at the time of a frame, or where the frame says. */
  const passing = (
    frames: readonly { readonly key: string; readonly at: number; readonly clock?: number }[],
    options: DistinctRecentOptions = {},
  ): number[] => {
    let now = 0;
    const scheduler: SchedulerLike = { now: () => now, schedule: asyncScheduler.schedule.bind(asyncScheduler) };
    const sent = frames.map(({ key, at, clock = at }) => ({ frame: frameOf(key, at), clock }));
    const received = emittedBy(
      from(sent).pipe(
        tap(({ clock }) => (now = clock)),
        map(({ frame }) => frame),
        distinctRecent((each) => each.text(), { ...options, scheduler }),
      ),
    );
    return received.map((each) => sent.findIndex(({ frame }) => frame === each));
  };
  const minute = 60_000;
  const hour = 60 * minute;
  const start = 1_700_000_000_000;
  /** The same key every 50 s, so every second frame passes. */
  const every50s = (count: number, from: number) =>
    Array.from({ length: count }, (_, n) => ({ key: 'a', at: from + n * 50_000 }));

  it('loses nothing after one frame that is timed an hour ahead, and does not forget what arrived before it', () => {
    const frames = every50s(60, start);
    const expected = frames.map((_, n) => n).filter((n) => n % 2 === 0);
    expect(passing(frames)).toEqual(expected);
    const ahead = { key: 'b', at: frames[20]!.at + hour, clock: frames[20]!.at };
    const after = (n: number) => (n > 20 ? n + 1 : n);
    expect(passing([...frames.slice(0, 21), ahead, ...frames.slice(21)])).toEqual(
      [...expected.map(after), 21].sort((a, b) => a - b),
    );
    // What it was timed by doesn't matter for its own key either.
    const again = { ...ahead, at: ahead.clock + 40_000, clock: ahead.clock + 40_000 };
    expect(passing([frames[20]!, ahead, again])).toEqual([0, 1]);
  });

  it('ages by the clock if all frames are timed ahead of it', () => {
    const frames = every50s(60, start).map((each) => ({ ...each, at: each.at + hour, clock: each.at }));
    expect(passing(frames)).toEqual(frames.map((_, n) => n).filter((n) => n % 2 === 0));
  });

  it('loses nothing in an old log either, where the clock cannot tell which time is wrong', () => {
    const frames = every50s(60, start).map((each) => ({ ...each, clock: start + 24 * hour }));
    const ahead = { ...frames[20]!, key: 'b', at: frames[20]!.at + hour };
    const passed = passing([...frames.slice(0, 21), ahead, ...frames.slice(21)]);
    // Forgets what came before, but each frame that it drops has one before it that passed.
    expect(Math.max(...passed.map((n, at) => n - (passed[at - 1] ?? 0)))).toBe(2);
    expect(passed.length).toBe(32);
  });

  it('forgets the keys when the clock is turned back, also of items that have no time', () => {
    const before = ['a', 'b'].map((key) => ({ key, at: start }));
    const after = ['a', 'b', 'a'].map((key) => ({ key, at: start - hour }));
    expect(passing([...before, ...after])).toEqual([0, 1, 2, 3]);
    let now = start;
    const scheduler: SchedulerLike = { now: () => now, schedule: asyncScheduler.schedule.bind(asyncScheduler) };
    const turned$ = from(['a', 'b', 'back', 'a', 'a']).pipe(tap((item) => item === 'back' && (now -= hour)));
    const items = emittedBy(turned$.pipe(distinctRecent((item) => item, { scheduler })));
    expect(items).toEqual(['a', 'b', 'back', 'a']);
  });

  it('keeps the keys when the clock is turned back by less than `ttlMs`, or when an old frame comes', () => {
    const corrected = [0, 10_000, -20_000, -10_000].map((ms) => ({ key: 'a', at: start + ms }));
    expect(passing(corrected)).toEqual([0]);
    const old = { key: 'old', at: start - hour, clock: start + 1_000 };
    expect(
      passing([{ key: 'a', at: start }, old, { key: 'a', at: start + 2_000 }, { ...old, clock: start + 3_000 }]),
    ).toEqual([0, 1]);
  });

  it('gives the same results as a plain list of keys and times', () => {
    const items = fc.array(fc.record({ key: fc.nat({ max: 8 }), wait: fc.integer({ min: -3, max: 12 }) }), {
      maxLength: 150,
      size: 'max',
    });
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 40 }), (waits, max, ttlMs) => {
        let at = 100;
        const frames = waits.map(({ key, wait }) => frameOf(String(key), (at += wait)));
        let now = 0;
        const clockAt: number[] = [];
        let known: { key: string; at: number }[] = [];
        const expected = frames.filter((each) => {
          now = Math.max(now, each.receivedAt);
          clockAt.push(now);
          known = known.filter((entry) => now - entry.at < ttlMs);
          if (known.some((entry) => entry.key === each.text())) return false;
          known = [...known, { key: each.text(), at: now }].slice(-max);
          return true;
        });
        const timed = frames.map((each, n) => ({ key: each.text(), at: each.receivedAt, clock: clockAt[n] as number }));
        expect(passing(timed, { max, ttlMs }).map((n) => frames[n])).toEqual(expected);
      }),
    );
  });
});
