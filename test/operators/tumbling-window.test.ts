import { describe, expect, it } from '@jest/globals';
import { map, NEVER, of, Subject, take } from 'rxjs';
import type { RunHelpers } from 'rxjs/testing';
import type { FeedEvent } from '../../src/protocol/event.js';
import { tumblingWindow, type TumblingWindowOptions } from '../../src/operators/tumbling-window.js';
import type { FramesOptions } from '../../src/operators/window/window-options.js';
import {
  disconnected,
  frameOf,
  gapOf,
  lost,
  marbles,
  opened,
  reconnecting,
  requested,
  stopped as stop,
  watermark,
} from './stream.js';
import { type AtTime, letters, stamped, stopped, words } from './window/window-words.js';

type Options = Partial<TumblingWindowOptions & FramesOptions>;

interface Case {
  readonly source: string;
  readonly expected: string;
  /** The windows that the capital letters of `expected` represent. */
  readonly windows: Readonly<Record<string, string>>;
  readonly events?: Readonly<Record<string, AtTime>>;
  readonly options?: Options;
  readonly sub?: string;
  readonly expectedSub?: string;
}

const check = ({ source, expected, windows, events = {}, options = {}, sub, expectedSub }: Case): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }: RunHelpers, scheduler) => {
    const source$ = cold(source, { ...letters, ...events });
    const result$ = source$.pipe(stamped(scheduler), tumblingWindow({ lengthMs: 10, ...options }), words());
    expectObservable(result$, sub).toBe(expected, windows);
    if (expectedSub !== undefined) expectSubscriptions(source$.subscriptions).toBe(expectedSub);
  });

/** Runs an array of events, as in a recording that is replayed at full speed. */
const replayed = (events: readonly FeedEvent[], options: Options = {}): readonly string[] => {
  const outputs: string[] = [];
  of<FeedEvent[]>(...events)
    .pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped(), ...options }), words())
    .subscribe((line) => outputs.push(line));
  return outputs;
};

