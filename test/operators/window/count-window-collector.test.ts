import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { FeedEvent } from '../../../src/protocol/event.js';
import { CountWindowCollector } from '../../../src/operators/window/count-window-collector.js';
import type { FeedWindow } from '../../../src/operators/window/feed-window.js';
import { framesUpTo } from '../../../src/operators/window/window-contents.js';
import type { Frame } from '../../../src/protocol/frame.js';
import { frameOf, gapOf, opened } from '../stream.js';
import { inWords } from './window-words.js';
import { cases } from '../../support/cases.js';

const collectorOf = (n: number) =>
  new CountWindowCollector<FeedEvent, Frame[], FeedWindow<Frame>>(n, framesUpTo(n), () => 0);

describe('CountWindowCollector', () => {
  it('returns whether a window is full, and returns each full window once, also when several wait', () => {
    const collector = collectorOf(2);
    expect(['a', 'b', 'c', 'd', 'e'].map((text, at) => collector.add(frameOf(text, at)))).toEqual([
      false,
      true,
      false,
      true,
      false,
    ]);
    expect([...collector.drain()].map(inWords)).toEqual(['0-1 ab', '2-3 cd']);
    expect([...collector.drain()]).toEqual([]);
    collector.end();
    expect([...collector.drain()].map(inWords)).toEqual(['4-4 e incomplete']);
  });

  it('is not filled by lifecycle events', () => {
    const collector = collectorOf(1);
    expect([opened(1), frameOf('a', 2), gapOf(3, 4)].map((event) => collector.add(event))).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('returns every frame once, in order, and every gap before a frame', () => {
    const events = fc.array(fc.tuple(fc.nat(5), fc.constantFrom('frame', 'frame', 'gap')));
    fc.assert(
      fc.property(events, fc.integer({ min: 1, max: 5 }), (steps, n) => {
        const collector = collectorOf(n);
        const windows: FeedWindow<Frame>[] = [];
        let at = 0;
        const all = steps.map(([step, kind]): FeedEvent => {
          at += step;
          return kind === 'gap' ? gapOf(at - step, at) : frameOf('a', at);
        });
        for (const event of all) {
          if (collector.add(event)) windows.push(...collector.drain());
        }
        collector.end();
        windows.push(...collector.drain());
        const lastFrame = all.findLastIndex(({ type }) => type === 'frame');
        const lastWhole = Math.floor(all.filter(({ type }) => type === 'frame').length / n) * n;
        expect(windows.flatMap(({ frames }) => frames)).toEqual(all.filter(({ type }) => type === 'frame'));
        expect(windows.slice(0, -1).every(({ frames }) => frames.length === n)).toBe(true);
        const gaps = windows.flatMap((window) => window.gaps);
        const isUnfinished = lastWhole < all.filter(({ type }) => type === 'frame').length;
        const counted = isUnfinished ? all : all.slice(0, lastFrame + 1);
        expect(gaps).toEqual(counted.filter(({ type }) => type === 'gap'));
        for (const window of windows) expect(window.complete).toBe(window.count === n && window.gaps.length === 0);
      }),
      { numRuns: cases(100) },
    );
  });
});
