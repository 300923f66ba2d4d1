import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, map, of } from 'rxjs';
import { countWindow } from '../../src/operators/count-window.js';
import type { FeedWindow } from '../../src/operators/window/window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import type { Frame } from '../../src/protocol/frame.js';
import { cases } from '../support/cases.js';
import { disconnected, frameOf, gapOf, marbles, opened } from './stream.js';
import { type AtTime, letters, stamped, words } from './window-words.js';

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
  it('emits a window at every n-th frame, which lasts from the first to the last frame', () => {
    const source = '  o-a--b--c-----d--e-';
    const sub = '     ^-----------------!';
    const expected = '-----W--------X----';
    check(source, expected, { W: '2-5 ab', X: '8-14 cd' }, {}, sub);
  });

  it('adds a gap between two windows to the later one', () => {
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

  it('emits a started window as incomplete before it completes or errors, and nothing if it has no items', () => {
    check('o-a-|', '----(W|)', { W: '2-2 a incomplete' });
    check('o-a-#', '----(W#)', { W: '2-2 a incomplete' });
    check('o-ab-|', '---W-|', { W: '2-3 ab' });
    check('o-ab-x|', '---W--|', { W: '2-3 ab' });
    check('o-|', '--|', {});
    check('--#', '--#', {});
  });

  it("reports an outage that hasn't ended when the window does", () => {
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

  it('reads the clock for an item that has no time', () => {
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

  it('accumulates a value without holding any frame', () => {
    const windows: unknown[] = [];
    of<FeedEvent[]>(opened(0), frameOf('a', 1), frameOf('bc', 2), frameOf('d', 3))
      .pipe(countWindow(2, { seed: () => 0, add: (bytes, frame) => bytes + frame.data.length }))
      .subscribe((window) => windows.push(window));
    expect(windows).toEqual([
      { type: 'window', start: 1, end: 2, value: 3, count: 2, gaps: [], complete: true },
      { type: 'window', start: 3, end: 3, value: 1, count: 1, gaps: [], complete: false, reason: 'partial' },
    ]);
  });

  it('emits every item once, in order, and every gap before an item', () => {
    const events = fc.array(fc.tuple(fc.nat(5), fc.constantFrom('frame', 'frame', 'gap')));
    fc.assert(
      fc.property(events, fc.integer({ min: 1, max: 5 }), (steps, n) => {
        const windows: FeedWindow<Frame>[] = [];
        let at = 0;
        const all = steps.map(([step, kind]): FeedEvent => {
          at += step;
          return kind === 'gap' ? gapOf(at - step, at) : frameOf('a', at);
        });
        from(all)
          .pipe(countWindow(n))
          .subscribe((window) => windows.push(window));
        const items = all.filter(({ type }) => type === 'frame');
        const isUnfinished = items.length % n > 0;
        const counted = isUnfinished ? all : all.slice(0, all.findLastIndex(({ type }) => type === 'frame') + 1);
        expect(windows.flatMap(({ frames }) => frames)).toEqual(items);
        expect(windows.slice(0, -1).every(({ frames }) => frames.length === n)).toBe(true);
        expect(windows.flatMap((window) => window.gaps)).toEqual(counted.filter(({ type }) => type === 'gap'));
        for (const window of windows) expect(window.complete).toBe(window.count === n && window.gaps.length === 0);
      }),
      { numRuns: cases(100) },
    );
  });
});
