import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, map, NEVER, type Observable, Subject, take } from 'rxjs';
import { conflate, type ConflateOptions } from '../../src/operators/conflate.js';
import { Conflated } from '../../src/operators/items/conflated.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import { frameOf, gapOf, marbles, watermark } from './stream.js';
import { aliveBytes, bytesOfAll, endOfTurn, fullChunk } from './memory/views.js';
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
    const told$ = source$.pipe(
      conflate((each) => each.key, 10, options),
      map((each) => each as unknown),
    );
    expectObservable(told$, sub).toBe(expected, { ...emitted, g: values.g });
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });

describe('conflate', () => {
  it('emits the newest value of each key once a period, with how many it stands for', () => {
    const source = '  -a-p-b-c-----p--q--------------';
    const sub = '     ^-----------------------------!';
    const expected = '----------(VW)------X----------';
    check(source, expected, { V: newest('a3', 3), W: newest('p1', 1), X: newest('p2', 2) }, {}, sub);
  });

  it('holds a watermark until the values that it covers are emitted, and no longer', () => {
    marbles(({ cold, expectObservable }) => {
      const events = { a: item('a1'), u: watermark(1), v: watermark(2), w: watermark(3) };
      const source$ = cold<object>(' u-a-v-w---------w---', events);
      const expected = '            u---------(Aw)--w---';
      const told$ = source$.pipe(
        conflate((each) => (each as { readonly key: string }).key, 10),
        map((each) => each as unknown),
      );
      expectObservable(told$, '^--------------------!').toBe(expected.trim(), { ...events, A: newest('a1', 1) });
    });
  });

  it('emits nothing after a period without values', () => {
    const source = '  --------------a----------';
    const sub = '     ^----------------------!';
    const expected = '--------------------V----';
    check(source, expected, { V: newest('a1', 1) }, {}, sub);
  });

  it('passes what happens around the values on in its place, behind what waits', () => {
    const source = '  g-ap-b-g--c---------';
    const sub = '     ^--------------------!';
    const expected = 'g------(VWg)--------X';
    check(source, expected, { V: newest('a2', 2), W: newest('p1', 1), X: newest('a3', 1) }, {}, sub);
  });

  it('emits what waits before it completes or errors', () => {
    check('-a-b-|', '-----(V|)', { V: newest('a2', 2) });
    check('-a-b-#', '-----(V#)', { V: newest('a2', 2) });
    check('-----|', '-----|', {});
  });

  it('emits all that waits when maxKeys wait', () => {
    const source = '  -a-b-p--c---';
    const sub = '     ^----------!';
    const expected = '-----(VW)-X-';
    check(source, expected, { V: newest('a2', 2), W: newest('p1', 1), X: newest('a3', 1) }, { maxKeys: 2 }, sub);
  });

  it('passes every value with maxKeys 1', () => {
    check('-a-b-p-|', '-V-W-X-|', { V: newest('a1', 1), W: newest('a2', 1), X: newest('p1', 1) }, { maxKeys: 1 });
  });

  it('leaves nothing behind when the consumer leaves, not in the middle of a period either', () => {
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

  it('errors with what the key throws, after what waits, and leaves the source', () => {
    const source = new Subject<string>();
    const told: unknown[] = [];
    const key = (text: string) => {
      if (text === 'bad') throw new Error('mine');
      return text;
    };
    source
      .pipe(conflate(key, 10_000))
      .subscribe({ next: (each) => told.push(each), error: (error: unknown) => told.push(error) });
    source.next('good');
    source.next('bad');
    expect(told).toEqual([new Conflated('good', 'good', 1), new Error('mine')]);
    expect(source.observed).toBe(false);
  });

  it('keeps the order when the consumer sends back in the middle of an emission', () => {
    const source = new Subject<{ key: string; n: number } | FeedEvent>();
    const told: unknown[] = [];
    const subscription = source.pipe(conflate((each) => ('key' in each ? each.key : ''), 10_000)).subscribe((each) => {
      told.push(each.type === 'conflated' ? each.key : each.type);
      if (told.length === 1) {
        source.next(item('c1'));
        source.next(values.g);
      }
    });
    source.next(item('a1'));
    source.next(item('p1'));
    source.next(values.g);
    expect(told).toEqual(['a', 'p', 'gap', 'c', 'gap']);
    subscription.unsubscribe();
  });

  it('keeps no read buffer alive for a rare key, however much of it the hot one filled', () => {
    const source = new Subject<Frame>();
    const told: Frame[] = [];
    source.pipe(conflate((frame) => frame.connection, 10_000)).subscribe(({ value }) => told.push(value));
    for (let n = 1; n <= 20; n += 1) {
      const read = Buffer.allocUnsafeSlow(65_536).fill(n);
      for (let at = 100; at < 65_000; at += 1_000) {
        source.next(new Frame('market', read.subarray(at, at + 1_000), false, n, 0));
        if (at === 30_100) source.next(new Frame('market', read.subarray(0, 100), false, n, n));
      }
    }
    source.complete();
    const rare = told.filter(({ connection }) => connection > 0);
    expect(rare.map(({ data }) => data)).toEqual(rare.map(({ connection }) => Buffer.alloc(100, connection)));
    expect(rare.map(({ data }) => data.buffer.byteLength < 2_500)).toEqual(Array(20).fill(true));
  });

  it('keeps at most one and a third times the bytes of the newest alive, however unlike in age they are', async () => {
    const source = new Subject<Frame | FeedEvent>();
    const told: Frame[] = [];
    source.pipe(conflate((frame) => frame.connection, 10_000)).subscribe((event) => {
      if (event.type === 'conflated') told.push(event.value);
      else told.length = 0;
    });
    // What was emitted before is held no more, and does not count.
    for (const { data } of fullChunk(1_000, 1_000)) source.next(new Frame('market', data, false, 0, Math.random()));
    source.next(values.g);
    const copies = new Map<number, Buffer>();
    for (let read = 0; read < 100; read += 1) {
      // One in eight is of a key that comes once; the others are of eight keys that come all the time.
      fullChunk(64, 1_000).forEach(({ data }, n) => {
        const connection = n % 8 === 0 ? 100 + read * 8 + n / 8 : n % 8;
        data.writeUInt32LE(read * 64 + n);
        copies.set(connection, Buffer.from(data));
        source.next(new Frame('market', data, false, read, connection));
      });
      await endOfTurn();
    }
    source.complete();
    expect(told).toHaveLength(807);
    expect(aliveBytes(told)).toBeLessThanOrEqual((4 / 3) * bytesOfAll(told));
    expect(told.map(({ data }) => data)).toEqual(told.map(({ connection }) => copies.get(connection)));
  });

  it('gives small frames bytes of their own before it emits them', () => {
    const read = Buffer.alloc(1_000, 'x');
    const small = (connection: number) => new Frame('market', read.subarray(0, 10), false, 5, connection);
    const told: Frame[] = [];
    from([small(1), small(2), small(2)])
      .pipe(conflate((frame) => frame.connection, 10))
      .subscribe(({ value }) => told.push(value));
    expect(told).toEqual([frameOf('x'.repeat(10), 5, 1), frameOf('x'.repeat(10), 5, 2)]);
    for (const { data } of told) expect(data.buffer).not.toBe(read.buffer);
  });

  it('counts every value exactly once, and gives the newest of each batch', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.boolean())),
        fc.integer({ min: 1, max: 4 }),
        (steps, maxKeys) => {
          const source = new Subject<{ key: number; n: number } | FeedEvent>();
          const told: Conflated<{ key: number; n: number }, number>[] = [];
          source
            .pipe(conflate((each) => (each as { key: number }).key, 10_000, { maxKeys }))
            .subscribe((each) => each.type === 'conflated' && told.push(each as (typeof told)[number]));
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
            for (const { value, count } of told.filter((each) => each.key === key)) {
              end += count;
              expect(value).toBe(its[end - 1]);
            }
            expect(end).toBe(its.length);
          }
          expect(told.reduce((sum, { count }) => sum + count, 0)).toBe(sent.length);
        },
      ),
      { numRuns: cases(100) },
    );
  });

  it('gives each subscription periods and keys of its own', () => {
    marbles(({ hot, expectObservable }) => {
      const told$ = hot('-a---b--------', values).pipe(conflate((each) => (each as { key: string }).key, 10));
      expectObservable(told$, '^----------!').toBe('----------V', { V: newest('a2', 2) });
      expectObservable(told$, '---^----------!').toBe('-------------V', { V: newest('a2', 1) });
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

it('holds 100 000 keys unless told otherwise', () => {
  const values = new Subject<number>();
  let seen = 0;
  const subscription = values.pipe(conflate((value) => value, 60_000)).subscribe(() => (seen += 1));
  for (let n = 1; n < 100_000; n += 1) values.next(n);
  expect(seen).toBe(0);
  values.next(100_000);
  expect(seen).toBe(100_000);
  subscription.unsubscribe();
});
