import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, map, NEVER, type Observable, Subject, take } from 'rxjs';
import { conflate, type ConflateOptions } from '../../src/operators/conflate.js';
import { Conflated } from '../../src/operators/items/conflated.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import { frameOf, gapOf, marbles, watermark } from './stream.js';
import { aliveBytes, bytesOfAll, endOfTurn, fullChunk } from './own-bytes/views.js';
import { cases } from '../support/cases.js';

// A letter with a number: a1 is the value 1 of the key a.
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
  it('emits the newest value of each key once per period, with the number of values', () => {
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

  it('emits nothing after a period without values', () => {
    const source = '  --------------a----------';
    const sub = '     ^----------------------!';
    const expected = '--------------------V----';
    check(source, expected, { V: newest('a1', 1) }, {}, sub);
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

  it('emits all waiting values when maxKeys is reached', () => {
    const source = '  -a-b-p--c---';
    const sub = '     ^----------!';
    const expected = '-----(VW)-X-';
    check(source, expected, { V: newest('a2', 2), W: newest('p1', 1), X: newest('a3', 1) }, { maxKeys: 2 }, sub);
  });

  it('emits every value with maxKeys 1', () => {
    check('-a-b-p-|', '-V-W-X-|', { V: newest('a1', 1), W: newest('a2', 1), X: newest('p1', 1) }, { maxKeys: 1 });
  });

  it('leaves no subscription and no timer when the consumer unsubscribes, also within a period', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-a-p----', values);
      expectObservable(
        source$.pipe(
          conflate((each) => each.key, 10),
          take(1),
        ),
      ).toBe('----------(V|)', { V: newest('a1', 1) });
      expectSubscriptions(source$.subscriptions).toBe('^---------!');
    });
    marbles(({ expectObservable }) => {
      expectObservable((NEVER as Observable<string>).pipe(conflate((text) => text, 10)), '^----!').toBe('-');
    });
  });

  it('errors when `key` throws, after the waiting values, and unsubscribes from the source', () => {
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

  it('keeps the order when the consumer pushes to the source during an emission', () => {
    const source = new Subject<{ key: string; n: number } | FeedEvent>();
    const received: unknown[] = [];
    const subscription = source.pipe(conflate((each) => ('key' in each ? each.key : ''), 10_000)).subscribe((each) => {
      received.push(each.type === 'conflated' ? each.key : each.type);
      if (received.length === 1) {
        source.next(item('c1'));
        source.next(values.g);
      }
    });
    source.next(item('a1'));
    source.next(item('p1'));
    source.next(values.g);
    expect(received).toEqual(['a', 'p', 'gap', 'c', 'gap']);
    subscription.unsubscribe();
  });

  it('keeps no read buffer alive for a rare key, even if frequent keys filled it', () => {
    const source = new Subject<Frame>();
    const received: Frame[] = [];
    source.pipe(conflate((frame) => frame.connection, 10_000)).subscribe(({ value }) => received.push(value));
    for (let n = 1; n <= 20; n += 1) {
      const read = Buffer.allocUnsafeSlow(65_536).fill(n);
      for (let at = 100; at < 65_000; at += 1_000) {
        source.next(new Frame('market', read.subarray(at, at + 1_000), false, n, 0));
        if (at === 30_100) source.next(new Frame('market', read.subarray(0, 100), false, n, n));
      }
    }
    source.complete();
    const rare = received.filter(({ connection }) => connection > 0);
    expect(rare.map(({ data }) => data)).toEqual(rare.map(({ connection }) => Buffer.alloc(100, connection)));
    expect(rare.map(({ data }) => data.buffer.byteLength < 2_500)).toEqual(Array(20).fill(true));
  });

  it('keeps at most 4/3 of the bytes of the newest values alive, for values of any age', async () => {
    const source = new Subject<Frame | FeedEvent>();
    const received: Frame[] = [];
    source.pipe(conflate((frame) => frame.connection, 10_000)).subscribe((event) => {
      if (event.type === 'conflated') received.push(event.value);
      else received.length = 0;
    });
    // Emitted values are not held and do not count.
    for (const { data } of fullChunk(1_000, 1_000)) source.next(new Frame('market', data, false, 0, Math.random()));
    source.next(values.g);
    const copies = new Map<number, Buffer>();
    for (let read = 0; read < 100; read += 1) {
      // One in eight is of a key that occurs once; the others are of eight frequent keys.
      fullChunk(64, 1_000).forEach(({ data }, n) => {
        const connection = n % 8 === 0 ? 100 + read * 8 + n / 8 : n % 8;
        data.writeUInt32LE(read * 64 + n);
        copies.set(connection, Buffer.from(data));
        source.next(new Frame('market', data, false, read, connection));
      });
      await endOfTurn();
    }
    source.complete();
    expect(received).toHaveLength(807);
    expect(aliveBytes(received)).toBeLessThanOrEqual((4 / 3) * bytesOfAll(received));
    // jest compares buffers byte by byte, which takes seconds.
    expect(received.filter(({ data, connection }) => !data.equals(copies.get(connection)!))).toEqual([]);
  });

  it('copies small frames before it emits them', () => {
    const read = Buffer.alloc(1_000, 'x');
    const small = (connection: number) => new Frame('market', read.subarray(0, 10), false, 5, connection);
    const received: Frame[] = [];
    from([small(1), small(2), small(2)])
      .pipe(conflate((frame) => frame.connection, 10))
      .subscribe(({ value }) => received.push(value));
    expect(received).toEqual([frameOf('x'.repeat(10), 5, 1), frameOf('x'.repeat(10), 5, 2)]);
    for (const { data } of received) expect(data.buffer).not.toBe(read.buffer);
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

  it('has separate periods and keys for each subscription', () => {
    marbles(({ hot, expectObservable }) => {
      const result$ = hot('-a---b--------', values).pipe(conflate((each) => (each as { key: string }).key, 10));
      expectObservable(result$, '^----------!').toBe('----------V', { V: newest('a2', 2) });
      expectObservable(result$, '---^----------!').toBe('-------------V', { V: newest('a2', 1) });
    });
  });

  it.each<[string, readonly unknown[], string]>([
    ['no key', [undefined, 1], '`key` must be a function'],
    ['no period', [String], '`everyMs` must be a number of ms, above 0 and at most 2147483647'],
    ['a period of 0', [String, 0], '`everyMs` must be a number of ms, above 0 and at most 2147483647, got 0'],
    ['a period in letters', [String, '5'], '`everyMs` must be a number of ms'],
    ['a period that no timer keeps', [String, 2 ** 31], '`everyMs` must be'],
    ['no keys at all', [String, 1, { maxKeys: 0 }], '`maxKeys` must be a whole number, 1 or more, got 0'],
    ['an unknown option', [String, 1, { max: 1 }], '`max` must be left out: the options are maxKeys, scheduler'],
  ])('refuses %s, in the call itself', (_what, [key, everyMs, options], message) => {
    expect(() => conflate(key as () => string, everyMs as number, options as ConflateOptions)).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) }),
    );
  });
});

it('holds 100 000 keys by default', () => {
  const values = new Subject<number>();
  let seen = 0;
  const subscription = values.pipe(conflate((value) => value, 60_000)).subscribe(() => (seen += 1));
  for (let n = 1; n < 100_000; n += 1) values.next(n);
  expect(seen).toBe(0);
  values.next(100_000);
  expect(seen).toBe(100_000);
  subscription.unsubscribe();
});
