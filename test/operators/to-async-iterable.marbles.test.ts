import { describe, expect, it } from '@jest/globals';
import type { BoundOptions } from '../../src/operators/bounded/bounds.js';
import type { DropReport } from '../../src/operators/bounded/drop-report.js';
import { toAsyncIterable } from '../../src/operators/to-async-iterable.js';
import { marbles } from './stream.js';

const mine = new Error('mine');

type Iterator = Required<AsyncIterableIterator<string, undefined>>;

/** The actions of a diagram on an iterator: request the next value, leave, leave with an error. */
const acts: Readonly<Record<string, (iterator: Iterator) => Promise<IteratorResult<string, undefined>>>> = {
  n: (iterator) => iterator.next(),
  r: (iterator) => iterator.return(),
  t: (iterator) => iterator.throw(mine),
};

/** The settled promises as text: a value, the end, an error. */
const drawn = (answer: Promise<IteratorResult<string, undefined>>): Promise<string> =>
  answer.then(
    ({ done, value }) => (done === true ? '|' : value),
    (error: unknown) => (error === mine ? '#' : (error as Error).name),
  );

interface Diagrams {
  readonly source: string;
  /** `n`, `r` and `t`: see `acts`. One diagram for each iterator. */
  readonly requests: readonly string[];
  readonly subs: readonly string[];
  /** The expected results, in order, for each iterator. */
  readonly results: readonly string[];
}

/** Runs the diagrams. Returns the drop reports, each with its time. */
const check = async (
  { source, requests, subs, results }: Diagrams,
  options: BoundOptions<string> = {},
  isHot = false,
): Promise<(readonly [at: number, report: DropReport])[]> => {
  const reports: (readonly [number, DropReport])[] = [];
  const settled: Promise<string>[][] = requests.map(() => []);
  marbles(({ cold, hot, expectSubscriptions }, scheduler) => {
    const source$ = isHot ? hot(source, undefined, mine) : cold(source, undefined, mine);
    const onDrop = (report: DropReport) => reports.push([scheduler.now(), report]);
    const iterable = toAsyncIterable<string>({ onDrop, scheduler, ...options })(source$);
    for (const [which, marks] of requests.entries()) {
      const iterator = iterable[Symbol.asyncIterator]() as Iterator;
      cold(marks, acts).subscribe((act) => settled[which]?.push(drawn(act(iterator))));
    }
    expectSubscriptions(source$.subscriptions).toBe([...subs]);
  });
  const emitted = await Promise.all(settled.map(async (each) => (await Promise.all(each)).join(' ')));
  expect(emitted).toEqual(results);
  return reports;
};

describe('the subscription of toAsyncIterable', () => {
  it('begins with the first request, and ends with the source', async () => {
    await check({
      source: '   -a-b-|',
      requests: ['  ---n---n-n-n'],
      subs: ['  ---^----!'],
      results: ['a b | |'],
    });
  });

  it('receives no value from before the first request', async () => {
    const source = 'a-b-c-d-|';
    const requests = ['  ---n-n-n--n'];
    const subs = ['  ---^----!'];
    await check({ source, requests, subs, results: ['c d | |'] }, {}, true);
  });

  it('does not begin without a request', async () => {
    await check({ source: '-a|', requests: ['----'], subs: [], results: [''] });
    await check({ source: '-a|', requests: ['--r-n-r-'], subs: [], results: ['| | |'] });
    await check({ source: '-a|', requests: ['--t-n'], subs: [], results: ['# |'] });
  });

  it('ends when the loop ends, also while it waits for a value', async () => {
    await check({
      source: '  -a-b-c-d-',
      requests: ['  n-n---r--n'],
      subs: ['  ^-----!'],
      results: ['a b | |'],
    });
    await check({
      source: '  -----a-|',
      requests: ['  nn-r'],
      subs: ['  ^--!'],
      results: ['| | |'],
    });
    await check({
      source: '  -a---b-|',
      requests: ['  n-n-t--n'],
      subs: ['  ^---!'],
      results: ['a | # |'],
    });
  });

  it('ends with the error of the source, which the loop throws after the waiting values', async () => {
    await check({
      source: '  -a-b-#',
      requests: ['  n------nn-n'],
      subs: ['  ^----!'],
      results: ['a b # |'],
    });
    await check({
      source: '  -#',
      requests: ['  --n--n'],
      subs: ['  --^!'],
      results: ['# |'],
    });
  });

  it('is separate for each iterator, from its first request to its end', async () => {
    await check({
      source: '  -a-b-c-|',
      requests: ['  n-n-r---', '---n-n-n--n', '-------r'],
      subs: ['  ^---!   ', '---^------!'],
      results: ['a b |', 'a b c |', '|'],
    });
  });
});

describe('the bounds of toAsyncIterable', () => {
  it('drop the oldest values while the source continues', async () => {
    const source = '  -a-b-c-d-|';
    const requests = ['   n-------n--n'];
    const subs = ['   ^--------!'];
    expect(await check({ source, requests, subs, results: ['a d |'] }, { capacity: 1 })).toEqual([
      // The report is sent at the request that leaves the queue empty.
      [8, { reason: 'overflow', dropped: 2, droppedBytes: 4, total: 2, from: 5, to: 7 }],
    ]);
    expect(await check({ source, requests: ['n-------nnn'], subs, results: ['a c d |'] }, { capacity: 2 })).toEqual([
      [8, { reason: 'overflow', dropped: 1, droppedBytes: 2, total: 1, from: 7, to: 7 }],
    ]);
    expect(await check({ source, requests: ['n-------nnnn'], subs, results: ['a b c d |'] }, { capacity: 3 })).toEqual(
      [],
    );
  });

  it('drop the newest values with `drop-newest`', async () => {
    const source = '  -a-b-c-d-e-|';
    const requests = ['   n-----n-n---n'];
    const subs = ['   ^----------!'];
    const options = { capacity: 1, overflow: 'drop-newest' } as const;
    expect(await check({ source, requests, subs, results: ['a b d e'] }, options)).toMatchObject([
      [6, { dropped: 1, from: 5, to: 5 }],
    ]);
  });

  it('end the subscription at the first value beyond the bounds, with the policy `error`', async () => {
    const source = '  -a-b-c-d-|';
    const requests = ['   n--------n-n-n'];
    const subs = ['   ^----!'];
    const options = { capacity: 1, overflow: 'error' } as const;
    expect(await check({ source, requests, subs, results: ['a b OverflowError |'] }, options)).toMatchObject([
      [9, { reason: 'overflow', dropped: 1, from: 5, to: 5 }],
    ]);
  });

  it('report the waiting values when the loop ends, with that time', async () => {
    const source = '  -a-b-c-d-|';
    const requests = ['   n-----r'];
    const subs = ['   ^-----!'];
    expect(await check({ source, requests, subs, results: ['a |'] })).toEqual([
      [6, { reason: 'ended', dropped: 2, droppedBytes: 4, total: 2, from: 6, to: 6 }],
    ]);
  });
});
