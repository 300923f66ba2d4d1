import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  EMPTY,
  type OperatorFunction,
  Subject,
  concat,
  from,
  interval,
  lastValueFrom,
  map,
  of,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { countWindow } from '../../src/operators/count-window.js';
import { type Collector, collect$ } from '../../src/operators/items/collect.js';
import { slidingWindow } from '../../src/operators/sliding-window.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { FeedWindow, WindowKey } from '../../src/operators/window/window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import type { Frame } from '../../src/protocol/frame.js';
import { cases } from '../support/cases.js';
import { disconnected, frameOf, gapOf, marbles, opened, watermark } from './stream.js';
import { type AtTime, inWords, letters, stamped, stopped, words } from './window-words.js';

/** Returns the key of a frame: the first letter of its text. */
const by = (frame: Frame): string => frame.text().charAt(0);

// Watermarks end the windows, because a second `opened` would be an outage.
type KeyedWindow = FeedWindow<Frame> & WindowKey<unknown>;

const inWordsByKey = (window: KeyedWindow): string =>
  [
    `${String(window.key)}: ${inWords(window)}`,
    ...(window.reason === undefined ? [] : [`(${window.reason})`]),
    ...(window.beyondMaxKeys === 0 ? [] : [`${window.beyondMaxKeys} beyond`]),
  ].join(' ');

const windows = (
  events: readonly FeedEvent[],
  operator: OperatorFunction<FeedEvent, KeyedWindow>,
): Promise<readonly string[]> =>
  lastValueFrom(from(events).pipe(operator, toArray())).then((all) => all.map(inWordsByKey));

const scheduler = stopped();
const tumbling = (more: { maxKeys?: number; maxFrames?: number; allowedLatenessMs?: number } = {}) =>
  tumblingWindow<FeedEvent, string>({ lengthMs: 10, by, scheduler, ...more });

describe('a window by key', () => {
  it('accumulates only the items of its key', () => {
    const events = [opened(0), frameOf('a1', 1), frameOf('b22', 2), frameOf('a333', 3), watermark(10)] as FeedEvent[];
    const values: unknown[] = [];
    from(events)
      .pipe(tumblingWindow({ lengthMs: 10, by, seed: () => 0, add: (sum, { data }) => sum + data.length, scheduler }))
      .subscribe(({ key, value, count, complete }) => values.push([key, value, count, complete]));
    expect(values).toEqual([
      ['a', 6, 2, true],
      ['b', 3, 1, true],
    ]);
  });

  it('counts the items of keys beyond maxKeys in each window of their time', async () => {
    const frames = ['a1', 'b1', 'c1', 'a2', 'd1', 'c2'].map((text, at) => frameOf(text, at + 1));
    const events = [opened(0), ...frames, frameOf('c3', 11), watermark(20)];
    expect(await windows(events, tumbling({ maxKeys: 2 }))).toEqual([
      'a: 0-10 a1a2 3 beyond',
      'b: 0-10 b1 3 beyond',
      'c: 10-20 c3',
    ]);
  });

  it('shares maxFrames with the windows of the same time', async () => {
    const frames = ['a1', 'b1', 'a2', 'b2', 'a3'].map((text, at) => frameOf(text, at + 1));
    expect(await windows([opened(0), ...frames, watermark(10)], tumbling({ maxFrames: 3 }))).toEqual([
      'a: 0-10 a1a2 3 items 1 dropped incomplete (overflow)',
      'b: 0-10 b1 2 items 1 dropped incomplete (overflow)',
    ]);
  });

  it('calls by once per item, even if the item belongs to several windows', () => {
    let calls = 0;
    const counting = (frame: Frame) => [(calls += 1), by(frame)][1];
    from([opened(0), frameOf('a', 12), watermark(40)] as FeedEvent[])
      .pipe(slidingWindow({ lengthMs: 10, everyMs: 2, by: counting, scheduler }))
      .subscribe();
    expect(calls).toBe(1);
  });

  it('errors after all windows when by throws', () => {
    const failure = new Error('no market');
    const broken = (frame: Frame) => {
      if (frame.text() === 'b1') throw failure;
      return by(frame);
    };
    const keys: unknown[] = [];
    let error: unknown;
    from([opened(0), frameOf('a1', 1), frameOf('a2', 11), frameOf('b1', 12)] as FeedEvent[])
      .pipe(tumblingWindow({ lengthMs: 10, by: broken, scheduler }))
      .subscribe({ next: ({ key }) => keys.push(key), error: (reason: unknown) => (error = reason) });
    expect([keys, error]).toEqual([['a', 'a'], failure]);
  });

  it('has all items of its key, and the same gaps and completeness as a window without keys, in any feed', async () => {
    const step = fc.record({
      ms: fc.integer({ min: 0, max: 12 }),
      kind: fc.constantFrom('a', 'a', 'b', 'c', 'outage', 'gap', 'tick'),
    });
    const options = { lengthMs: 10, scheduler };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        let at = 0;
        const events = steps.map(({ ms, kind }): FeedEvent => {
          at += ms;
          if (kind === 'outage') return disconnected(at);
          if (kind === 'gap') return gapOf(at - ms, at);
          return kind === 'tick' ? opened(at) : frameOf(`${kind}${at}`, at);
        });
        const source = from(events);
        const all = await lastValueFrom(source.pipe(tumblingWindow<FeedEvent>(options), toArray()));
        const keyed = await lastValueFrom(
          source.pipe(tumblingWindow<FeedEvent, string>({ ...options, by }), toArray()),
        );
        const expected = all.flatMap(({ frames, dropped: _, count: __, ...facts }) =>
          [...new Set(frames.map(by))].map((key) => {
            const own = frames.filter((frame) => by(frame) === key);
            return { ...facts, frames: own, dropped: 0, count: own.length, key, beyondMaxKeys: 0 };
          }),
        );
        expect(keyed).toEqual(expected);
      }),
      { numRuns: cases(500) },
    );
  });
});

