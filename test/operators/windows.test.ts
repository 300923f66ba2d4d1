import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concat, from, map, of, type OperatorFunction } from 'rxjs';
import { type SchedulerLike, Subject, type Subscription, throwError, VirtualTimeScheduler } from 'rxjs';
import { countWindow } from '../../src/operators/count-window.js';
import { gaps } from '../../src/operators/gaps.js';
import { timeOf } from '../../src/operators/items/item.js';
import { slidingWindow, type SlidingWindowOptions } from '../../src/operators/sliding-window.js';
import { tumblingWindow, type TumblingWindowOptions } from '../../src/operators/tumbling-window.js';
import type { FeedWindow, FramesOptions, WindowKey } from '../../src/operators/window/window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import { cases } from '../support/cases.js';
import { aliveOf, bufferSizes, chunk, inBlock } from './own-bytes/views.js';
import { disconnected, emittedBy, frameOf, gapOf, lost, marbles, opened, opening, watermark } from './stream.js';
import { type AtTime, events, inWords, letters, stamped, stopped, words } from './window-words.js';

type Options = Partial<TumblingWindowOptions & SlidingWindowOptions & FramesOptions>;

/** Windows of 10 ms, unless `options` say otherwise; sliding ones with `everyMs`. */
const windows = ({ everyMs, ...options }: Options): OperatorFunction<FeedEvent, FeedWindow<Frame>> => {
  const shape = { lengthMs: 10, ...options };
  return everyMs === undefined ? tumblingWindow<FeedEvent>(shape) : slidingWindow<FeedEvent>({ ...shape, everyMs });
};

/** Defines a marble test: the capital letters of `expected` are the windows of `lines`, in order. */
type Case = readonly [
  source: string,
  expected: string,
  lines: string,
  more?: { readonly events?: Readonly<Record<string, AtTime>>; readonly options?: Options },
];

/** Checks the windows of a source. If it doesn't end, unsubscribes after the last window. */
const check = ([source, expected, lines, { events = {}, options = {} } = {}]: Case): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
    const source$ = cold(source, { ...letters, ...events });
    const end = /[|#]/.test(source) ? undefined : `^${'-'.repeat(expected.length - 1)}!`;
    const windowOf = lines.split(' | ').map((line, n) => [expected.match(/[A-Z]/g)?.[n] ?? '', line]);
    const lines$ = source$.pipe(stamped(scheduler), windows(options), words());
    expectObservable(lines$, end).toBe(expected, Object.fromEntries(windowOf));
    if (end !== undefined) expectSubscriptions(source$.subscriptions).toBe(end);
  });

/** Returns the windows over events that arrive at full speed, as from a recording. */
const replayed = (events: readonly FeedEvent[], options: Options = {}): readonly string[] =>
  emittedBy(from(events).pipe(windows({ scheduler: stopped(), ...options }), words()));

/** Checks the first windows. */
const expectFirst = (windows: readonly string[], lines: string): void =>
  expect(windows.slice(0, lines.split(' | ').length).join(' | ')).toBe(lines);

/** Creates windows over a feed whose events and clock the test controls. */
const driven = (now: number, options: Options = {}) => {
  const time = new VirtualTimeScheduler();
  let skewMs = now;
  const delays: (number | undefined)[] = [];
  const scheduler: SchedulerLike = {
    now: () => time.now() + skewMs,
    schedule: (...args: Parameters<SchedulerLike['schedule']>): Subscription => {
      delays.push(args[1]);
      return time.schedule(...args);
    },
  };
  const emitted: FeedWindow<Frame>[] = [];
  const feed$ = new Subject<FeedEvent>();
  feed$.pipe(windows({ scheduler, ...options })).subscribe((window) => emitted.push(window));
  return {
    feed$,
    delays,
    emitted,
    emit: (...events: readonly FeedEvent[]) => events.forEach((event) => feed$.next(event)),
    lines: () => emitted.splice(0).map(inWords),
    /** Sets the clock without firing timers. */
    setClock: (at: number) => (skewMs = at - time.now()),
    /** Lets time pass and timers fire. */
    pass: (ms: number) => {
      time.maxFrames = time.now() + ms;
      time.flush();
      time.frame = time.maxFrames;
    },
  };
};

const shifted = (names: string, ms: number) =>
  Object.fromEntries([...names].map((name): [string, AtTime] => [name, (at) => letters[name]!(at + ms)]));
