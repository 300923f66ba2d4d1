import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { FeedEvent } from '../../../src/protocol/event.js';
import type { FeedWindow } from '../../../src/operators/window/feed-window.js';
import type { OutageLog } from '../../../src/operators/window/outage-log.js';
import { WindowBook, type WindowShape } from '../../../src/operators/window/window-book.js';
import { timeOf } from '../../../src/operators/items/item.js';
import { framesUpTo } from '../../../src/operators/window/window-contents.js';
import type { Frame } from '../../../src/protocol/frame.js';
import { disconnected, frameOf, gapOf, issued, opened, reconnecting, requested, watermark } from '../stream.js';
import { endOfTurn, fullChunk } from '../memory/views.js';
import { inWords } from './window-words.js';
import { cases } from '../../support/cases.js';

const bookOf = (clock: () => number, shape: Partial<WindowShape> = {}) =>
  new WindowBook<FeedEvent, Frame[], FeedWindow<Frame>>(
    { lengthMs: 10, everyMs: shape.lengthMs ?? 10, align: 'epoch', allowedLatenessMs: 0, ...shape },
    framesUpTo(1_000),
    clock,
  );

const linesOf = (book: { closed(): Iterable<FeedWindow<Frame>> }) => [...book.closed()].map(inWords);

describe('WindowBook', () => {
  it('says when the next end is another one: with the first event, and when a window is over', () => {
    const book = bookOf(() => 0);
    expect([opened(3), frameOf('a', 5), frameOf('b', 9), frameOf('c', 10)].map((event) => book.add(event))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(linesOf(book)).toEqual(['0-10 ab incomplete']);
    expect(linesOf(book)).toEqual([]);
  });

  it('says nothing of a first window before the feed is open, where that begins it', () => {
    const book = bookOf(() => 0, { align: 'start', allowedLatenessMs: 0 });
    expect([book.add(requested(3)), book.add(issued(4)), book.add(opened(5))]).toEqual([false, false, true]);
  });

  it('waits no longer than from one end to the next before there is a window', () => {
    expect(bookOf(() => 3, { lengthMs: 20, everyMs: 5 }).waitMs()).toBe(5);
  });

  it('takes the time of the clock for items that know none, from the first one on', () => {
    let now = 12;
    const book = bookOf(() => now);
    expect(book.add('no event' as never)).toBe(true);
    now = 20;
    expect([book.tick(), [...book.closed()].map(({ start, count }) => [start, count])]).toEqual([true, [[10, 1]]]);
  });

  it.each([
    ['in its window', [3, 8, 6], 8],
    ['of a window that is over', [15, 3], 15],
  ])('was last heard at the latest time, also after a frame that is late, %s', (_where, times, heardAt) => {
    const book = bookOf(() => 0);
    book.add(opened(1));
    for (const time of times) book.add(frameOf('a', time));
    // Begun again, without a word of its end.
    book.add(requested(22));
    book.add(opened(25));
    book.add(frameOf('b', 40));
    const [gap, ...others] = new Set([...book.closed()].flatMap(({ gaps }) => gaps));
    expect([gap?.from, gap?.to, others]).toEqual([heardAt, 25, []]);
  });

  it('closes windows only as they are asked for, so that a leap of time costs no memory', () => {
    const book = bookOf(() => 0);
    book.add(opened(0));
    book.add(frameOf('a', 99_999));
    const windows = book.closed()[Symbol.iterator]();
    expect([windows.next().value, windows.next().value].map((window) => inWords(window as never))).toEqual([
      '0-10',
      '10-20',
    ]);
  });

  it('emits more than 10,000 empty windows that are over in the same moment as one that is incomplete', () => {
    const book = bookOf(() => 0);
    book.add(opened(0));
    book.add(frameOf('a', 5));
    book.add(frameOf('b', 300 * 86_400_000));
    expect(linesOf(book)).toEqual(['0-10 a', '10-25920000000 incomplete']);
    book.add(frameOf('c', 300 * 86_400_000 + 10));
    expect(linesOf(book)).toEqual(['25920000000-25920000010 b']);
    const many = bookOf(() => 0);
    many.add(opened(0));
    many.add(frameOf('a', 100_000));
    expect(linesOf(many)).toHaveLength(10_000);
  });

  it('emits windows that overlap after a leap of time in a moment, however many hold something', () => {
    const book = bookOf(() => 0, { lengthMs: 3_600_000, everyMs: 150 });
    book.add(opened(0));
    book.add(frameOf('a', 3_600_000));
    book.add(frameOf('b', 7_200_500));
    expect([...book.closed()].filter(({ count }) => count === 1)).toHaveLength(24_000);
  });

  it('counts from the first frame on for a late subscriber of a source that sends watermarks, whatever the clock says', () => {
    const book = bookOf(() => 5);
    // The clock of the relay is ahead: to this machine the subscription seems to be older than the window.
    for (const event of [frameOf('a', 17), watermark(18), frameOf('b', 25), watermark(31)]) book.add(event);
    expect(linesOf(book)).toEqual(['10-20 a incomplete', '20-30 b']);
  });

  it('emits each window with something in it also where it is one of very many', () => {
    const book = bookOf(() => 0, { allowedLatenessMs: 1_000_000 });
    book.add(opened(0));
    for (const at of [3, 1_000_000, 500_005]) book.add(frameOf('a', at));
    book.add(frameOf('b', 2_000_010));
    expect(linesOf(book)).toEqual([
      '0-10 a',
      '10-500000 incomplete',
      '500000-500010 a',
      '500010-1000000 incomplete',
      '1000000-1000010 a',
    ]);
  });

  it('waits until the next end by the clock, set by the greatest lead that an event had', () => {
    let now = 500;
    const book = bookOf(() => now);
    book.add(opened(1_003)); // 503 ahead
    expect(book.waitMs()).toBe(7);
    now = 504;
    book.add(frameOf('a', 1_005)); // 501 ahead: it took 2 ms to come here
    expect(book.waitMs()).toBe(3);
    now = 506;
    expect([book.tick(), book.waitMs()]).toEqual([false, 1]);
    now = 507;
    expect([book.tick(), book.waitMs()]).toEqual([true, 10]);
    expect(linesOf(book)).toEqual(['1000-1010 a incomplete']);
  });

  it('keeps time when the clock is set back: what comes meanwhile falls in the open window, and nothing is lost', () => {
    let now = 3_600_001;
    const book = bookOf(() => now);
    book.add(opened(now));
    now = 4;
    expect(book.tick()).toBe(false);
    // Not longer than a window: the clock may be set again.
    expect(book.waitMs()).toBe(10);
    book.add(frameOf('a', 4));
    now = 27;
    book.add(frameOf('b', 27));
    book.add(disconnected(30));
    book.add(gapOf(30, 33));
    now = 3_600_010;
    expect(book.tick()).toBe(true);
    expect(linesOf(book)).toEqual(['3600000-3600010 ab gap 30-33 incomplete']);
    now = 3_600_020;
    book.tick();
    expect(linesOf(book)).toEqual(['3600010-3600020']);
  });

  it('never lets a tick go back', () => {
    let now = 100;
    const book = bookOf(() => now);
    book.add(opened(100));
    now = 95;
    book.tick();
    book.add(frameOf('a', 99));
    expect(linesOf(book)).toEqual([]);
    now = 110;
    book.tick();
    expect(linesOf(book)).toEqual(['100-110 a incomplete']);
  });

  it.each<[string, readonly FeedEvent[], readonly string[]]>([
    ['a frame: it was open before', [frameOf('a', 15)], ['10-20 a', '20-30']],
    ['an opening', [opened(10), frameOf('a', 15)], ['10-20 a', '20-30']],
    ['an opening within it', [opened(11), frameOf('a', 15)], ['10-20 a incomplete', '20-30']],
    ['an attempt', [requested(10), frameOf('a', 15)], ['10-20 a incomplete', '20-30']],
    ['a wait', [reconnecting(10, 1), opened(21)], ['10-20 incomplete', '20-30 incomplete']],
    [
      'a failed attempt',
      [disconnected(10, { stage: 'ticket', status: 503, closeCode: undefined }), opened(20)],
      ['10-20 incomplete', '20-30'],
    ],
    ['the end of a connection', [disconnected(15), gapOf(15, 17)], ['10-20 gap 15-17 incomplete', '20-30']],
    ['a gap', [gapOf(3, 15)], ['10-20 gap 3-15 incomplete', '20-30']],
  ])('knows since when the feed is open from its first event: %s', (_what, events, lines) => {
    let now = 10;
    const book = bookOf(() => now);
    for (const event of events) {
      now = timeOf(event) as number;
      book.add(event);
    }
    now = 30;
    book.tick();
    expect(linesOf(book)).toEqual(lines);
  });

  it('does not trust the time before the subscription', () => {
    let now = 12;
    const book = bookOf(() => now);
    book.add(frameOf('a', 15));
    now = 30;
    book.tick();
    expect(linesOf(book)).toEqual(['10-20 a incomplete', '20-30']);
  });

  it('ends without a window when nothing came, or when the last one is empty and has not begun', () => {
    const never = bookOf(() => 0);
    never.end();
    expect(linesOf(never)).toEqual([]);
    const sharp = bookOf(() => 20);
    sharp.add(opened(10));
    sharp.add(frameOf('a', 20));
    expect(linesOf(sharp)).toEqual(['10-20']);
    sharp.end();
    expect(linesOf(sharp)).toEqual(['20-30 a incomplete']);
    expect(linesOf(sharp)).toEqual([]);
  });

  it('keeps no read buffer alive for the frames that are beyond what a window holds', async () => {
    const shape = { lengthMs: 10, everyMs: 10, align: 'epoch', allowedLatenessMs: 0 } as const;
    const book = new WindowBook<FeedEvent, Frame[], FeedWindow<Frame>>(shape, framesUpTo(1), () => 0);
    const frames = fullChunk(64, 1_000);
    for (const frame of frames) book.add(frame);
    await endOfTurn();
    expect(frames.map(({ data }) => data.buffer.byteLength).slice(0, 2)).toEqual([1_000, 64_000]);
  });

  it('counts the bytes of a frame once, however many windows it falls in', async () => {
    const book = new WindowBook<FeedEvent, Frame[], FeedWindow<Frame>>(
      { lengthMs: 10, everyMs: 1, align: 'epoch', allowedLatenessMs: 0 },
      framesUpTo(10),
      () => 0,
    );
    const [frame] = fullChunk(8, 1_000) as [Frame];
    book.add(frame);
    await endOfTurn();
    expect(frame.data.buffer.byteLength).toBe(1_000);
  });

  it('holds nothing of a window that is closed, nor a gap that is over', () => {
    const book = bookOf(() => 0);
    book.add(opened(0));
    book.add(frameOf('a', 1));
    book.add(gapOf(2, 3));
    book.add(issued(15));
    expect(linesOf(book)).toEqual(['0-10 a gap 2-3 incomplete']);
    const { open, current, outages } = book as unknown as {
      readonly open: Map<unknown, unknown>;
      readonly current: readonly unknown[];
      readonly outages: OutageLog;
    };
    expect([open.size, current, outages.within(0, 100, 100)]).toEqual([0, [], []]);
  });

  const events = fc.array(
    fc.record({
      step: fc.integer({ min: -5, max: 30 }),
      kind: fc.constantFrom('frame', 'frame', 'frame', 'tick', 'lost', 'gap'),
    }),
    { maxLength: 60 },
  );
  const shapes = fc
    .tuple(
      fc.integer({ min: 1, max: 25 }),
      fc.integer({ min: 1, max: 25 }),
      fc.constantFrom('epoch' as const, 'start' as const),
    )
    .map(([a, b, align]) => ({ lengthMs: Math.max(a, b), everyMs: Math.min(a, b), align }));

  it('puts every frame into each window that it falls in, in order, without a hole between windows', () => {
    fc.assert(
      fc.property(shapes, events, (shape, steps) => {
        let now = 1_000;
        let latest = now;
        let id = 0;
        const book = bookOf(() => now, shape);
        const windows: FeedWindow<Frame>[] = [];
        const frames: Frame[] = [];
        const outages: [number, number][] = [];
        book.add(opened(now));
        for (const { step, kind } of steps) {
          now += step;
          if (kind === 'frame') {
            const frame = frameOf(String((id += 1)), now);
            frames.push(frame);
            book.add(frame);
          } else if (kind === 'tick') book.tick();
          else if (kind === 'gap') {
            // One that comes late has a rule of its own.
            if (now >= latest) outages.push([latest, now]);
            book.add(gapOf(Math.min(latest, now), now));
          }
          windows.push(...book.closed());
          latest = Math.max(latest, now);
        }
        book.end();
        windows.push(...book.closed());

        const { lengthMs, everyMs } = shape;
        windows.forEach(({ start, end, count, frames: held }, index) => {
          expect(end - start).toBe(lengthMs);
          expect(start).toBe((windows[0]?.start ?? 0) + index * everyMs);
          expect(count).toBe(held.length);
          expect(held.map((frame) => Number(frame.text()))).toEqual(
            held.map((frame) => Number(frame.text())).toSorted((a, b) => a - b),
          );
        });
        for (const frame of frames) {
          const its = windows.filter(({ frames: held }) => held.includes(frame));
          expect(its.length).toBeGreaterThan(0);
          const due = windows.filter(({ start, end }) => start <= frame.receivedAt && frame.receivedAt < end);
          // Late ones excepted: windows that were closed when it came.
          if (its.every(({ start, end }) => start <= frame.receivedAt && frame.receivedAt < end))
            expect(due.slice(-its.length)).toEqual(its);
        }
        for (const { start, end, complete } of windows)
          for (const [from, to] of outages)
            if (complete) expect(from < end && (to > start || from >= start)).toBe(false);
      }),
      { numRuns: cases(100) },
    );
  });
});