describe('tumblingWindow', () => {
  it('emits each window, also an empty one, when its time is over', () => {
    check({
      source: '  oa--b----c---------------d--',
      expected: '----------W---------X---------Y',
      windows: { W: '0-10 abc', X: '10-20', Y: '20-30 d' },
      sub: '     ^------------------------------!',
      expectedSub: '^------------------------------!',
    });
  });

  it('counts a frame at the end of a window for the next one', () => {
    check({
      source: '  oa--------b---------|',
      expected: '----------W---------(X|)',
      windows: { W: '0-10 a', X: '10-20 b' },
    });
  });

  it('begins with the first event, and has no timer before it', () => {
    check({
      source: '  -------------a-------',
      expected: '--------------------W',
      windows: { W: '10-20 a' },
      sub: '     ^--------------------!',
    });
    marbles(({ expectObservable }, scheduler) => {
      expectObservable(NEVER.pipe(tumblingWindow<FeedEvent>({ lengthMs: 10 }))).toBe('-');
      scheduler.flush();
      expect(scheduler.now()).toBe(0);
    });
  });

  it("begins the first window when the feed opens, with align 'start'", () => {
    check({
      source: '  t--oa--------b-----',
      expected: '-------------W---------X',
      windows: { W: '3-13 a', X: '13-23 b' },
      options: { align: 'start' },
      sub: '     ^------------------------!',
    });
    check({
      source: '  ----a--------b-----',
      expected: '--------------W---------X',
      windows: { W: '4-14 ab', X: '14-24' },
      options: { align: 'start' },
      sub: '     ^-------------------------!',
    });
    check({ source: 't--|', expected: '---|', windows: {}, options: { align: 'start' } });
  });

  describe('is not complete', () => {
    it('when it began before the feed opened', () => {
      check({
        source: '  t----------------o-a----',
        expected: '----------W---------X---------Y',
        windows: { W: '0-10 incomplete', X: '10-20 a incomplete', Y: '20-30' },
        sub: '     ^------------------------------!',
      });
    });

    it('when it began before the subscription', () => {
      marbles(({ hot, expectObservable }, scheduler) => {
        const windows$ = hot('----a----b----c----------', letters).pipe(
          stamped(scheduler),
          tumblingWindow({ lengthMs: 10 }),
          words(),
        );
        const sub = '        -----^---------------!';
        const expected = '   ----------W---------X';
        expectObservable(windows$, sub).toBe(expected, { W: '0-10 b incomplete', X: '10-20 c' });
      });
    });

    it('when it contains an outage', () => {
      check({
        source: '  oa-x-(og)b----',
        expected: '----------W---------X',
        windows: { W: '0-10 ab gap 3-5 incomplete', X: '10-20' },
        events: { g: (at) => gapOf(3, at) },
        sub: '     ^--------------------!',
      });
    });

    it('when it overlaps an outage that is not over, with the gap so far', () => {
      check({
        source: '  oa-----------x--r---------------(og)b-------',
        expected: '----------W---------X---------Y---------Z---------U',
        windows: {
          W: '0-10 a',
          X: '10-20 gap 13-20 incomplete',
          Y: '20-30 gap 13-30 incomplete',
          Z: '30-40 b gap 13-32 incomplete',
          U: '40-50',
        },
        events: { g: (at) => gapOf(13, at) },
        sub: '     ^--------------------------------------------------!',
      });
    });

    it('when it contains a gap of 0 ms', () => {
      check({
        source: '  oa--(xog)b----',
        expected: '----------W---------X',
        windows: { W: '0-10 ab gap 4-4 incomplete', X: '10-20' },
        events: { g: (at) => gapOf(at, at) },
        sub: '     ^--------------------!',
      });
    });

    it('when it dropped items beyond maxFrames', () => {
      check({
        source: '  oabcd-----a---',
        expected: '----------W---------X',
        windows: { W: '0-10 ab 4 items 2 dropped incomplete', X: '10-20 a' },
        options: { maxFrames: 2 },
        sub: '     ^--------------------!',
      });
    });

    it('when the source completed before its end', () => {
      check({
        source: '  oa--------b--|',
        expected: '----------W--(X|)',
        windows: { W: '0-10 a', X: '10-20 b incomplete' },
      });
    });

    it('when the source errored before its end: the frames come first', () => {
      check({
        source: '  oa--------b--#',
        expected: '----------W--(X#)',
        windows: { W: '0-10 a', X: '10-20 b incomplete' },
      });
    });

    it('when the source completed in an outage, with the gap up to then', () => {
      check({
        source: '  oa-x----|',
        expected: '--------(W|)',
        windows: { W: '0-10 a gap 3-8 incomplete' },
      });
    });
  });

  it('counts a gap that ends with a window only for that window', () => {
    check({
      source: '  oa-x------(og)-----',
      expected: '----------W---------X',
      windows: { W: '0-10 a gap 3-10 incomplete', X: '10-20' },
      events: { g: (at) => gapOf(3, at) },
      sub: '     ^--------------------!',
    });
  });

  it('does not count a failed attempt as an outage', () => {
    check({
      source: '  oa-k-----|',
      expected: '---------(W|)',
      windows: { W: '0-10 a incomplete' },
      events: { k: (at) => disconnected(at, { stage: 'ticket', status: 503, closeCode: undefined }) },
    });
    check({
      source: '  oa-k------',
      expected: '----------W',
      windows: { W: '0-10 a' },
      events: { k: (at) => disconnected(at, { stage: 'ticket', status: 503, closeCode: undefined }) },
      sub: '     ^----------!',
    });
  });

  describe('uses the time of the events', () => {
    it('so that a recording at full speed has the windows of the live feed', () => {
      const failure = lost(13);
      const recording = [
        requested(0),
        opened(0),
        frameOf('a', 1),
        frameOf('b', 12),
        disconnected(13),
        reconnecting(13, 19),
        opened(32, 2),
        gapOf(13, 32, failure),
        frameOf('c', 36),
        frameOf('d', 47),
      ];
      const live: string[] = [];
      const gap: AtTime = (at) => gapOf(13, at);
      marbles(({ cold, flush }, scheduler) => {
        cold('oa 10ms bx 18ms (og)c 10ms d|', { ...letters, g: gap })
          .pipe(stamped(scheduler), tumblingWindow({ lengthMs: 10 }), words())
          .subscribe((line) => live.push(line));
        flush();
      });
      const windows = (toOfFirst: number, toOfSecond: number) => [
        '0-10 a',
        `10-20 b gap 13-${toOfFirst} incomplete`,
        `20-30 gap 13-${toOfSecond} incomplete`,
        '30-40 c gap 13-32 incomplete',
        '40-50 d incomplete',
      ];
      // In a live feed, an outage that is not over has a gap up to the known time.
      expect(live).toEqual(windows(20, 30));
      expect(replayed(recording)).toEqual(windows(32, 32));
    });

    it('so that a gap of a recording is in all windows that it overlaps', () => {
      expect(replayed([frameOf('a', 10), gapOf(13, 32), frameOf('b', 35), frameOf('c', 41)])).toEqual([
        '10-20 a gap 13-32 incomplete',
        '20-30 gap 13-32 incomplete',
        '30-40 b gap 13-32 incomplete',
        '40-50 c incomplete',
      ]);
    });

    it('so that an outage that was noticed late is in all windows that are not yet emitted', () => {
      expect(replayed([opened(10), frameOf('a', 11), disconnected(45, { endedAt: 12 }), frameOf('b', 46)])).toEqual([
        '10-20 a gap 12-20 incomplete',
        '20-30 gap 12-30 incomplete',
        '30-40 gap 12-40 incomplete',
        '40-50 b gap 12-46 incomplete',
      ]);
    });

    it('so that a late item belongs to the oldest open window, and the time never decreases', () => {
      expect(replayed([opened(10), frameOf('a', 25), frameOf('b', 3), frameOf('c', 26), frameOf('d', 30)])).toEqual([
        '10-20',
        '20-30 abc incomplete',
        '30-40 d incomplete',
      ]);
    });

    it('so that a late gap is not lost', () => {
      expect(replayed([opened(10), frameOf('a', 25), gapOf(3, 4), frameOf('b', 30), frameOf('c', 40)])).toEqual([
        '10-20',
        '20-30 a gap 3-4 incomplete',
        '30-40 b',
        '40-50 c incomplete',
      ]);
    });

    it('and the clock between events, shifted by the greatest lead of an event', () => {
      check({
        source: '  o---a------------b----',
        expected: '-----W---------X---------Y',
        windows: { W: '1000-1010 a incomplete', X: '1010-1020', Y: '1020-1030 b' },
        // Five ms into a window, at 0.
        events: Object.fromEntries(
          Object.entries(letters).map(([name, make]): [string, AtTime] => [name, (at) => make(at + 1_005)]),
        ),
        sub: '     ^-------------------------!',
      });
    });

    it('and the clock for an item without a time', () => {
      marbles(({ cold, expectObservable }, scheduler) => {
        const sizes$ = cold('o--a---a----a---|', letters).pipe(
          stamped(scheduler),
          map((event) => (event.type === 'frame' ? event.data.length : event)),
          tumblingWindow({ lengthMs: 10 }),
          words(),
        );
        expectObservable(sizes$).toBe('----------W-----(X|)', { W: '0-10 11', X: '10-20 1 incomplete' });
      });
    });
  });

  it('waits for the rest when a timer fires early', () => {
    let early = 0;
    const outputs: string[] = [];
    marbles(({ cold, flush }, scheduler) => {
      // Runs 1 ms after its timers, as Date.now() sometimes does.
      const behind = {
        now: () => Math.max(0, scheduler.now() - 1),
        schedule: ((work, delay, state) => {
          early += 1;
          return scheduler.schedule(work, delay, state);
        }) as typeof scheduler.schedule,
      };
      cold('o----', letters)
        .pipe(
          map((make) => make(0)),
          tumblingWindow({ lengthMs: 10, scheduler: behind }),
          words(),
          take(1),
        )
        .subscribe((line) => outputs.push(`${line} at ${scheduler.now()}`));
      flush();
    });
    expect(outputs).toEqual(['0-10 at 11']);
    expect(early).toBeLessThan(4);
  });

  describe('with an accumulator', () => {
    it('emits the accumulated value of each window, and holds no items', () => {
      marbles(({ cold, expectObservable }, scheduler) => {
        const texts$ = cold('oab--c----d---------|', letters).pipe(
          stamped(scheduler),
          tumblingWindow({ lengthMs: 10, seed: () => '', add: (text, frame) => text + frame.text() }),
          words(),
        );
        expectObservable(texts$).toBe('----------W---------(X|)', {
          W: '0-10 "abc" 3 items',
          X: '10-20 "d" 1 items',
        });
      });
    });

    it('has a separate value for each window, so that add may change it', () => {
      const values: unknown[] = [];
      of<FeedEvent[]>(opened(0), frameOf('a', 1), frameOf('b', 12), frameOf('c', 31))
        .pipe(
          tumblingWindow({
            lengthMs: 10,
            scheduler: stopped(),
            seed: (): string[] => [],
            add: (texts, frame) => {
              texts.push(frame.text());
              return texts;
            },
          }),
        )
        .subscribe((window) => values.push(window));
      expect(values).toEqual(
        [['a'], ['b'], [], ['c']].map((value, index) => ({
          type: 'window',
          start: index * 10,
          end: index * 10 + 10,
          value,
          count: value.length,
          gaps: [],
          complete: index < 3,
        })),
      );
    });

    it.each([
      [
        'seed',
        {
          seed: () => {
            throw new Error('mine');
          },
          add: (n: number) => n,
        },
      ],
      [
        'add',
        {
          seed: () => 0,
          add: () => {
            throw new Error('mine');
          },
        },
      ],
    ])('errors when %s throws, and unsubscribes from the source', (_name, accumulator) => {
      const source = new Subject<FeedEvent>();
      const errors: unknown[] = [];
      source
        .pipe(tumblingWindow({ lengthMs: 10, ...(accumulator as { seed: () => number; add: (n: number) => number }) }))
        .subscribe({ error: (error: unknown) => errors.push(error) });
      source.next(frameOf('a', 1));
      expect(errors).toEqual([new Error('mine')]);
      expect(source.observed).toBe(false);
    });
  });

  it('stops between two windows when the consumer unsubscribes', () => {
    const outputs: unknown[] = [];
    const source = new Subject<FeedEvent>();
    source
      .pipe(tumblingWindow({ lengthMs: 1, scheduler: stopped() }), take(3))
      .subscribe(({ start }) => outputs.push(start));
    source.next(opened(0));
    source.next(frameOf('a', 9_000));
    expect(outputs).toEqual([0, 1, 2]);
    expect(source.observed).toBe(false);
  });

  it('adds items that the consumer pushes while a window is emitted', () => {
    const outputs: string[] = [];
    const source = new Subject<FeedEvent>();
    source.pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped() }), words()).subscribe((line) => {
      outputs.push(line);
      if (outputs.length > 1) return;
      source.next(frameOf('c', 45));
      source.next(frameOf('z', 2)); // for the window that was just emitted: too late
    });
    source.next(opened(0));
    source.next(frameOf('a', 1));
    source.next(frameOf('b', 25));
    source.next(frameOf('d', 46));
    source.complete();
    expect(outputs).toEqual(['0-10 a', '10-20 z incomplete', '20-30 b', '30-40', '40-50 cd incomplete']);
  });

  it('has separate windows for each subscription', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }, scheduler) => {
      const source$ = hot('o--a--------b------', letters);
      const windows$ = source$.pipe(stamped(scheduler), tumblingWindow({ lengthMs: 10 }), words());
      expectObservable(windows$, '^--------------------!').toBe('----------W---------X', { W: '0-10 a', X: '10-20 b' });
      expectObservable(windows$, '-----^---------------!').toBe('--------------------X', { X: '10-20 b' });
      expectSubscriptions(source$.subscriptions).toBe(['^--------------------!', '-----^---------------!']);
    });
  });

  it('completes and errors without a window if no item arrived', () => {
    check({ source: '--|', expected: '--|', windows: {} });
    check({ source: '--#', expected: '--#', windows: {} });
  });

  it.each<[string, object, string]>([
    ['no length', {}, '`lengthMs` must be a whole number of ms, 1 or more'],
    ['a length of 0', { lengthMs: 0 }, '`lengthMs` must be a whole number of ms, 1 or more, got 0'],
    ['half a ms', { lengthMs: 1.5 }, '`lengthMs` must be a whole number of ms, 1 or more, got 1.5'],
    ['no frames at all', { lengthMs: 1, maxFrames: 0 }, '`maxFrames` must be a whole number, 1 or more, got 0'],
    ['another alignment', { lengthMs: 1, align: 'day' }, "`align` must be 'epoch' or 'start'"],
    ['no scheduler', { lengthMs: 1, scheduler: {} }, '`scheduler` must be an RxJS scheduler'],
    ['a seed alone', { lengthMs: 1, seed: () => 0 }, '`add` must be a function'],
    ['an add alone', { lengthMs: 1, add: () => 0 }, '`seed` must be a function'],
    [
      'frames of an accumulator',
      { lengthMs: 1, maxFrames: 1, seed: () => 0, add: () => 0 },
      '`maxFrames` must be left out: the options are lengthMs, seed, add, align, allowedLatenessMs, scheduler',
    ],
    [
      'an unknown option',
      { lengthMs: 1, everyMs: 1 },
      '`everyMs` must be left out: the options are lengthMs, maxFrames, align, allowedLatenessMs, scheduler',
    ],
  ])('refuses %s, in the call itself', (_what, options, message) => {
    expect(() => tumblingWindow(options as TumblingWindowOptions)).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) }),
    );
  });
});