const delayed = { ...shifted('bcd', -4), w: (at: number) => watermark(at - 4) };

describe('tumblingWindow', () => {
  it.each<[string, ...Case]>([
    [
      'emits each window, also an empty one, when its time is over',
      'oa--b----c---------------d--',
      '----------W---------X---------Y',
      '0-10 abc | 10-20 | 20-30 d',
    ],
    ['has the gap up to the end when the source completed in an outage', 'oa-x----|', '--------(W|)', '0-10 a gap 3-8'],
    [
      'moves the clock by the greatest lead of an event',
      'o---a------------b----',
      '-----W---------X---------Y',
      '1000-1010 a partial | 1010-1020 | 1020-1030 b',
      { events: shifted('oab', 1_005) },
    ],
    [
      'closes only by the watermarks of a source that delays frames, in the window of their time',
      '(ow)-----b--cww-----d---w-----|',
      '--------------W---------X-----|',
      '0-10 bc | 10-20 d',
      { events: delayed },
    ],
    [
      'counts an outage without a gap event only for its window, also if the next frame is two windows later',
      'oa-x---o-----------------b----',
      '----------W---------X---------Y',
      '0-10 a gap 3-7 | 10-20 | 20-30 b',
    ],
    [
      'stays open for late items by allowedLatenessMs',
      'oa--------b-c------------|',
      '-------------W---------X-(Y|)',
      '0-10 ac | 10-20 b | 20-30 partial',
      { events: { c: () => frameOf('c', 8) }, options: { allowedLatenessMs: 3 } },
    ],
  ])('%s', (_title, ...marbleCase) => check(marbleCase));

  it('uses the clock for an item that has no time', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const sizes$ = cold('o--a---a----a---|', letters).pipe(
        stamped(scheduler),
        map((event) => (event.type === 'frame' ? event.data.length : event)),
        tumblingWindow({ lengthMs: 10 }),
        words(),
      );
      expectObservable(sizes$).toBe('----------W-----(X|)', { W: '0-10 11', X: '10-20 1 partial' });
    });
  });

  it('has separate windows for each subscription, and stops its timer on unsubscribe', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }, scheduler) => {
      const source$ = hot('o--a--------b------', letters);
      const windows$ = source$.pipe(stamped(scheduler), tumblingWindow({ lengthMs: 10 }), words());
      expectObservable(windows$, '^--------------------!').toBe('----------W---------X', { W: '0-10 a', X: '10-20 b' });
      expectObservable(windows$, '-----^---------------!').toBe('--------------------X', { X: '10-20 b partial' });
      expectSubscriptions(source$.subscriptions).toBe(['^--------------------!', '-----^---------------!']);
      scheduler.flush();
      expect(scheduler.now()).toBeLessThan(30);
    });
  });

  it.each<[string, string, string, Options?]>([
    ['begins when the feed opens, with align start', 't0 o3 a6 b13 w23', '3-13 a | 13-23 b', { align: 'start' }],
    ['is partial if it began before the feed opened', 't0 o17 a19 w30', '0-10 partial | 10-20 a partial | 20-30'],
    ['is not complete if it contains a gap of 0 ms', 'o0 a1 x4 o4 g4-4 b5 w20', '0-10 ab gap 4-4 | 10-20'],
    [
      'has a gap with a number of frames that ends as it begins, because the last of them may have that time',
      'o0 a1 x12 o20 g12-20+3 b23 w30',
      '0-10 a | 10-20 gap 12-20 | 20-30 b gap 12-20',
    ],
    ['does not lose a late gap', 'o10 a25 g3-4 b30 c40', '10-20 | 20-30 a gap 3-4 | 30-40 b | 40-50 c partial'],
    [
      'does not lose a late outage without a gap event',
      'o10 a25 x26<3 o4 b30 c40',
      '10-20 | 20-30 a gap 3-4 | 30-40 b | 40-50 c partial',
    ],
    [
      'closes a window with the first item that is later than its end by allowedLatenessMs, also without a clock',
      'o0 a1 b11 c12 d13 e9 f20',
      '0-10 a | 10-20 bcde late | 20-30 f partial',
      { allowedLatenessMs: 3 },
    ],
    ['has no gap for a resumed connection to a relay', 'o0 a12 l15 o16 b20', '0-10 | 10-20 a | 20-30 b partial'],
    [
      'begins a gap at the newest time, also after a late frame of a window that is over',
      'o1 a15 a3 t22 o25 b31',
      '0-10 partial | 10-20 aa gap 15-20 | 20-30 gap 15-25 | 30-40 b partial',
    ],
    [
      'is incomplete for its gap, even if it dropped items as well',
      'o0 a1 b2 x5 o10',
      '0-10 a 2 items 1 dropped gap 5-10',
      { maxFrames: 1 },
    ],
    [
      'emits more than 10,000 empty windows that end at once as one incomplete window',
      'o0 a5 b25920000000',
      '0-10 a | 10-25920000000 jump | 25920000000-25920000010 b partial',
    ],
    ['does not emit an empty window that begins with the end', 'o10 a15 w20', '10-20 a'],
  ])('%s', (_title, row, lines, ...[options]) => {
    expectFirst(replayed(events(row), options), lines);
  });

  it('emits 10,000 empty windows that end at once one by one, and merges more of them around those with items', () => {
    expect(replayed(events('o0 a100000'))).toHaveLength(10_001);
    const late = { allowedLatenessMs: 1_000_000 };
    expect(replayed(events('o0 a3 a1000000 a500005 a2000010'), late).slice(0, 5)).toEqual([
      ...['0-10 a', '10-500000 jump', '500000-500010 a', '500010-1000000 jump', '1000000-1000010 a'],
    ]);
    expect(replayed(events('o0 a3 a500005'), late)).toEqual(['0-10 a', '10-500000 jump', '500000-500010 a partial']);
  });

  it.each([
    ['an opening', 'o10 a15', '10-20 a | 20-30'],
    ['an opening within it', 'o11 a15', '10-20 a partial | 20-30'],
    ['an attempt', 't10 a15', '10-20 a partial | 20-30'],
    ['a failed attempt', 'k10 o20', '10-20 partial | 20-30'],
    ['a gap', 'g3-15', '10-20 gap 3-15 | 20-30'],
  ])('derives from its first event since when the feed is open: %s', (_what, row, lines) => {
    const feed = driven(10);
    for (const event of events(row)) {
      feed.setClock(timeOf(event) as number);
      feed.emit(event);
    }
    feed.setClock(30);
    feed.pass(10);
    expect(feed.lines().slice(0, 2).join(' | ')).toBe(lines);
  });

  it('sets no timer before the first event, then one per window, and another after an event that passes an end', () => {
    const feed = driven(0, { lengthMs: 500 });
    expect(feed.delays).toEqual([]);
    feed.emit(opened(1_000));
    feed.pass(2);
    feed.emit(frameOf('l', 2_006)); // 1,004 ms ahead
    expect(feed.lines()).toEqual(['1000-1500', '1500-2000']);
    feed.pass(494);
    expect(feed.lines()).toEqual(['2000-2500 l']);
    feed.pass(500);
    expect(feed.lines()).toEqual(['2500-3000']);
    expect(feed.delays).toEqual([500, 494, 500, 500]);
  });

  it("doesn't keep read buffers alive for frames beyond the maximum of a window", () => {
    const frames = inBlock(64, 5_000);
    driven(0, { maxFrames: 1 }).emit(...frames);
    expect(bufferSizes(frames.slice(0, 2))).toEqual([5_000, 320_000]);
  });

  it("doesn't keep the frame alive that set its timer, nor its read buffer", async () => {
    const feed = driven(0);
    const emit = (): WeakRef<Frame>[] =>
      chunk(65_536, [0, 10], [10, 20]).map((frame) => {
        feed.emit(frame);
        return new WeakRef(frame);
      });
    expect(await aliveOf(emit())).toBe(0);
  });

  it('accumulates a value per window, which add may change, and holds no items', () => {
    const texts = { seed: (): string[] => [], add: (all: string[], frame: Frame) => (all.push(frame.text()), all) };
    const events$ = from(events('o0 a1 b12 c31'));
    const all = emittedBy(events$.pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped(), ...texts })));
    expect(all.map(({ value, count }) => [value, count])).toEqual([
      [['a'], 1],
      [['b'], 1],
      [[], 0],
      [['c'], 1],
    ]);
    expect(all[0]).not.toHaveProperty('frames');
  });

  it.each(['seed', 'add'])('errors when %s throws, and unsubscribes from the source', (name) => {
    const failing = (): never => {
      throw new Error('mine');
    };
    const source = new Subject<FeedEvent>();
    const errors: unknown[] = [];
    source
      .pipe(tumblingWindow({ lengthMs: 10, seed: () => 0, add: (n) => n, [name]: failing }))
      .subscribe({ error: (error: unknown) => errors.push(error) });
    source.next(frameOf('a', 1));
    expect([errors, source.observed]).toEqual([[new Error('mine')], false]);
  });
});

