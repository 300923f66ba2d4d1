import { describe, expect, it } from '@jest/globals';
import { EMPTY, interval, Subject, tap, throwError } from 'rxjs';
import { type Collector, collect$ } from '../../src/operators/items/collect.js';
import { marbles } from './stream.js';

/** Collects letters until a capital letter, a tick or the end. */
const collector = (): Collector<string> & { tick(): void } => {
  let waiting: string[] = [];
  const ready: string[] = [];
  const release = (): void => {
    ready.push(...waiting);
    waiting = [];
  };
  return {
    add: (value) => {
      const letter = String(value);
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
  it('emits when `add` returns true and at each tick', () => {
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

  it('emits earlier results, then errors when the collector throws and unsubscribes from the source', () => {
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

  it('emits the rest before the error, even if the consumer makes the source error during an emission', () => {
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
    const telling = (): Collector<string> => ({ ...collector(), end: (failure) => endings.push(failure) });
    for (const source of [EMPTY, throwError(() => failure)])
      collect$(source, telling()).subscribe({ error: () => undefined });
    expect(endings).toEqual([undefined, expect.objectContaining({ error: failure })]);
  });
});
