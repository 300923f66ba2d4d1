import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from } from 'rxjs';
import type { FeedEvent, Frame } from '../../src/index.js';
import { distinctRecent } from '../../src/operators/distinct-recent.js';
import { frameOf as frame, gapOf, marbles } from './stream.js';

const gap = gapOf(0, 1);

describe('distinctRecent', () => {
  it('drops an item whose key first arrived less than `ttlMs` ago', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('  --a-b-a-a-a-b--|');
      const sub = '         ^--------------!';
      const expected = '    --a-b-----a-b--|';
      const result = source.pipe(distinctRecent((item) => item, { ttlMs: 8 }));
      const later = hot('   --a-------a|').pipe(distinctRecent((item) => item, { ttlMs: 9 }));
      expectObservable(result).toBe(expected);
      expectObservable(later).toBe('--a--------|');
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it.each<[string, number, Frame[], string[]]>([
    [
      'uses the time of the frames, also in a recording',
      60_000,
      [frame('a', 0), frame('b', 59_999), frame('a', 59_999), frame('a', 60_000), frame('b', 60_001)],
      ['a 0', 'b 59999', 'a 60000'],
    ],
    [
      'never decreases the time',
      100,
      [frame('a', 1_000), frame('b', 500), frame('b', 1_099), frame('b', 1_100)],
      ['a 1000', 'b 500', 'b 1100'],
    ],
  ])('%s', (_title, ttlMs, frames, expected) => {
    const seen: string[] = [];
    from(frames)
      .pipe(distinctRecent((each) => each.text(), { ttlMs }))
      .subscribe((each) => seen.push(`${each.text()} ${each.receivedAt}`));
    expect(seen).toEqual(expected);
  });

  it('emits lifecycle events unchanged, in order', () => {
    const events: FeedEvent[] = [frame('a', 0), gap, gap, frame('a', 1, 2), gap, frame('b', 2, 2)];
    const seen: string[] = [];
    from(events)
      .pipe(distinctRecent((each) => each.text()))
      .subscribe((event) => seen.push(event.type === 'frame' ? event.text() : event.type));
    expect(seen).toEqual(['a', 'gap', 'gap', 'gap', 'b']);
  });

  it('gives the same results as a plain list of keys and times', () => {
    const items = fc.array(fc.record({ key: fc.nat({ max: 8 }), wait: fc.integer({ min: -3, max: 12 }) }), {
      maxLength: 150,
      size: 'max',
    });
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 40 }), (waits, max, ttlMs) => {
        let at = 100;
        const frames = waits.map(({ key, wait }) => frame(String(key), (at += wait)));
        let now = 0;
        let known: { key: string; at: number }[] = [];
        const expected = frames.filter((each) => {
          now = Math.max(now, each.receivedAt);
          known = known.filter((entry) => now - entry.at < ttlMs);
          if (known.some((entry) => entry.key === each.text())) return false;
          known = [...known, { key: each.text(), at: now }].slice(-max);
          return true;
        });
        const seen: Frame[] = [];
        from(frames)
          .pipe(distinctRecent((each) => each.text(), { max, ttlMs }))
          .subscribe((each) => seen.push(each));
        expect(seen).toEqual(expected);
      }),
    );
  });
});