describe('tumblingWindow over a source that delays frames', () => {
  /** Creates a frame that arrives 4 ms after it was received. */
  const late = (text: string) => (at: number) => frameOf(text, at - 4);
  const w = (at: number) => watermark(at - 4);

  it('closes windows only by watermarks, and counts each frame in the window of its time', () => {
    check({
      source: '  (ow)-----b--cww-----d---w-----|',
      expected: '--------------W---------X-----|',
      windows: { W: '0-10 bc', X: '10-20 d' },
      events: { b: late('b'), c: late('c'), d: late('d'), o: opened, w },
    });
  });

  it('closes the windows of a quiet feed', () => {
    check({
      source: '  (ow)----------w---------w-----|',
      expected: '--------------W---------X-----|',
      windows: { W: '0-10', X: '10-20' },
      events: { w },
    });
  });

  it('uses the clock until the first watermark, and never after it', () => {
    check({
      source: '  oa---------bw-----------------------c----w',
      expected: '----------W------------------------------(XYZ)',
      windows: { W: '0-10 a', X: '10-20 b', Y: '20-30', Z: '30-40 c' },
      events: { b: (at) => frameOf('b', at), c: (at) => frameOf('c', at - 3), w: (at) => watermark(at) },
    });
  });
});

describe('tumblingWindow over a feed that stopped and has a new subscription', () => {
  it('reports the gap from the stop, and marks each window in it incomplete', () => {
    check({
      source: '  oa-----s--------------to-b--------|',
      expected: '----------W---------X---------Y---(Z|)',
      windows: {
        W: '0-10 a gap 7-10 incomplete',
        X: '10-20 gap 7-20 incomplete',
        Y: '20-30 b gap 7-23 incomplete',
        Z: '30-40 incomplete',
      },
      events: { s: (at) => stop(at) },
    });
  });
});

