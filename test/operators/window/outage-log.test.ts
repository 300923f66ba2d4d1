import { describe, expect, it } from '@jest/globals';
import { outageLog } from '../../../src/operators/window/outage-log.js';
import { relayError } from '../../../src/protocol/failures/relay-error.js';
import { disconnected, gapOf, issued, lost, opened, requested } from '../stream.js';

describe('outageLog', () => {
  it('returns the gaps that overlap a window, in full', () => {
    const log = outageLog();
    const gap = gapOf(13, 32);
    log.event(gap, 0, undefined);
    const within = (start: number, end: number) => log.within(start, end, 100);
    expect([within(0, 10), within(0, 13), within(32, 40)]).toEqual([[], [], []]);
    expect([within(0, 14), within(20, 30), within(31, 40)]).toEqual([[gap], [gap], [gap]]);
    expect(within(20, 30)[0]).toBe(gap);
  });

  it('counts a gap of 0 ms for the window that contains it', () => {
    const log = outageLog();
    const gap = gapOf(10, 10);
    log.event(gap, 0, undefined);
    expect([log.within(0, 10, 10), log.within(10, 20, 10), log.within(20, 30, 10)]).toEqual([[], [gap], []]);
  });

  it('returns the gap so far of an outage that is not over, until its gap arrives', () => {
    const log = outageLog();
    const outage = disconnected(13);
    log.event(outage, 0, undefined);
    const soFar = (to: number) => ({ ...gapOf(13, to, outage.failure) });
    expect([log.within(0, 10, 15), log.within(0, 13, 15)]).toEqual([[], []]);
    expect(log.within(10, 20, 25)).toEqual([soFar(20)]);
    expect(log.within(20, 30, 25)).toEqual([soFar(25)]);
    log.event(opened(25), 0, undefined);
    expect(log.within(20, 30, 30)).toEqual([soFar(25)]);
    const gap = gapOf(13, 25);
    log.event(gap, 20, undefined);
    expect(log.within(20, 30, 30)).toEqual([gap]);
    expect(log.within(20, 30, 30)[0]).toBe(gap);
    expect(log.within(30, 40, 40)).toEqual([]);
  });

  it('has no gap for a resumed connection to a relay', () => {
    const log = outageLog();
    log.event({ type: 'disconnected', at: 15, failure: relayError({ code: 'relay-lost', endedAt: 15 }) }, 0, 12);
    log.event(opened(14), 0, 15);
    expect(log.within(0, 100, 20)).toEqual([]);
    log.event(disconnected(25), 0, undefined);
    log.event(opened(25), 0, undefined);
    expect(log.within(20, 30, 30)).toHaveLength(1);
  });

  it('returns no gap of an outage that begins after the window, also when the window has another gap', () => {
    const log = outageLog();
    const gap = gapOf(1, 2);
    log.event(gap, 0, undefined);
    log.event(disconnected(13), 0, 12);
    expect(log.within(0, 10, 15)).toEqual([gap]);
  });

  it('ends an outage at the opening if no gap follows', () => {
    const log = outageLog();
    log.event(disconnected(13), 0, 12);
    log.event(opened(25), 0, 13);
    log.event(issued(26), 0, 25);
    log.event(gapOf(40, 41), 0, 30);
    expect(log.within(0, 100, 100).map(({ from, to }) => [from, to])).toEqual([
      [13, 25],
      [40, 41],
    ]);
  });

  it('for a feed that is subscribed to again without an event of its end, the outage begins at the newest event', () => {
    const ends = [requested(20), opened(25, 1)];
    for (const events of [ends, ends.slice(1)]) {
      const log = outageLog();
      log.item(13, 0);
      for (const event of events) log.event(event, 0, 13);
      const [gap, ...more] = log.within(0, 100, 100);
      expect([gap?.from, gap?.to, gap?.durationMs, more]).toEqual([13, 25, 12, []]);
      const advice = 'Nothing to do: the frames of that time are missing.';
      const emitted = { code: 'connection-closed', stage: 'stream', verdict: 'backoff', endedAt: 13, advice };
      expect(gap?.failure).toMatchObject(emitted);
      expect(gap?.failure.message).toBe(`The feed ended, and was subscribed to again. ${advice}`);
    }
    const first = outageLog();
    for (const event of ends) first.event(event, 0, undefined);
    expect(first.within(0, 100, 100)).toEqual([]);
  });

  it('begins an outage at the error of a feed', () => {
    const log = outageLog();
    log.stop(new Error('a bug'));
    log.stop(undefined);
    log.stop(lost(5, { stage: 'ticket', status: 401, closeCode: undefined }));
    expect(log.within(0, 10, 10)).toEqual([]);
    const failure = lost(7);
    log.stop(failure);
    expect(log.within(0, 10, 9)).toEqual([gapOf(7, 9, failure)]);
    const known = outageLog();
    known.event(disconnected(3), 0, 2);
    known.stop(failure);
    expect(known.within(0, 10, 9).map(({ from }) => from)).toEqual([3]);
  });

  it('removes only the gaps that are over', () => {
    const log = outageLog();
    for (const [from, to] of [
      [1, 2],
      [5, 10],
      [10, 10],
      [12, 15],
    ] as const)
      log.event(gapOf(from, to), 0, undefined);
    log.forget(10);
    expect(log.within(0, 100, 100).map(({ from }) => from)).toEqual([10, 12]);
    log.forget(15);
    expect(log.within(0, 100, 100)).toEqual([]);
  });

  it('counts a gap that no event confirms only for the windows of its time', () => {
    const log = outageLog();
    log.event(disconnected(13), 10, 12);
    log.event(opened(25), 10, 13);
    expect(log.within(10, 20, 25)).toHaveLength(1);
    log.event(issued(55), 50, 54);
    expect(log.within(50, 60, 60)).toEqual([]);
  });

  it('ends an outage at an item if the stream has no lifecycle events', () => {
    const log = outageLog();
    log.event(disconnected(13), 10, 12);
    log.item(25, 10);
    expect(log.within(10, 40, 40).map(({ from, to }) => [from, to])).toEqual([[13, 25]]);
    expect(log.within(30, 40, 40)).toEqual([]);
  });

  it('counts a late gap for the oldest window', () => {
    const log = outageLog();
    log.event(gapOf(1, 2), 20, undefined);
    log.event(gapOf(13, 20), 20, undefined);
    expect(log.within(20, 30, 20)).toEqual([gapOf(1, 2, expect.anything() as never)]);
    expect(log.within(30, 40, 20)).toEqual([]);
  });
});
