import { describe, expect, it } from '@jest/globals';
import { defer, finalize, interval, range, Subject, take, tap } from 'rxjs';
import { toStore } from '../../src/interop/to-store.js';
import { inOwnContext } from '../../src/operators/items/async-context.js';
import { shareFeed } from '../../src/operators/share-feed.js';
import { inOwn, Journal, within } from '../support/journal.js';

const ofSource = (home: string) => ({ 'source subscribed': home, 'source timer': home, 'source finalized': home });

const ticks$ = ({ note }: Journal) =>
  defer(() => {
    note('source subscribed');
    return interval(1).pipe(
      tap(() => note('source timer')),
      finalize(() => note('source finalized')),
    );
  });

describe.each(['the app', 'none'])('a feed shared in the context of %s', (home) => {
  it.each([0, 1])('runs there for each first subscriber, and its subscribers run in theirs: linger %d', async (ms) => {
    const journal = new Journal();
    const source$ = ticks$(journal);
    const feed$ = within(home, () => shareFeed({ lingerMs: ms })(source$)).pipe(take(2));
    await Promise.all([journal.subscribe('a', feed$), journal.subscribe('b', feed$)]);
    await journal.subscribe('c', feed$);
    await journal.subscribe('none', feed$);
    while (ms > 0 && !('source finalized' in journal.requests)) await new Promise((done) => setTimeout(done));
    expect(journal.requests).toEqual({
      ...ofSource(home),
      ...Object.assign({}, ...['a', 'b', 'c', 'none'].map((name) => inOwn(name, 'complete'))),
    });
  });

  it.each(['error', 'complete'])("delivers what a request causes in its subscribers' contexts: %s", async (end) => {
    const journal = new Journal();
    const events = new Subject<number>();
    const feed$ = within(home, () => events.pipe(shareFeed()));
    const ended = ['a', 'b'].map((name) => journal.subscribe(name, feed$));
    within('other', () => {
      events.next(1);
      if (end === 'error') events.error(new Error('over'));
      else events.complete();
    });
    await Promise.all(ended);
    expect(journal.requests).toEqual({ ...inOwn('a', end), ...inOwn('b', end) });
  });

  it('ends in that context when another request is the last to leave', () => {
    const journal = new Journal();
    const feed$ = within(home, () => ticks$(journal).pipe(shareFeed({ lingerMs: 0 })));
    const subscription = within('a', () => feed$.subscribe());
    within('b', () => subscription.unsubscribe());
    expect(journal.requests).toEqual({ 'source subscribed': home, 'source finalized': home });
  });

  it('ends at once for a subscriber that leaves at the first value', () => {
    const seen: number[] = [];
    const feed$ = within(home, () => range(0, Infinity).pipe(shareFeed({ lingerMs: 0 }), take(2)));
    within('a', () => feed$.subscribe((value) => seen.push(value)));
    expect(seen).toEqual([0, 1]);
  });
});

it('a store reads its source in the context of its creation, and calls each listener in its own', async () => {
  const journal = new Journal();
  const store = within('the app', () => toStore(0)(ticks$(journal)));
  const leaves: (() => void)[] = [];
  await Promise.all(
    ['a', 'b'].map(
      (name) =>
        new Promise<void>((heard) => {
          const listener = () => {
            journal.note(`${name} next`);
            heard();
          };
          leaves.push(within(name, () => store.subscribe(listener)));
        }),
    ),
  );
  for (const leave of leaves) within('other', leave);
  expect(journal.requests).toEqual({ ...ofSource('the app'), 'a next': 'a', 'b next': 'b' });
});

it('what a subscriber starts in a callback has the context of the subscriber', async () => {
  const journal = new Journal();
  const events = new Subject<number>();
  const over = new Promise<void>((resolve) => {
    const next = () =>
      setTimeout(() => {
        journal.note('timer');
        resolve();
      });
    within('a', () => events.pipe(inOwnContext()).subscribe(next));
  });
  within('b', () => events.next(1));
  await over;
  expect(journal.requests).toEqual({ timer: 'a' });
});