describe('the reason of an incomplete window', () => {
  const a = (at: number) => frameOf('a', at);
  const manyMs = 10_001 * 10;

  it.each<[string, readonly FeedEvent[], readonly (string | undefined)[], { maxFrames?: number }?]>([
    ['is absent if it is complete', [opened(0), a(1), watermark(10)], [undefined]],
    ['is gap if an outage overlaps it', [opened(0), a(1), disconnected(5), opened(10)], ['gap']],
    ['is partial if it began before the feed opened', [opened(5), a(6), watermark(10)], ['partial']],
    ['is partial if the source ended before it was over', [opened(0), a(1), a(11)], [undefined, 'partial']],
    ['is overflow if items exceeded maxFrames', [opened(0), a(1), a(2), watermark(10)], ['overflow'], { maxFrames: 1 }],
    [
      'is late if it contains an item of an earlier window',
      [opened(0), a(1), a(11), a(9), watermark(20)],
      [undefined, 'late'],
    ],
    ['is jump if it replaces many empty windows', [opened(0), watermark(10 + manyMs)], ['jump']],
    [
      'is gap if also items exceeded maxFrames',
      [opened(0), a(1), a(2), disconnected(5), opened(10)],
      ['gap'],
      { maxFrames: 1 },
    ],
  ])('%s', async (_, events, reasons, options = {}) => {
    const shape = { lengthMs: 10, scheduler, ...options };
    const all = await lastValueFrom(from(events).pipe(tumblingWindow<FeedEvent>(shape), toArray()));
    expect(all.slice(0, reasons.length).map(({ reason }) => reason)).toEqual(reasons);
    for (const window of all) expect('reason' in window).toBe(!window.complete);
  });

  it('is gap in the last window of a feed that stops', () => {
    const seen: (string | undefined)[] = [];
    const failure = disconnected(12).failure;
    concat(
      of<FeedEvent[]>(opened(0), a(11), disconnected(12)),
      throwError(() => failure),
    )
      .pipe(tumblingWindow<FeedEvent>({ lengthMs: 10, scheduler }))
      .subscribe({ next: ({ reason }) => seen.push(reason), error: () => seen.push('error') });
    expect(seen).toEqual([undefined, 'gap', 'error']);
  });

  it('is late only for the key of the late item', async () => {
    const events = [opened(0), frameOf('a1', 11), frameOf('b1', 12), frameOf('b2', 9), watermark(20)];
    expect(await windows(events, tumbling())).toEqual(['a: 10-20 a1', 'b: 10-20 b1b2 incomplete (late)']);
  });
});

