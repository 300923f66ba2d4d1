import { describe, expect, it } from '@jest/globals';
import { EMPTY, interval, of, Subject, tap, throwError } from 'rxjs';
import { type Gatherer, gathered } from '../../../src/operators/timing/collect.js';
import { marbles } from '../stream.js';

/** Lets out what it has at a capital letter, at a tick and at the end. */
const gatherer = (): Gatherer<string, string> & { tick(): void } => {
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
    *closed() {
      for (let next = ready.shift(); next !== undefined; next = ready.shift()) yield next;
    },
  };
};

const check = (source: string, expected: string, sub?: string, everyMs = 5): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }) => {
    const source$ = cold(source);
    const own = gatherer();
    expectObservable(
      gathered(source$, own, () => interval(everyMs).pipe(tap(() => own.tick()))),
      sub,
    ).toBe(expected);
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });

describe('gathered', () => {
  it('lets out when a value says so, and at each tick', () => {
    const source = '  ab-C--d----e-';
    const sub = '     ^-----------!';
    const expected = '---(abC)--d--';
    check(source, expected, sub);
  });

  it('lets the rest out before it completes or errors, and ends the ticks', () => {
    check('ab|', '--(ab|)');
    check('ab#', '--(ab#)');
    check('|', '|');
  });

  it('ends the ticks of a source that ends as it is subscribed to', () => {
    marbles(({ expectObservable }) => {
      expectObservable(gathered(of('a', 'B', 'c'), gatherer(), () => interval(5))).toBe('(aBc|)');
      expectObservable(gathered(EMPTY, gatherer(), () => interval(5))).toBe('|');
    });
  });

  it('errors with what the gatherer throws, after what it had, and leaves the source', () => {
    const source = new Subject<string>();
    const told: unknown[] = [];
    gathered(source, gatherer()).subscribe({ next: (each) => told.push(each), error: (error) => told.push(error) });
    source.next('a');
    source.next('!');
    expect(told).toEqual(['a', new Error('mine')]);
    expect(source.observed).toBe(false);
  });

  it('ends in the middle when the consumer leaves', () => {
    const source = new Subject<string>();
    const told: string[] = [];
    const subscription = gathered(source, gatherer()).subscribe((each) => {
      told.push(each);
      if (each === 'a') subscription.unsubscribe();
    });
    source.next('a');
    source.next('b');
    source.next('C');
    expect(told).toEqual(['a']);
    expect(source.observed).toBe(false);
  });

  it('lets the rest out before the error also when the consumer fails the source in the middle', () => {
    const source = new Subject<string>();
    const told: unknown[] = [];
    const failure = new Error('failed');
    gathered(source, gatherer()).subscribe({
      next: (each) => {
        told.push(each);
        if (each !== 'A') return;
        source.next('b');
        source.error(failure);
      },
      error: (error) => told.push(error),
    });
    source.next('A');
    expect(told).toEqual(['A', 'b', failure]);
  });

  it('tells the gatherer how the source ended', () => {
    const endings: unknown[] = [];
    const failure = new Error('failed');
    const telling = (): Gatherer<string, string> => ({ ...gatherer(), end: (failure) => endings.push(failure) });
    for (const source of [EMPTY, throwError(() => failure)])
      gathered(source, telling()).subscribe({ error: () => undefined });
    expect(endings).toEqual([undefined, { error: failure }]);
  });

  it('keeps the order when the consumer sends back, and when it ends the source', () => {
    const source = new Subject<string>();
    const told: string[] = [];
    gathered(source, gatherer()).subscribe({
      next: (each) => {
        told.push(each);
        if (each === 'a') source.next('C');
        if (each === 'C') source.complete();
      },
      complete: () => told.push('|'),
    });
    source.next('a');
    source.next('B');
    expect(told).toEqual(['a', 'B', 'C', '|']);
  });

  it('tells the ticks of each moment in which a value said so', () => {
    const source = new Subject<string>();
    const moments: unknown[] = [];
    gathered(source, gatherer(), (added) => added.pipe(tap((moment) => moments.push(moment)))).subscribe();
    for (const letter of 'aBcD') source.next(letter);
    expect(moments).toEqual(['B', 'D']);
  });
});
