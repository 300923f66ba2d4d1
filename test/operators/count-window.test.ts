import { describe, expect, it } from '@jest/globals';
import { map, of, Subject, take } from 'rxjs';
import { countWindow } from '../../src/operators/count-window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { disconnected, frameOf, gapOf, marbles, opened } from './stream.js';
import { type AtTime, letters, stamped, words } from './window/window-words.js';

const check = (
  source: string,
  expected: string,
  windows: Readonly<Record<string, string>>,
  events: Readonly<Record<string, AtTime>> = {},
  sub?: string,
): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
    const source$ = cold(source, { ...letters, ...events });
    expectObservable(source$.pipe(stamped(scheduler), countWindow(2), words()), sub).toBe(expected, windows);
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });

describe('countWindow', () => {
  it('emits a window at every n-th frame, from the time of the first to that of the last frame', () => {
    const source = '  o-a--b--c-----d--e-';
    const sub = '     ^-----------------!';
    const expected = '-----W--------X----';
    check(source, expected, { W: '2-5 ab', X: '8-14 cd' }, {}, sub);
  });

  it('counts a gap for the window that is being filled', () => {
    const source = '  o-a-x-(og)-b--c--d-';
    const expected = '-----------W-----X-';
    check(
      source,
      expected,
      { W: '2-11 ab gap 4-6 incomplete', X: '14-17 cd' },
      { g: (at) => gapOf(4, at) },
      '^------------------!',
    );
  });

  it('counts a gap between two windows for the later one', () => {
    const source = '  o-ab-x-(og)-c--d--e--a';
    const expected = '---W-----------X-----Y';
    check(
      source,
      expected,
      { W: '2-3 ab', X: '12-15 cd gap 5-7 incomplete', Y: '18-21 ea' },
      { g: (at) => gapOf(5, at) },
      '^---------------------!',
    );
  });

  it('emits the started window, incomplete, before it completes or errors; emits nothing without items', () => {
    check('o-a-|', '----(W|)', { W: '2-2 a incomplete' });
    check('o-a-#', '----(W#)', { W: '2-2 a incomplete' });
    check('o-ab-|', '---W-|', { W: '2-3 ab' });
    check('o-ab-x|', '---W--|', { W: '2-3 ab' });
    check('o-|', '--|', {});
    check('--#', '--#', {});
  });

  it('reports an outage that is not over at its end', () => {
    check('o-a--x--|', '--------(W|)', { W: '2-5 a gap 5-5 incomplete' });
    const lines: string[] = [];
    of<FeedEvent[]>(
      opened(0),
      frameOf('a', 20),
      disconnected(30, { endedAt: 21 }),
      frameOf('b', 31),
      frameOf('c', 32),
      gapOf(21, 33),
    )
      .pipe(countWindow(2), words())
      .subscribe((line) => lines.push(line));
    expect(lines).toEqual(['20-31 ab gap 21-31 incomplete', '32-33 c gap 21-33 incomplete']);
  });

  it('never decreases the time', () => {
    const lines: string[] = [];
    of<FeedEvent[]>(frameOf('a', 20), frameOf('b', 15), frameOf('c', 16), frameOf('d', 25))
      .pipe(countWindow(2), words())
      .subscribe((line) => lines.push(line));
    expect(lines).toEqual(['20-20 ab', '20-25 cd']);
  });

  it('reads the clock for an item without a time', () => {
    marbles(({ cold, expectObservable }) => {
      const sizes$ = cold('o-a--b|', letters).pipe(
        map((make) => make(0)),
        map((event) => (event.type === 'frame' ? event.data.length : event)),
        countWindow(2),
        words(),
      );
      expectObservable(sizes$).toBe('-----W|', { W: '2-5 11' });
    });
  });

  it('accumulates a value, and holds no frame', () => {
    const windows: unknown[] = [];
    of<FeedEvent[]>(opened(0), frameOf('a', 1), frameOf('bc', 2), frameOf('d', 3))
      .pipe(countWindow(2, { seed: () => 0, add: (bytes, frame) => bytes + frame.data.length }))
      .subscribe((window) => windows.push(window));
    expect(windows).toEqual([
      { type: 'window', start: 1, end: 2, value: 3, count: 2, gaps: [], complete: true },
      { type: 'window', start: 3, end: 3, value: 1, count: 1, gaps: [], complete: false },
    ]);
  });

  it('errors when an accumulator throws, and unsubscribes from the source', () => {
    const source = new Subject<FeedEvent>();
    const errors: unknown[] = [];
    const add = (): number => {
      throw new Error('mine');
    };
    source.pipe(countWindow(2, { seed: () => 0, add })).subscribe({ error: (error: unknown) => errors.push(error) });
    source.next(frameOf('a', 1));
    expect(errors).toEqual([new Error('mine')]);
    expect(source.observed).toBe(false);
  });

  it('adds values that the consumer pushes during an emission, and ends when it unsubscribes', () => {
    const lines: string[] = [];
    const source = new Subject<FeedEvent>();
    source.pipe(countWindow(2), words(), take(3)).subscribe((line) => {
      lines.push(line);
      if (lines.length === 1) for (const text of 'cdefa') source.next(frameOf(text, 9));
    });
    source.next(frameOf('a', 1));
    source.next(frameOf('b', 2));
    expect(lines).toEqual(['1-2 ab', '9-9 cd', '9-9 ef']);
    expect(source.observed).toBe(false);
  });

  it('has separate windows for each subscription', () => {
    const source = new Subject<FeedEvent>();
    const lines: string[] = [];
    const windows$ = source.pipe(countWindow(2), words());
    windows$.subscribe((line) => lines.push(`early ${line}`));
    source.next(frameOf('a', 1));
    windows$.subscribe((line) => lines.push(`late ${line}`));
    source.next(frameOf('b', 2));
    source.next(frameOf('c', 3));
    expect(lines).toEqual(['early 1-2 ab', 'late 2-3 bc']);
  });

  it.each<[string, readonly unknown[], string]>([
    ['no number', [], '`n` must be a whole number, 1 or more'],
    ['a window of 0', [0], '`n` must be a whole number, 1 or more, got 0'],
    ['maxFrames, since n bounds it', [2, { maxFrames: 1 }], '`maxFrames` must be left out: the options are scheduler'],
    ['a seed alone', [2, { seed: () => 0 }], '`add` must be a function'],
    ['options that are none', [2, null], '`options` must be an object'],
  ])('refuses %s, in the call itself', (_what, [n, options], message) => {
    expect(() => countWindow(n as number, options as object)).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) }),
    );
  });
});