describe('slidingWindow', () => {
  const every5 = { everyMs: 5 };

  it.each<[string, ...Case]>([
    [
      'emits a window every everyMs, with the items of its length; windows that began before the feed are incomplete',
      'oa-----b----c--------d------',
      '-----V----W----X----Y----Z',
      '-5-5 a partial | 0-10 ab | 5-15 bc | 10-20 c | 15-25 d',
      { options: every5 },
    ],
  ])('%s', (_title, ...marbleCase) => check(marbleCase));

  it.each<[string, string, string, Options]>([
    ['ends between the starts of two others', 'o0 a9 b11 w22', '0-10 a | 4-14 ab | 8-18 ab | 12-22', { everyMs: 4 }],
    ['has each gap of its time', 'o2 a2 x6 o7 g6-7 b18 w22', '2-12 a gap 6-7 | 7-17 | 12-22 b', { everyMs: 5 }],
    [
      'holds at most maxFrames items',
      'o0 a1 b2 c3 d4 e6 w15',
      '0-10 ab 5 items 3 dropped overflow | 5-15 e',
      { everyMs: 5, maxFrames: 2 },
    ],
  ])('%s', (_title, row, lines, options) => {
    expectFirst(replayed(events(row), { ...options, align: 'start' }), lines);
  });

  it('emits many overlapping windows quickly after time jumps, even if they have items', () => {
    const feed = driven(0, { lengthMs: 3_600_000, everyMs: 150 });
    feed.emit(opened(0), frameOf('a', 3_600_000), frameOf('b', 7_200_500));
    expect(feed.emitted.filter(({ frames }) => frames.length === 1)).toHaveLength(24_000);
  });

  it('holds the bytes of a frame once, however many windows have it', () => {
    const small = (at: number) => new Frame('market', Buffer.alloc(1_000, 'x').subarray(0, 10), false, at, 1);
    const feed = driven(0, { everyMs: 2 });
    feed.emit(opened(0), small(1), small(6));
    feed.feed$.complete();
    const held = feed.emitted.flatMap(({ frames }) => frames).filter(({ receivedAt }) => receivedAt === 1);
    expect([held.length > 3, new Set(held).size, held[0]?.data.buffer.byteLength]).toEqual([true, 1, 10]);
    expect(held[0]?.text()).toBe('x'.repeat(10));
  });

  it('adds every frame to each window that contains its time, in order, and leaves no hole between windows', () => {
    const events = fc.array(
      fc.record({
        step: fc.integer({ min: -5, max: 30 }),
        kind: fc.constantFrom('frame', 'frame', 'frame', 'tick', 'gap'),
      }),
      { maxLength: 60 },
    );
    const shapes = fc
      .tuple(fc.integer({ min: 1, max: 25 }), fc.integer({ min: 1, max: 25 }), fc.constantFrom('epoch', 'start'))
      .map(([a, b, align]) => ({ lengthMs: Math.max(a, b), everyMs: Math.min(a, b), align }));
    fc.assert(
      fc.property(shapes, events, (shape, steps) => {
        let [now, latest] = [1_000, 1_000];
        const feed = driven(now, shape);
        const frames: Frame[] = [];
        const outages: [number, number][] = [];
        feed.emit(opened(now));
        for (const { step, kind } of steps) {
          now += step;
          feed.setClock(now);
          if (kind === 'frame') {
            frames.push(frameOf(String(frames.length), now));
            feed.emit(frames.at(-1) as Frame);
          } else if (kind === 'tick') feed.pass(0);
          else {
            // A separate rule applies to late items.
            if (now >= latest) outages.push([latest, now]);
            feed.emit(gapOf(Math.min(latest, now), now));
          }
          latest = Math.max(latest, now);
        }
        feed.feed$.complete();

        const { lengthMs, everyMs } = shape;
        const all = feed.emitted;
        all.forEach(({ start, end, count, frames: held }, index) => {
          expect([start, end, count]).toEqual([(all[0]?.start ?? 0) + index * everyMs, start + lengthMs, held.length]);
          const order = held.map((frame) => Number(frame.text()));
          expect(order).toEqual(order.toSorted((a, b) => a - b));
        });
        const contains = ({ start, end }: FeedWindow<Frame>, at: number) => start <= at && at < end;
        for (const frame of frames) {
          const its = all.filter(({ frames: held }) => held.some((each) => each.text() === frame.text()));
          expect(its.length).toBeGreaterThan(0);
          const due = all.filter((window) => contains(window, frame.receivedAt));
          // Except late items, which arrived after their windows had closed.
          if (its.every((window) => contains(window, frame.receivedAt))) expect(due.slice(-its.length)).toEqual(its);
        }
        for (const { start, end } of all.filter(({ complete }) => complete))
          expect(outages.filter(([from, to]) => from < end && (to > start || from >= start))).toEqual([]);
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('windows of a connection that settles', () => {
  const long = { lengthMs: 100 };
  const isPartial = (line: string) => /^[\d-]+ partial$/.test(line);

  it.each([
    ['are partial before the first frame that could be delayed', 'i1 O2 a498 b610', '400-500 a partial | 500-600'],
    ['are partial for 500 ms if no frame comes', 'i1 O2 a899', '600-700 | 700-800'],
    ['are complete from `opened` on, if the first frame comes early', 'i1 O2 a150 b310', '100-200 a | 200-300'],
    [
      'have the outage up to the first frame',
      'o0 a10 x50 i60 O70 a565 b710',
      '0-100 a gap 50-565 | 100-200 gap 50-565 | 200-300 gap 50-565 | 300-400 gap 50-565 | 400-500 gap 50-565 | 500-600 a gap 50-565 | 600-700',
    ],
    [
      'have the outage up to 500 ms after `opened`',
      'o0 a10 x120 i121 O122 a799',
      '0-100 a | 100-200 gap 120-622 | 200-300 gap 120-622 | 300-400 gap 120-622 | 400-500 gap 120-622 | 500-600 gap 120-622 | 600-700 gap 120-622 | 700-800 a partial',
    ],
  ])('%s: %s', (_title, row, lines) => {
    expectFirst(
      replayed(events(row), long).filter((line) => !isPartial(line)),
      lines,
    );
  });

  it('begin when the connection is complete, with align start', () => {
    const options = { ...long, align: 'start' } as const;
    const fixed = { ...opening(0), completeFrom: 250 };
    expectFirst(replayed(events('i1 O2 a150 b320'), options), '2-102 | 102-202 a');
    expectFirst(replayed(events('i1 O2 a498 b710'), options), '498-598 a | 598-698');
    expectFirst(replayed([fixed, ...events('a220 b260 c310 d360 e450')], options), '250-350 bc | 350-450 d');
    const quiet = driven(0, options);
    quiet.emit(...events('i0 O1'));
    quiet.pass(710);
    expect(quiet.lines()).toEqual(['501-601', '601-701']);
  });

  it('are partial for a subscriber that joins while it settles, up to a frame or for 500 ms', () => {
    const joined = driven(300, long);
    joined.pass(250);
    joined.emit(frameOf('a', 550));
    joined.pass(260);
    expect(joined.lines()).toEqual(['500-600 a partial', '600-700', '700-800']);
    const quiet = driven(300, long);
    quiet.pass(610);
    quiet.emit(frameOf('a', 910));
    quiet.pass(200);
    expect(quiet.lines()).toEqual(['900-1000 a', '1000-1100']);
  });

  it('are partial until deliveryDelayMs has passed, whatever comes', () => {
    const fixed = (at: number) => ({ ...opening(at), completeFrom: 250 });
    const partial = '0-100 a partial | 100-200 b partial | 200-300 c partial | 300-400 | 400-500 d partial';
    expectFirst(replayed([fixed(0), ...events('a50 b150 c260 d410')], long), partial);
    const again = [...events('o0 a10 x20'), fixed(30), ...events('b150 c260 d410')];
    const gaps = '0-100 a gap 20-150 | 100-200 b gap 20-150 gap 150-250 | 200-300 c gap 150-250 | 300-400';
    expectFirst(replayed(again, long), gaps);
  });
});

describe('windows over a log', () => {
  const record = (text: string, at: number) => Object.assign(frameOf(text, at), { offset: 0 });

  it('have no timer that could close them, and use the clock again once a live feed follows', () => {
    const scheduler = new VirtualTimeScheduler();
    const emitted: string[] = [];
    const live$ = new Subject<FeedEvent>();
    concat(of(record('a', 3), record('b', 14)), live$)
      .pipe(tumblingWindow({ lengthMs: 10, scheduler }), words())
      .subscribe((line) => emitted.push(line));
    const live: readonly FeedEvent[] = events('t200 o205 c206');
    for (const event of live) scheduler.schedule(() => live$.next(event), timeOf(event));
    scheduler.maxFrames = 199;
    scheduler.flush();
    expect(emitted).toEqual(['0-10 a partial']);
    scheduler.maxFrames = 225;
    scheduler.flush();
    expect(emitted.slice(1, -2).every((line) => / gap 14-\d+$/.test(line))).toBe(true);
    expect(emitted.slice(-2)).toEqual(['200-210 c gap 14-205', '210-220']);
    live$.complete();
  });

  // A late item comes right after one that's in time, so the newest item tells the time as well as the clock does.
  const arrivals = fc.array(
    fc.record({
      step: fc.integer({ min: 0, max: 4 }),
      late: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 60, size: 'max' },
  );
  const shapes = fc.record({
    lengthMs: fc.integer({ min: 10, max: 40 }),
    parts: fc.constantFrom(1, 1, 2, 3),
    allowedLatenessMs: fc.integer({ min: 0, max: 20 }),
  });

  it('that wait for late items are the same over a live feed and its log', () => {
    fc.assert(
      fc.property(arrivals, shapes, (steps, { lengthMs, parts, allowedLatenessMs }) => {
        const shape = { lengthMs, everyMs: Math.ceil(lengthMs / parts), allowedLatenessMs };
        const [live, records]: [string[], FeedEvent[]] = [[], []];
        const scheduler = new VirtualTimeScheduler();
        const feed$ = new Subject<FeedEvent>();
        feed$.pipe(windows({ ...shape, scheduler }), words()).subscribe((line) => live.push(line));
        let now = 0;
        const emit = (at: number) => {
          const text = ` ${records.length}`;
          records.push(record(text, at));
          feed$.next(frameOf(text, at));
        };
        for (const { step, late } of [{ step: 0, late: undefined }, ...steps]) {
          const at = (now += step);
          scheduler.schedule(() => {
            emit(at);
            if (late !== undefined) emit(Math.max(0, at - late));
          }, at);
        }
        scheduler.schedule(() => feed$.complete(), now);
        scheduler.flush();
        expect(replayed(records, shape)).toEqual(live);
      }),
      { numRuns: cases(600) },
    );
  });
});

describe('windows over a replica of a cluster', () => {
  it.each([
    ['are the same although its engine was away, because what it missed follows', 'o0 w0 a5 R95 b12 R98 c15 w30'],
    ['begin with what is from before it began', 'R95 o0 w0 a5 b12 c15 w30'],
  ])('%s', (_title, row) => {
    expect(replayed(events(row)).slice(0, 3).join(' | ')).toBe('0-10 a | 10-20 bc | 20-30');
    expect(emittedBy(from(events(row)).pipe(countWindow(2), words())).join(' | ')).toBe('5-12 ab | 15-15 c partial');
  });

  it('end with its last frame, and not later, if it ends while its engine is away', () => {
    expect(replayed(events('o0 w0 a5 w10 R95')).join(' | ')).toBe('0-10 a');
  });

  it('have a gap from its last frame on, if it begins again after its engine was away', () => {
    const lines = '0-10 a gap 5-21 | 10-20 gap 5-21 | 20-30 b gap 5-21';
    expect(replayed(events('o0 w0 a5 R15 o21 b25 w30')).join(' | ')).toBe(lines);
    expect(emittedBy(from(events('o0 w0 a5 R15 o21 b25 w30')).pipe(gaps()))).toMatchObject([{ from: 5, to: 21 }]);
  });
});

describe('windows over a feed that errors', () => {
  it.each<[string, unknown, RegExp]>([
    ['have a gap up to the end of the stream that stopped the feed', lost(2), /^\d+-\d+ a gap 2-\d+$/],
    ['have no gap for an error of the application', new Error('a bug'), /^\d+-\d+ a partial$/],
  ])('%s', (_title, error, line) => {
    const feed$ = concat(
      from(events('o0 a3')),
      throwError(() => error),
    );
    for (const window of [windows({ lengthMs: 1_000, scheduler: stopped() }), countWindow<FeedEvent>(9)])
      expect(emittedBy(feed$.pipe(window, words()))).toEqual([expect.stringMatching(line), error]);
  });
});

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
