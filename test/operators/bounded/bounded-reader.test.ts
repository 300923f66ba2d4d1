import { describe, expect, it } from '@jest/globals';
import { Subject } from 'rxjs';
import { BoundedReader } from '../../../src/operators/bounded/bounded-reader.js';
import type { SourceError } from '../../../src/operators/items/item.js';
import { boundDefaults, type Bounds } from '../../../src/operators/bounded/bounds.js';

/** Creates a reader with a consumer that requests as many values as the test asks for. */
const bench = (bounds: Partial<Bounds<number>> = {}, onNext: (value: number) => void = () => undefined) => {
  const source = new Subject<number>();
  const seen: (number | string)[] = [];
  const wish = { left: 0 };
  const reader = new BoundedReader<number>(
    source,
    { ...boundDefaults, ...bounds },
    {
      get wants() {
        return wish.left > 0;
      },
      next: (value) => {
        wish.left -= 1;
        seen.push(value);
        onNext(value);
      },
      end: (failure: SourceError | undefined) => {
        seen.push(failure === undefined ? 'complete' : String(failure.error));
      },
    },
  );
  const ask = (count: number) => {
    wish.left += count;
    reader.pull();
  };
  return { source, seen, reader, ask, wish };
};

describe('BoundedReader', () => {
  it('passes the requested values, then the end, once', () => {
    const { source, seen, ask, reader } = bench();
    ask(1);
    [1, 2, 3].forEach((n) => source.next(n));
    source.complete();
    expect(seen).toEqual([1]);
    ask(2);
    expect(seen).toEqual([1, 2, 3]);
    ask(1);
    reader.pull();
    expect(seen).toEqual([1, 2, 3, 'complete']);
  });

  it('after `cancel`, passes nothing to the consumer and accepts no value', () => {
    const { source, seen, ask, reader } = bench();
    ask(2);
    source.next(1);
    reader.cancel();
    expect(source.observed).toBe(false);
    source.next(2);
    reader.pull();
    expect(seen).toEqual([1]);
  });

  it('keeps the order of values that arrive during `next`', () => {
    const setup = bench({}, (value) => {
      if (value < 3) setup.source.next(value + 1);
    });
    setup.ask(3);
    setup.source.next(1);
    expect(setup.seen).toEqual([1, 2, 3]);
  });

  it('keeps the order of values that arrive during `next` while others wait', () => {
    const setup = bench({}, (value) => {
      if (value === 1) setup.source.next(3);
    });
    setup.ask(1);
    [0, 1, 2].forEach((n) => setup.source.next(n));
    setup.ask(5);
    expect(setup.seen).toEqual([0, 1, 2, 3]);
  });

  it('accepts no value after it reported a failure, even if the source continues', () => {
    const source = new Subject<number>();
    const seen: unknown[] = [];
    const taker = {
      wants: false,
      next: (value: number) => seen.push(value),
      end: (failure: SourceError | undefined) => {
        seen.push(failure?.error);
        source.next(3);
      },
    };
    const mine = new Error('mine');
    const onDrop = () => {
      throw mine;
    };
    const reader = new BoundedReader<number>(source, { ...boundDefaults, capacity: 1, onDrop }, taker);
    reader.pull();
    [1, 2].forEach((n) => source.next(n));
    taker.wants = true;
    reader.pull();
    expect(seen).toEqual([2, mine]);
    expect(source.observed).toBe(false);
  });
});
