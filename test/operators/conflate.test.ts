import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { map, Subject } from 'rxjs';
import { conflate, type ConflateOptions } from '../../src/operators/conflate.js';
import { Conflated } from '../../src/operators/items/item.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { gapOf, marbles, watermark } from './stream.js';
import { cases } from '../support/cases.js';

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
