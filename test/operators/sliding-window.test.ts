import { describe, expect, it } from '@jest/globals';
import { map, of, toArray } from 'rxjs';
import type { FeedWindow } from '../../src/operators/window/feed-window.js';
import { slidingWindow, type SlidingWindowOptions } from '../../src/operators/sliding-window.js';
import { Frame } from '../../src/protocol/frame.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { frameOf, gapOf, marbles, opened } from './stream.js';
import { endOfTurn } from './own-bytes/views.js';
import { type AtTime, letters, stamped, stopped, words } from './window/window-words.js';

const check = (
  source: string,
  expected: string,
  windows: Readonly<Record<string, string>>,
  options: Partial<SlidingWindowOptions> & { readonly maxFrames?: number } = {},
  sub?: string,
  events: Readonly<Record<string, AtTime>> = {},
): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
    const source$ = cold(source, { ...letters, ...events });
    const result$ = source$.pipe(stamped(scheduler), slidingWindow({ lengthMs: 10, everyMs: 5, ...options }), words());
    expectObservable(result$, sub).toBe(expected, windows);
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });

describe('slidingWindow', () => {
  it('emits a window every everyMs, with the items of its length; windows that began before the feed are incomplete', () => {
    const source = '  oa-----b----c--------d------';
    const sub = '     ^-------------------------!';
    const expected = '-----V----W----X----Y----Z';
    const windows = { V: '-5-5 a incomplete', W: '0-10 ab', X: '5-15 bc', Y: '10-20 c', Z: '15-25 d' };
    check(source, expected, windows, {}, sub);
  });

  it('has the results of tumblingWindow when everyMs is lengthMs', () => {
    const source = '  oa-----b----c-------|';
    const expected = '----------W---------(X|)';
    check(source, expected, { W: '0-10 ab', X: '10-20 c' }, { everyMs: 10 });
  });

  it("begins no window before the first event with align 'start'", () => {
    const source = '  --oa-----b----c-----';
    const sub = '     ^-----------------!';
    const expected = '------------W----X';
    check(source, expected, { W: '2-12 ab', X: '7-17 bc' }, { align: 'start' }, sub);
  });

  it('accepts an everyMs that does not divide lengthMs', () => {
    const source = '  oa--b--c---d---|';
    // Windows begin at -8, -4, 0, 4, 8.
    const expected = '--U---V---W---X(YZ|)';
    check(
      source,
      expected,
      {
        U: '-8-2 a incomplete',
        V: '-4-6 ab incomplete',
        W: '0-10 abc',
        X: '4-14 bcd',
        Y: '8-18 d incomplete',
        Z: '12-22 incomplete',
      },
      { everyMs: 4 },
    );
  });

  it('ends a window between the starts of two others', () => {
    const lines: string[] = [];
    of<FeedEvent[]>(opened(0), frameOf('a', 9), frameOf('b', 11))
      .pipe(slidingWindow({ lengthMs: 10, everyMs: 4, align: 'start', scheduler: stopped() }), words())
      .subscribe((line) => lines.push(line));
    expect(lines).toEqual(['0-10 a', '4-14 ab incomplete', '8-18 ab incomplete']);
  });

  it('begins each window once', () => {
    let seeds = 0;
    let windows = 0;
    of<FeedEvent[]>(opened(0), frameOf('a', 17), frameOf('b', 12), frameOf('c', 3), frameOf('d', 25))
      .pipe(slidingWindow({ lengthMs: 10, everyMs: 5, scheduler: stopped(), seed: () => (seeds += 1), add: () => 0 }))
      .subscribe(() => (windows += 1));
    expect([seeds, windows]).toEqual([7, 7]);
  });

  it('marks every window incomplete that overlaps a gap', () => {
    const source = '  o-a---x(og)-------b-------';
    const sub = '     ^-----------------------!';
    const expected = '-----V----W----X----Y----';
    const windows = {
      V: '-5-5 a incomplete',
      W: '0-10 a gap 6-7 incomplete',
      X: '5-15 gap 6-7 incomplete',
      Y: '10-20 b',
    };
    check(source, expected, windows, {}, sub, { g: (at) => gapOf(at - 1, at) });
  });

  it('emits the open windows, oldest first, before it completes or errors', () => {
    const windows = { V: '-5-5 a incomplete', W: '0-10 ab incomplete', X: '5-15 b incomplete' };
    check('oa-----b|', '-----V--(WX|)', windows);
    check('oa-----b#', '-----V--(WX#)', windows);
  });

  it('adds late items to the windows that are still open', () => {
    const lines: string[] = [];
    of<FeedEvent[]>(opened(0), frameOf('a', 17), frameOf('e', 18), frameOf('b', 12), frameOf('c', 3), frameOf('d', 25))
      .pipe(slidingWindow({ lengthMs: 10, everyMs: 5, scheduler: stopped() }), words())
      .subscribe((line) => lines.push(line));
    expect(lines).toEqual([
      '-5-5 incomplete',
      '0-10',
      '5-15',
      '10-20 aebc incomplete',
      '15-25 ae',
      '20-30 d incomplete',
      '25-35 d incomplete',
    ]);
  });

  it('holds at most maxFrames items in each window', () => {
    const windows = {
      V: '-5-5 ab 4 items 2 dropped incomplete',
      W: '0-10 ab 5 items 3 dropped incomplete',
      X: '5-15 e',
    };
    check('oabcd-e--------', '-----V----W----X', windows, { maxFrames: 2 }, '^---------------!');
  });

  it('holds the bytes of a frame once, for any number of windows', async () => {
    const read = Buffer.alloc(1_000, 'x');
    const other = Buffer.alloc(1_000, 'y');
    const small = (bytes: Buffer, at: number) => new Frame('market', bytes.subarray(0, 10), false, at, 1);
    const windows: FeedWindow<Frame>[] = [];
    of<FeedEvent[]>(opened(0), small(read, 1), small(other, 6))
      .pipe(
        slidingWindow({ lengthMs: 10, everyMs: 2, scheduler: stopped() }),
        toArray(),
        map((all) => all),
      )
      .subscribe((all) => windows.push(...all));
    await endOfTurn();
    const held = windows.flatMap(({ frames }) => frames).filter(({ receivedAt }) => receivedAt === 1);
    expect(held.length).toBeGreaterThan(3);
    expect(new Set(held).size).toBe(1);
    expect(held[0]?.data.buffer.byteLength).toBe(10);
    expect(held[0]?.text()).toBe('x'.repeat(10));
  });

  it('has a separate accumulator value for each window', () => {
    const values: unknown[] = [];
    of<FeedEvent[]>(opened(0), frameOf('a', 1), frameOf('b', 7), frameOf('c', 12))
      .pipe(
        slidingWindow({
          lengthMs: 10,
          everyMs: 5,
          scheduler: stopped(),
          seed: (): string[] => [],
          add: (texts, frame) => {
            texts.push(frame.text());
            return texts;
          },
        }),
      )
      .subscribe(({ value, count }) => values.push([value.join(''), count]));
    expect(values).toEqual([
      ['a', 1],
      ['ab', 2],
      ['bc', 2],
      ['c', 1],
    ]);
  });

  it.each<[string, object, string]>([
    ['no length', { everyMs: 1 }, '`lengthMs` must be a whole number of ms, 1 or more'],
    ['no distance', { lengthMs: 1 }, '`everyMs` must be a whole number of ms, 1 or more'],
    ['windows with room between them', { lengthMs: 5, everyMs: 6 }, '`everyMs` must be at most lengthMs (5), got 6'],
    ['an unknown option', { lengthMs: 5, everyMs: 5, size: 1 }, '`size` must be left out'],
  ])('refuses %s, in the call itself', (_what, options, message) => {
    expect(() => slidingWindow(options as SlidingWindowOptions)).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) }),
    );
  });
});