describe('allowedLatenessMs', () => {
  it('keeps a window open for late items, and delays it by this time', () => {
    check({
      source: '  oa--------b-c------------|',
      expected: '-------------W---------X-(Y|)',
      windows: { W: '0-10 ac', X: '10-20 b', Y: '20-30 incomplete' },
      events: { c: () => frameOf('c', 8) },
      options: { allowedLatenessMs: 3 },
    });
  });

  it('also applies to watermarks', () => {
    check({
      source: '  (ow)------w--cw----------w',
      expected: '--------------W----------X',
      windows: { W: '0-10 c', X: '10-20' },
      events: { c: () => frameOf('c', 8), w: (at) => watermark(at) },
      options: { allowedLatenessMs: 4 },
    });
  });

  it.each([-1, Number.NaN, '5'])('refuses %p', (allowedLatenessMs) => {
    expect(() => tumblingWindow({ lengthMs: 10, allowedLatenessMs: allowedLatenessMs as number })).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining('`allowedLatenessMs`') }),
    );
  });
});

describe('a jump of the time', () => {
  it('by 300 days emits two windows, not 26 million, in a recording of a wrong clock', () => {
    const at = 300 * 86_400_000;
    expect(
      replayed([opened(0), frameOf('a', 500), frameOf('b', at), frameOf('c', at + 1_500)], { lengthMs: 1_000 }),
    ).toEqual([
      '0-1000 a',
      `1000-${at} incomplete`,
      `${at}-${at + 1_000} b`,
      `${at + 1_000}-${at + 2_000} c incomplete`,
    ]);
  });
});
