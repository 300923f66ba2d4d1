import { describe, expect, it } from '@jest/globals';
import { gapSoFar, outageLog } from '../../../src/operators/window/outage-log.js';
import { disconnected, gapOf, lost, opened } from '../stream.js';

describe('outageLog', () => {
  it('gives a window the gaps that reach into it, as they are', () => {
    const log = outageLog();
    const gap = gapOf(13, 32);
    log.tell(gap, 0);
    const within = (start: number, end: number) => log.within(start, end, 100);
    expect([within(0, 10), within(0, 13), within(32, 40)]).toEqual([[], [], []]);
    expect([within(0, 14), within(20, 30), within(31, 40)]).toEqual([[gap], [gap], [gap]]);
    expect(within(20, 30)[0]).toBe(gap);
  });

  it('counts a gap without length for the window that it lies in', () => {
    const log = outageLog();
    const gap = gapOf(10, 10);
    log.tell(gap, 0);
    expect([log.within(0, 10, 10), log.within(10, 20, 10), log.within(20, 30, 10)]).toEqual([[], [gap], []]);
  });

  it('gives the gap so far of an outage that goes on, until its gap comes', () => {
    const log = outageLog();
    const outage = disconnected(13);
    log.tell(outage, 0);
    const soFar = (to: number) => ({ ...gapOf(13, to, outage.failure) });
    expect([log.within(0, 10, 15), log.within(0, 13, 15)]).toEqual([[], []]);
    expect(log.within(10, 20, 25)).toEqual([soFar(20)]);
    expect(log.within(20, 30, 25)).toEqual([soFar(25)]);
    log.tell(opened(25), 0);
    expect(log.within(20, 30, 30)).toEqual([soFar(30)]);
    log.tell(gapOf(13, 25), 20);
    expect(log.within(30, 40, 40)).toEqual([]);
  });

  it('forgets the gaps that are over, and those alone', () => {
    const log = outageLog();
    for (const [from, to] of [
      [1, 2],
      [5, 10],
      [10, 10],
      [12, 15],
    ] as const)
      log.tell(gapOf(from, to), 0);
    log.forget(10);
    expect(log.within(0, 100, 100).map(({ from }) => from)).toEqual([10, 12]);
    log.forget(15);
    expect(log.within(0, 100, 100)).toEqual([]);
  });

  it('counts a gap that comes late for the oldest window', () => {
    const log = outageLog();
    log.tell(gapOf(1, 2), 20);
    log.tell(gapOf(13, 20), 20);
    expect(log.within(20, 30, 20)).toEqual([gapOf(1, 2, expect.anything() as never)]);
    expect(log.within(30, 40, 20)).toEqual([]);
  });
});

describe('gapSoFar', () => {
  it('has no negative length', () => {
    const failure = lost(9);
    expect(gapSoFar({ from: 9, failure }, 5)).toEqual({ type: 'gap', from: 9, to: 9, durationMs: 0, failure });
    expect(gapSoFar({ from: 9, failure }, 11)).toEqual({ type: 'gap', from: 9, to: 11, durationMs: 2, failure });
  });
});
