import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, map } from 'rxjs';
import { countWindow } from '../../src/operators/count-window.js';
import { slidingWindow } from '../../src/operators/sliding-window.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { FeedWindow, WindowKey } from '../../src/operators/window/window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import type { Frame } from '../../src/protocol/frame.js';
import { cases } from '../support/cases.js';
import { disconnected, emittedBy, frameOf, gapOf, marbles, opened, watermark } from './stream.js';
import { events, inWords, letters, stamped, stopped, words } from './window-words.js';

/** Returns the key of a frame: the first letter of its text. */
const by = (frame: Frame): string => frame.text().charAt(0);
/** Creates frames with these texts, one each ms. */
const framesOf = (...texts: readonly string[]): Frame[] => texts.map((text, n) => frameOf(text, n + 1));

const inWordsByKey = (window: FeedWindow<Frame> & WindowKey<unknown>): string =>
  `${String(window.key)}: ${inWords(window)}${window.beyondMaxKeys === 0 ? '' : ` ${window.beyondMaxKeys} beyond`}`;

// Watermarks end the windows, because a second `opened` would be an outage.
const scheduler = stopped();
const windowsByKey = (events: readonly FeedEvent[], more: { maxKeys?: number; maxFrames?: number } = {}): string[] =>
  emittedBy(from(events).pipe(tumblingWindow<FeedEvent, string>({ lengthMs: 10, by, scheduler, ...more }))).map(
    inWordsByKey,
  );

describe('a window by key', () => {
  it('counts the items of keys beyond maxKeys in each window of their time', () => {
    const events = [opened(0), ...framesOf('a1', 'b1', 'c1', 'a2', 'd1', 'c2'), frameOf('c3', 11), watermark(20)];
    expect(windowsByKey(events, { maxKeys: 2 })).toEqual([
      'a: 0-10 a1a2 3 beyond',
      'b: 0-10 b1 3 beyond',
      'c: 10-20 c3',
    ]);
  });

  it('is late only if it has a late item', () => {
    const events = [opened(0), frameOf('a1', 11), frameOf('b1', 12), frameOf('b2', 9), watermark(20)];
    expect(windowsByKey(events)).toEqual(['a: 10-20 a1', 'b: 10-20 b1b2 late']);
  });

  const options = { lengthMs: 10, scheduler };
  it.each([
    ['tumbling', tumblingWindow<FeedEvent>(options), tumblingWindow<FeedEvent, string>({ ...options, by })],
    [
      'sliding',
      slidingWindow<FeedEvent>({ ...options, everyMs: 5 }),
      slidingWindow<FeedEvent, string>({ ...options, everyMs: 5, by }),
    ],
  ])('has all items of its key, and is as complete as a %s window without keys, in any feed', (_, plain, byKey) => {
    const step = fc.record({
      ms: fc.integer({ min: 0, max: 12 }),
      kind: fc.constantFrom('a', 'a', 'b', 'c', 'outage', 'gap', 'tick'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let at = 0;
        const events$ = from(
          steps.map(({ ms, kind }): FeedEvent => {
            at += ms;
            if (kind === 'outage') return disconnected(at);
            if (kind === 'gap') return gapOf(at - ms, at);
            return kind === 'tick' ? opened(at) : frameOf(`${kind}${at}`, at);
          }),
        );
        const all = emittedBy(events$.pipe(plain));
        const expected = all.flatMap(({ frames, dropped: _, count: __, ...facts }) =>
          [...new Set(frames.map(by))].map((key) => {
            const own = frames.filter((frame) => by(frame) === key);
            return { ...facts, frames: own, dropped: 0, count: own.length, key, beyondMaxKeys: 0 };
          }),
        );
        expect(emittedBy(events$.pipe(byKey))).toEqual(expected);
      }),
      { numRuns: cases(500) },
    );
  });
});

describe('countWindow', () => {
  it('emits a window at every n-th frame, which lasts from the first to the last frame', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source$ = cold('o-a--b--c-----d--e-', letters);
      const sub = '         ^-----------------!';
      const expected = '    -----W--------X----';
      const windows$ = source$.pipe(stamped(scheduler), countWindow(2), words());
      expectObservable(windows$, sub).toBe(expected, { W: '2-5 ab', X: '8-14 cd' });
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it.each([
    [
      'adds a gap between two windows to the later one',
      'o0 a1 b2 x5 o7 g5-7 c9 d12 e15',
      '1-2 ab | 9-12 cd gap 5-7 | 15-15 e partial',
    ],
    ['emits a started window as incomplete in the end', 'o0 a2', '2-2 a partial'],
    [
      "reports an outage that hasn't ended when the window does",
      'o0 a20 x30<21 b31 c32 g21-33',
      '20-31 ab gap 21-31 | 32-33 c gap 21-33',
    ],
  ])('%s', (_title, row, lines) => {
    expect(emittedBy(from(events(row)).pipe(countWindow(2), words())).join(' | ')).toBe(lines);
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
    const bytes = { seed: () => 0, add: (sum: number, { data }: Frame) => sum + data.length };
    const events$ = from<FeedEvent[]>([opened(0), ...framesOf('a', 'bc', 'd')]);
    expect(emittedBy(events$.pipe(countWindow(2, bytes)))).toEqual([
      { type: 'window', start: 1, end: 2, value: 3, count: 2, gaps: [], complete: true },
      { type: 'window', start: 3, end: 3, value: 1, count: 1, gaps: [], complete: false, reason: 'partial' },
    ]);
  });

  it('emits every item once, in order, and every gap before an item', () => {
    const steps = fc.array(fc.tuple(fc.nat(5), fc.constantFrom('frame', 'frame', 'gap')));
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (steps, n) => {
        let at = 0;
        const all = steps.map(([step, kind]): FeedEvent => {
          at += step;
          return kind === 'gap' ? gapOf(at - step, at) : frameOf('a', at);
        });
        const windows = emittedBy(from(all).pipe(countWindow(n)));
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
