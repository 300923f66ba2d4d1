import { describe, expect, it } from '@jest/globals';
import { EMPTY, interval, of, Subject, tap, throwError } from 'rxjs';
import { type Collector, collect$ } from '../../../src/operators/timing/collect.js';
import { marbles } from '../stream.js';

/** Collects letters. They are ready at a capital letter, at a tick and at the end. */
const collector = (): Collector<string, string> & { tick(): void } => {
  let waiting: string[] = [];
  const ready: string[] = [];
  const release = (): void => {
    ready.push(...waiting);
    waiting = [];
  };
  return {
    add: (letter) => {
      if (letter === '!') throw new Error('mine');
      waiting.push(letter);
      const isCapital = letter === letter.toUpperCase();
      if (isCapital) release();
      return isCapital;
    },
    tick: release,
    end: release,
    *drain() {
      for (let next = ready.shift(); next !== undefined; next = ready.shift()) yield next;
    },
  };
};

const check = (source: string, expected: string, sub?: string, everyMs = 5): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }) => {
    const source$ = cold(source);
    const own = collector();
    expectObservable(
      collect$(source$, own, () => interval(everyMs).pipe(tap(() => own.tick()))),
      sub,
    ).toBe(expected);
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });

describe('collect$', () => {
  it('emits when `add` returns true, and at each tick', () => {
    const source = '  ab-C--d----e-';
    const sub = '     ^-----------!';
    const expected = '---(abC)--d--';
    check(source, expected, sub);
  });

  it('emits the rest before it completes or errors, and stops the ticks', () => {
    check('ab|', '--(ab|)');
    check('ab#', '--(ab#)');
    check('|', '|');
  });

  it('stops the ticks of a source that ends during `subscribe`', () => {
    marbles(({ expectObservable }) => {
      expectObservable(collect$(of('a', 'B', 'c'), collector(), () => interval(5))).toBe('(aBc|)');
      expectObservable(collect$(EMPTY, collector(), () => interval(5))).toBe('|');
    });
  });

  it('errors when the collector throws, after the results before, and unsubscribes from the source', () => {
    const source = new Subject<string>();
    const emitted: unknown[] = [];
    collect$(source, collector()).subscribe({
      next: (each) => emitted.push(each),
      error: (error) => emitted.push(error),
    });
    source.next('a');
    source.next('!');
    expect(emitted).toEqual(['a', new Error('mine')]);
    expect(source.observed).toBe(false);
  });

  it('stops between two results when the consumer unsubscribes', () => {
    const source = new Subject<string>();
    const emitted: string[] = [];
    const subscription = collect$(source, collector()).subscribe((each) => {
      emitted.push(each);
      if (each === 'a') subscription.unsubscribe();
    });
    source.next('a');
    source.next('b');
    source.next('C');
    expect(emitted).toEqual(['a']);
    expect(source.observed).toBe(false);
  });

  it('emits the rest before the error also when the consumer makes the source error during an emission', () => {
    const source = new Subject<string>();
    const emitted: unknown[] = [];
    const failure = new Error('failed');
    collect$(source, collector()).subscribe({
      next: (each) => {
        emitted.push(each);
        if (each !== 'A') return;
        source.next('b');
        source.error(failure);
      },
      error: (error) => emitted.push(error),
    });
    source.next('A');
    expect(emitted).toEqual(['A', 'b', failure]);
  });

  it('passes the error of the source to the collector', () => {
    const endings: unknown[] = [];
    const failure = new Error('failed');
    const telling = (): Collector<string, string> => ({ ...collector(), end: (failure) => endings.push(failure) });
    for (const source of [EMPTY, throwError(() => failure)])
      collect$(source, telling()).subscribe({ error: () => undefined });
    expect(endings).toEqual([undefined, { error: failure }]);
  });

  it('keeps the order when the consumer pushes to the source, and when it ends the source', () => {
    const source = new Subject<string>();
    const emitted: string[] = [];
    collect$(source, collector()).subscribe({
      next: (each) => {
        emitted.push(each);
        if (each === 'a') source.next('C');
        if (each === 'C') source.complete();
      },
      complete: () => emitted.push('|'),
    });
    source.next('a');
    source.next('B');
    expect(emitted).toEqual(['a', 'B', 'C', '|']);
  });

  it('passes the values for which `add` returns true to the ticks', () => {
    const source = new Subject<string>();
    const moments: unknown[] = [];
    collect$(source, collector(), (added) => added.pipe(tap((moment) => moments.push(moment)))).subscribe();
    for (const letter of 'aBcD') source.next(letter);
    expect(moments).toEqual(['B', 'D']);
  });
});