const checkCounted = (
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
    checkCounted(source, expected, { W: '2-5 ab', X: '8-14 cd' }, {}, sub);
  });

  it('adds a gap between two windows to the later one', () => {
    const source = '  o-ab-x-(og)-c--d--e--a';
    const expected = '---W-----------X-----Y';
    checkCounted(
      source,
      expected,
      { W: '2-3 ab', X: '12-15 cd gap 5-7 incomplete', Y: '18-21 ea' },
      { g: (at) => gapOf(5, at) },
      '^---------------------!',
    );
  });

  it('emits a started window as incomplete before it completes or errors, and nothing if it has no items', () => {
    checkCounted('o-a-|', '----(W|)', { W: '2-2 a incomplete' });
    checkCounted('o-a-#', '----(W#)', { W: '2-2 a incomplete' });
    checkCounted('o-ab-|', '---W-|', { W: '2-3 ab' });
    checkCounted('o-ab-x|', '---W--|', { W: '2-3 ab' });
    checkCounted('o-|', '--|', {});
    checkCounted('--#', '--#', {});
  });

  it("reports an outage that hasn't ended when the window does", () => {
    checkCounted('o-a--x--|', '--------(W|)', { W: '2-5 a gap 5-5 incomplete' });
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

/** Collects letters until a capital letter, a tick or the end. */
const collector = (): Collector<string> & { tick(): void } => {
  let waiting: string[] = [];
  const ready: string[] = [];
  const release = (): void => {
    ready.push(...waiting);
    waiting = [];
  };
  return {
    add: (value) => {
      const letter = String(value);
      if (letter === '!') throw new Error('mine');
      waiting.push(letter);
      const isCapital = letter === letter.toUpperCase();
      if (isCapital) release();
      return isCapital;
    },
    tick: release,
    end: release,
    *drain() {
      for (let next = ready.shift(); next !== undefined; next = ready.shift()) yield next;
    },
  };
};

const checkCollected = (source: string, expected: string, sub?: string, everyMs = 5): void =>
  marbles(({ cold, expectObservable, expectSubscriptions }) => {
    const source$ = cold(source);
    const own = collector();
    expectObservable(
      collect$(source$, own, () => interval(everyMs).pipe(tap(() => own.tick()))),
      sub,
    ).toBe(expected);
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });

describe('collect$', () => {
  it('emits when `add` returns true and at each tick', () => {
    const source = '  ab-C--d----e-';
    const sub = '     ^-----------!';
    const expected = '---(abC)--d--';
    checkCollected(source, expected, sub);
  });

  it('emits the rest before it completes or errors, and stops the ticks', () => {
    checkCollected('ab|', '--(ab|)');
    checkCollected('ab#', '--(ab#)');
    checkCollected('|', '|');
  });

  it('emits earlier results, then errors when the collector throws and unsubscribes from the source', () => {
    const source = new Subject<string>();
    const emitted: unknown[] = [];
    collect$(source, collector()).subscribe({
      next: (each) => emitted.push(each),
      error: (error) => emitted.push(error),
    });
    source.next('a');
    source.next('!');
    expect(emitted).toEqual(['a', new Error('mine')]);
    expect(source.observed).toBe(false);
  });

  it('emits the rest before the error, even if the consumer makes the source error during an emission', () => {
    const source = new Subject<string>();
    const emitted: unknown[] = [];
    const failure = new Error('failed');
    collect$(source, collector()).subscribe({
      next: (each) => {
        emitted.push(each);
        if (each !== 'A') return;
        source.next('b');
        source.error(failure);
      },
      error: (error) => emitted.push(error),
    });
    source.next('A');
    expect(emitted).toEqual(['A', 'b', failure]);
  });

  it('passes the error of the source to the collector', () => {
    const endings: unknown[] = [];
    const failure = new Error('failed');
    const telling = (): Collector<string> => ({ ...collector(), end: (failure) => endings.push(failure) });
    for (const source of [EMPTY, throwError(() => failure)])
      collect$(source, telling()).subscribe({ error: () => undefined });
    expect(endings).toEqual([undefined, expect.objectContaining({ error: failure })]);
  });
});
