import { describe, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { left, right } from 'fp-ts/lib/Either.js';
import { type Observable, Subject, filter, from, map } from 'rxjs';
import { type ConflateOptions, conflate } from '../../src/operators/conflate.js';
import { distinctRecent } from '../../src/operators/distinct-recent.js';
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
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import { cases } from '../support/cases.js';
import { holders } from './own-bytes/holders.js';
import { bufferSizes, chunk } from './own-bytes/views.js';
import { disconnected, frameOf, gapOf, issued, marbles, opened, reconnecting, requested, watermark } from './stream.js';

const relayed = new Frame('raw', new Uint8Array(3), true, 9, 1);
const frame = frameOf('grün', 7);
const decoded = new Decoded({ n: 1 }, frame);
const strangers = [
  ...['opened', 'gap', 'disconnected', 'trade', 5].map((type) => ({ type })),
  { type: 'gap', from: 1 },
  { type: 'gap', to: 1 },
  { type: 'disconnected', at: 1 },
  { type: 'disconnected', failure: { endedAt: 1 } },
  { type: 'gap', failure: { endedAt: 1 } },
  ...[undefined, null, 0, '', 'gap', [], () => 1, Symbol('gap')],
];

describe('isLifecycle', () => {
  it.each([requested(1), issued(1), opened(1), disconnected(1), reconnecting(1, 1), gapOf(1, 2)])(
    'knows $type',
    (event) => {
      expect(isLifecycle(event)).toBe(true);
    },
  );

  it('returns false for frames, values created from them, and all other values', () => {
    for (const item of [frame, decoded, ...strangers]) expect(isLifecycle(item)).toBe(false);
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
    for (const item of strangers) expect(timeOf(item)).toBeUndefined();
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
  it('changes the frame a value was created from, and returns the same value', () => {
    const frames = chunk(1_000, [0, 10], [10, 20], [20, 30]) as [Frame, Frame, Frame];
    const values = [new Decoded(1, frames[0]), right(new Decoded(2, frames[1])), new Conflated('key', frames[2], 1)];
    for (const value of values) expect(withOwnBytes<unknown>(value)).toBe(value);
    expect(bufferSizes(frames)).toEqual([10, 10, 10]);
  });

  it.each([
    [749, 749],
    [750, 1_000],
  ])('keeps a buffer of 1,000 bytes if the frame uses at least 3/4 of it: %d bytes', (bytes, bufferBytes) => {
    const [frame] = chunk(1_000, [100, 100 + bytes]) as [Frame];
    expect(withOwnBytes(frame).data.buffer.byteLength).toBe(bufferBytes);
  });

  it("doesn't copy a frozen frame", () => {
    const [frozen] = chunk(1_000, [0, 10]) as [Frame];
    const { data } = frozen;
    expect(withOwnBytes(Object.freeze(frozen)).data).toBe(data);
  });
});

const frameBytes = 1_000;
const reads = 4;

/** Creates frames in buffers of `bufferBytes`, each behind `headBytes`, as a socket or a worker does. */
const feed = (bufferBytes: number, headBytes: number): Frame[][] => {
  let n = 0;
  return Array.from({ length: reads }, () => {
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

const heldBytes = (held: readonly Uint8Array[]): number =>
  [...new Set(held.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0);
const sizeOf = (held: readonly Uint8Array[]): number => held.reduce((sum, { byteLength }) => sum + byteLength, 0);

type Part = (frames: Observable<Frame>) => Observable<Frame>;
const all: Part = (frames) => frames;
const oneOfFive: Part = filter((frame) => frame.data.readUInt32LE() % 5 === 0);
const mostOfThem: Part = filter((frame) => frame.data.readUInt32LE() % 10 < 7);

/** Passes one shared feed to operators, and returns how many bytes each keeps alive per held byte. */
const ratios = async (read: readonly (readonly Frame[])[], parts: readonly (readonly [string, Part])[]) => {
  const subject = new Subject<Frame>();
  const drains = parts.map(([name, part]) => holders[name]!(part(subject)));
  for (const frames of read) {
    for (const frame of frames) subject.next(frame);
    await turn();
  }
  const held: (readonly Uint8Array[])[] = [];
  for (const drain of drains) held.push(await drain());
  return held.map((each) => {
    // If an operator holds almost nothing, its ratio means nothing.
    expect(sizeOf(each)).toBeGreaterThan(20_000);
    return heldBytes(each) / sizeOf(each);
  });
};

const names = Object.keys(holders);
/** What the two operators receive. */
const combinations: readonly (readonly [Part, Part])[] = [
  [all, oneOfFive],
  [all, all],
  [oneOfFive, all],
  [all, mostOfThem],
  [mostOfThem, oneOfFive],
];
const pairs = names.flatMap((one, n) => names.slice(n).map((other) => [one, other] as const));

describe.each([
  ['reads of 64 KiB', 65_536, 4],
  ['blocks of 256 KiB, as of a worker', 262_144, 0],
])('two operators that hold frames of one shared feed: %s', (_, bufferBytes, headBytes) => {
  it.each(pairs)('%s and %s each keep at most 1.5 times their bytes alive', async (one, other) => {
    for (const [some, others] of combinations.slice(0, cases(combinations.length))) {
      const found = await ratios(feed(bufferBytes, headBytes), [
        [one, some],
        [other, others],
      ]);
      expect(Math.max(...found)).toBeLessThanOrEqual(1.5);
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
  it('emits the newest value of each key once per period, and how many values it had', () => {
    const source = '  -a-p-b-c-----p--q--------------';
    const sub = '     ^-----------------------------!';
    const expected = '----------(VW)------X----------';
    check(source, expected, { V: newest('a3', 3), W: newest('p1', 1), X: newest('p2', 2) }, {}, sub);
  });

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

  it('emits the waiting values, then errors when `key` throws and unsubscribes from the source', () => {
    const source = new Subject<string>();
    const received: unknown[] = [];
    const key = (text: string) => {
      if (text === 'bad') throw new Error('mine');
      return text;
    };
    source
      .pipe(conflate(key, 10_000))
      .subscribe({ next: (each) => received.push(each), error: (error: unknown) => received.push(error) });
    source.next('good');
    source.next('bad');
    expect(received).toEqual([new Conflated('good', 'good', 1), new Error('mine')]);
    expect(source.observed).toBe(false);
  });

  it('counts every value exactly once, and emits the newest of each batch', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.boolean())),
        fc.integer({ min: 1, max: 4 }),
        (steps, maxKeys) => {
          const source = new Subject<{ key: number; n: number } | FeedEvent>();
          const received: Conflated<{ key: number; n: number }, number>[] = [];
          source
            .pipe(conflate((each) => (each as { key: number }).key, 10_000, { maxKeys }))
            .subscribe((each) => each.type === 'conflated' && received.push(each as (typeof received)[number]));
          const sent: { key: number; n: number }[] = [];
          steps.forEach(([key, isEvent], n) => {
            if (isEvent) return source.next(values.g);
            const value = { key, n };
            sent.push(value);
            source.next(value);
          });
          source.complete();
          for (const key of new Set(sent.map((each) => each.key))) {
            const its = sent.filter((each) => each.key === key);
            let end = 0;
            for (const { value, count } of received.filter((each) => each.key === key)) {
              end += count;
              expect(value).toBe(its[end - 1]);
            }
            expect(end).toBe(its.length);
          }
          expect(received.reduce((sum, { count }) => sum + count, 0)).toBe(sent.length);
        },
      ),
      { numRuns: cases(100) },
    );
  });
});

const gap = gapOf(0, 1);

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

  it.each<[string, number, Frame[], string[]]>([
    [
      'uses the time of the frames, also in a recording',
      60_000,
      [frameOf('a', 0), frameOf('b', 59_999), frameOf('a', 59_999), frameOf('a', 60_000), frameOf('b', 60_001)],
      ['a 0', 'b 59999', 'a 60000'],
    ],
    [
      'never decreases the time',
      100,
      [frameOf('a', 1_000), frameOf('b', 500), frameOf('b', 1_099), frameOf('b', 1_100)],
      ['a 1000', 'b 500', 'b 1100'],
    ],
  ])('%s', (_title, ttlMs, frames, expected) => {
    const seen: string[] = [];
    from(frames)
      .pipe(distinctRecent((each) => each.text(), { ttlMs }))
      .subscribe((each) => seen.push(`${each.text()} ${each.receivedAt}`));
    expect(seen).toEqual(expected);
  });

  it('emits lifecycle events unchanged, in order', () => {
    const events: FeedEvent[] = [frameOf('a', 0), gap, gap, frameOf('a', 1, 2), gap, frameOf('b', 2, 2)];
    const seen: string[] = [];
    from(events)
      .pipe(distinctRecent((each) => each.text()))
      .subscribe((event) => seen.push(event.type === 'frame' ? event.text() : event.type));
    expect(seen).toEqual(['a', 'gap', 'gap', 'gap', 'b']);
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
        let known: { key: string; at: number }[] = [];
        const expected = frames.filter((each) => {
          now = Math.max(now, each.receivedAt);
          known = known.filter((entry) => now - entry.at < ttlMs);
          if (known.some((entry) => entry.key === each.text())) return false;
          known = [...known, { key: each.text(), at: now }].slice(-max);
          return true;
        });
        const seen: Frame[] = [];
        from(frames)
          .pipe(distinctRecent((each) => each.text(), { max, ttlMs }))
          .subscribe((each) => seen.push(each));
        expect(seen).toEqual(expected);
      }),
    );
  });
});
