import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { FeedEvent } from '../../../src/protocol/event.js';
import type { FeedWindow } from '../../../src/operators/window/feed-window.js';
import type { OutageLog } from '../../../src/operators/window/outage-log.js';
import { TimeWindowCollector, type WindowShape } from '../../../src/operators/window/time-window-collector.js';
import { timeOf } from '../../../src/operators/items/item.js';
import { framesUpTo } from '../../../src/operators/window/window-contents.js';
import type { Frame } from '../../../src/protocol/frame.js';
import { disconnected, frameOf, gapOf, issued, opened, reconnecting, requested, watermark } from '../stream.js';
import { endOfTurn, fullChunk } from '../own-bytes/views.js';
import { inWords } from './window-words.js';
import { cases } from '../../support/cases.js';

const collectorOf = (clock: () => number, shape: Partial<WindowShape> = {}) =>
  new TimeWindowCollector<FeedEvent, Frame[], FeedWindow<Frame>>(
    { lengthMs: 10, everyMs: shape.lengthMs ?? 10, align: 'epoch', allowedLatenessMs: 0, ...shape },
    framesUpTo(1_000),
    clock,
  );

const linesOf = (collector: { drain(): Iterable<FeedWindow<Frame>> }) => [...collector.drain()].map(inWords);

describe('TimeWindowCollector', () => {
  it('returns true when the next end changes: at the first event, and when a window is over', () => {
    const collector = collectorOf(() => 0);
    expect(
      [opened(3), frameOf('a', 5), frameOf('b', 9), frameOf('c', 10)].map((event) => collector.add(event)),
    ).toEqual([true, false, false, true]);
    expect(linesOf(collector)).toEqual(['0-10 ab incomplete']);
    expect(linesOf(collector)).toEqual([]);
  });

  it("returns false before the feed is open, with align 'start'", () => {
    const collector = collectorOf(() => 0, { align: 'start', allowedLatenessMs: 0 });
    expect([collector.add(requested(3)), collector.add(issued(4)), collector.add(opened(5))]).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('waits at most `everyMs` before there is a window', () => {
    expect(collectorOf(() => 3, { lengthMs: 20, everyMs: 5 }).waitMs()).toBe(5);
  });

  it('uses the time of the clock for items without a time, from the first one on', () => {
    let now = 12;
    const collector = collectorOf(() => now);
    expect(collector.add('no event' as never)).toBe(true);
    now = 20;
    expect([collector.tick(), [...collector.drain()].map(({ start, count }) => [start, count])]).toEqual([
      true,
      [[10, 1]],
    ]);
  });

  it.each([
    ['in the window of the time', [3, 8, 6], 8],
    ['of a window that is over', [15, 3], 15],
  ])('begins a gap at the newest time, also after a late frame, %s', (_where, times, newestAt) => {
    const collector = collectorOf(() => 0);
    collector.add(opened(1));
    for (const time of times) collector.add(frameOf('a', time));
    // A new subscription, without an event of the end.
    collector.add(requested(22));
    collector.add(opened(25));
    collector.add(frameOf('b', 40));
    const [gap, ...others] = new Set([...collector.drain()].flatMap(({ gaps }) => gaps));
    expect([gap?.from, gap?.to, others]).toEqual([newestAt, 25, []]);
  });

  it('closes each window when the iterator reaches it, so that a jump of the time costs no memory', () => {
    const collector = collectorOf(() => 0);
    collector.add(opened(0));
    collector.add(frameOf('a', 99_999));
    const windows = collector.drain()[Symbol.iterator]();
    expect([windows.next().value, windows.next().value].map((window) => inWords(window as never))).toEqual([
      '0-10',
      '10-20',
    ]);
  });

  it('emits more than 10,000 empty windows that end at once as one incomplete window', () => {
    const collector = collectorOf(() => 0);
    collector.add(opened(0));
    collector.add(frameOf('a', 5));
    collector.add(frameOf('b', 300 * 86_400_000));
    expect(linesOf(collector)).toEqual(['0-10 a', '10-25920000000 incomplete']);
    collector.add(frameOf('c', 300 * 86_400_000 + 10));
    expect(linesOf(collector)).toEqual(['25920000000-25920000010 b']);
    const many = collectorOf(() => 0);
    many.add(opened(0));
    many.add(frameOf('a', 100_000));
    expect(linesOf(many)).toHaveLength(10_000);
  });

  it('emits many overlapping windows quickly after a jump of the time, also if they are not empty', () => {
    const collector = collectorOf(() => 0, { lengthMs: 3_600_000, everyMs: 150 });
    collector.add(opened(0));
    collector.add(frameOf('a', 3_600_000));
    collector.add(frameOf('b', 7_200_500));
    expect([...collector.drain()].filter(({ count }) => count === 1)).toHaveLength(24_000);
  });

  it('is complete from the first frame on for a late subscriber of a source with watermarks, for any clock', () => {
    const collector = collectorOf(() => 5);
    // The clock of the relay is ahead: by the clock of this machine, the subscription began before the window.
    for (const event of [frameOf('a', 17), watermark(18), frameOf('b', 25), watermark(31)]) collector.add(event);
    expect(linesOf(collector)).toEqual(['10-20 a incomplete', '20-30 b']);
  });

  it('emits each non-empty window among very many', () => {
    const collector = collectorOf(() => 0, { allowedLatenessMs: 1_000_000 });
    collector.add(opened(0));
    for (const at of [3, 1_000_000, 500_005]) collector.add(frameOf('a', at));
    collector.add(frameOf('b', 2_000_010));
    expect(linesOf(collector)).toEqual([
      '0-10 a',
      '10-500000 incomplete',
      '500000-500010 a',
      '500010-1000000 incomplete',
      '1000000-1000010 a',
    ]);
  });

  it('waits until the next end by the clock, shifted by the greatest lead of an event', () => {
    let now = 500;
    const collector = collectorOf(() => now);
    collector.add(opened(1_003)); // 503 ahead
    expect(collector.waitMs()).toBe(7);
    now = 504;
    collector.add(frameOf('a', 1_005)); // 501 ahead: it arrived 2 ms later
    expect(collector.waitMs()).toBe(3);
    now = 506;
    expect([collector.tick(), collector.waitMs()]).toEqual([false, 1]);
    now = 507;
    expect([collector.tick(), collector.waitMs()]).toEqual([true, 10]);
    expect(linesOf(collector)).toEqual(['1000-1010 a incomplete']);
  });

  it('when the clock is set back, adds items to the open window and loses none', () => {
    let now = 3_600_001;
    const collector = collectorOf(() => now);
    collector.add(opened(now));
    now = 4;
    expect(collector.tick()).toBe(false);
    // Not longer than a window: the clock may be set again.
    expect(collector.waitMs()).toBe(10);
    collector.add(frameOf('a', 4));
    now = 27;
    collector.add(frameOf('b', 27));
    collector.add(disconnected(30));
    collector.add(gapOf(30, 33));
    now = 3_600_010;
    expect(collector.tick()).toBe(true);
    expect(linesOf(collector)).toEqual(['3600000-3600010 ab gap 30-33 incomplete']);
    now = 3_600_020;
    collector.tick();
    expect(linesOf(collector)).toEqual(['3600010-3600020']);
  });

  it('never decreases the time at a tick', () => {
    let now = 100;
    const collector = collectorOf(() => now);
    collector.add(opened(100));
    now = 95;
    collector.tick();
    collector.add(frameOf('a', 99));
    expect(linesOf(collector)).toEqual([]);
    now = 110;
    collector.tick();
    expect(linesOf(collector)).toEqual(['100-110 a incomplete']);
  });

  it.each<[string, readonly FeedEvent[], readonly string[]]>([
    ['a frame: the feed was open before', [frameOf('a', 15)], ['10-20 a', '20-30']],
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
  ])('derives from its first event since when the feed is open: %s', (_what, events, lines) => {
    let now = 10;
    const collector = collectorOf(() => now);
    for (const event of events) {
      now = timeOf(event) as number;
      collector.add(event);
    }
    now = 30;
    collector.tick();
    expect(linesOf(collector)).toEqual(lines);
  });

  it('marks a window incomplete that began before the subscription', () => {
    let now = 12;
    const collector = collectorOf(() => now);
    collector.add(frameOf('a', 15));
    now = 30;
    collector.tick();
    expect(linesOf(collector)).toEqual(['10-20 a incomplete', '20-30']);
  });

  it('ends without a window if no event arrived, or if the last window is empty and has not begun', () => {
    const never = collectorOf(() => 0);
    never.end();
    expect(linesOf(never)).toEqual([]);
    const sharp = collectorOf(() => 20);
    sharp.add(opened(10));
    sharp.add(frameOf('a', 20));
    expect(linesOf(sharp)).toEqual(['10-20']);
    sharp.end();
    expect(linesOf(sharp)).toEqual(['20-30 a incomplete']);
    expect(linesOf(sharp)).toEqual([]);
  });

  it('keeps no read buffer alive for frames beyond the maximum of a window', async () => {
    const shape = { lengthMs: 10, everyMs: 10, align: 'epoch', allowedLatenessMs: 0 } as const;
    const collector = new TimeWindowCollector<FeedEvent, Frame[], FeedWindow<Frame>>(shape, framesUpTo(1), () => 0);
    const frames = fullChunk(64, 1_000);
    for (const frame of frames) collector.add(frame);
    await endOfTurn();
    expect(frames.map(({ data }) => data.buffer.byteLength).slice(0, 2)).toEqual([1_000, 64_000]);
  });

  it('counts the bytes of a frame once, for any number of windows', async () => {
    const collector = new TimeWindowCollector<FeedEvent, Frame[], FeedWindow<Frame>>(
      { lengthMs: 10, everyMs: 1, align: 'epoch', allowedLatenessMs: 0 },
      framesUpTo(10),
      () => 0,
    );
    const [frame] = fullChunk(8, 1_000) as [Frame];
    collector.add(frame);
    await endOfTurn();
    expect(frame.data.buffer.byteLength).toBe(1_000);
  });

  it('keeps no item of a closed window and no past gap', () => {
    const collector = collectorOf(() => 0);
    collector.add(opened(0));
    collector.add(frameOf('a', 1));
    collector.add(gapOf(2, 3));
    collector.add(issued(15));
    expect(linesOf(collector)).toEqual(['0-10 a gap 2-3 incomplete']);
    const { open, current, outages } = collector as unknown as {
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

  it('adds every frame to each window that contains its time, in order, without a hole between windows', () => {
    fc.assert(
      fc.property(shapes, events, (shape, steps) => {
        let now = 1_000;
        let latest = now;
        let id = 0;
        const collector = collectorOf(() => now, shape);
        const windows: FeedWindow<Frame>[] = [];
        const frames: Frame[] = [];
        const outages: [number, number][] = [];
        collector.add(opened(now));
        for (const { step, kind } of steps) {
          now += step;
          if (kind === 'frame') {
            const frame = frameOf(String((id += 1)), now);
            frames.push(frame);
            collector.add(frame);
          } else if (kind === 'tick') collector.tick();
          else if (kind === 'gap') {
            // A separate rule applies to late items.
            if (now >= latest) outages.push([latest, now]);
            collector.add(gapOf(Math.min(latest, now), now));
          }
          windows.push(...collector.drain());
          latest = Math.max(latest, now);
        }
        collector.end();
        windows.push(...collector.drain());

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
          // Except late items: their windows were closed when they arrived.
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
