import { describe, expect, it } from '@jest/globals';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';
import {
  afterEvent,
  afterItem,
  gapUntil,
  isOfRelay,
  noOutages,
  type Outages,
  stoppedAt,
} from '../../src/protocol/outage.js';
import {
  disconnected,
  gapOf,
  issued,
  lost,
  opened,
  reconnecting,
  requested,
  stopped,
  watermark,
} from '../operators/stream.js';

const afterAll = (events: readonly LifecycleEvent[], from: Outages = noOutages, newestAt?: number) =>
  events.reduce<Outages>((outages, event) => afterEvent(outages, event, newestAt), from);

const refused = (at: number) => disconnected(at, { stage: 'ticket', status: 503, closeCode: undefined });
const isOpen: Outages = { hasOpened: true, current: undefined, unconfirmed: undefined, gaps: [] };

describe('outages', () => {
  it('begin at the `endedAt` of an open connection, and not with a failed attempt', () => {
    const end = { ...disconnected(5), at: 9 };
    expect(afterAll([end])).toEqual({
      ...isOpen,
      current: { from: 5, failure: end.failure, hasStopped: false },
    });
    expect(afterAll([requested(1), refused(5)])).toEqual(noOutages);
  });

  it('begin with the first end of a connection, and last until the next `opened`', () => {
    const end = disconnected(5);
    const { current } = afterAll([end]);
    const between = [reconnecting(6, 1), requested(6), issued(6), refused(7), watermark(7), disconnected(8)];
    for (let n = 1; n <= between.length; n += 1)
      expect(afterAll([end, ...between.slice(0, n)]).current).toEqual(current);
    expect(afterAll([end, ...between, opened(9)])).toEqual({ ...isOpen, unconfirmed: gapOf(5, 9, end.failure) });
  });

  it('have one gap: the one of the source, if it emits one', () => {
    const end = disconnected(5);
    const gap = gapOf(4, 9);
    expect(afterAll([end, opened(9), gap])).toEqual({ ...isOpen, gaps: [gap] });
    expect(afterAll([end, opened(9), gap, watermark(10)])).toEqual(isOpen);
    const own = gapOf(5, 9, end.failure);
    expect(afterAll([end, opened(9), issued(10)])).toEqual({ ...isOpen, gaps: [own] });
    expect(afterItem(afterAll([end, opened(9)]), 10)).toEqual({ ...isOpen, gaps: [own] });
    expect(afterItem(afterItem(afterAll([end, opened(9)]), 10), 11)).toEqual(isOpen);
  });

  it('have no gap while only the connection to a relay is down, with any clock, unless the relay emits a gap', () => {
    const end: LifecycleEvent = {
      type: 'disconnected',
      at: 5,
      failure: relayError({ code: 'relay-lost', endedAt: 5 }),
    };
    const down = afterAll([opened(1), end]);
    expect(isOfRelay(down.current!)).toBe(true);
    for (const at of [4, 5, 900]) expect(afterAll([opened(at)], down)).toEqual(isOpen);
    const gap = gapOf(3, 9);
    expect(afterAll([opened(9), gap], down)).toEqual({ ...isOpen, gaps: [gap] });
    const stoppedThen = afterAll([{ ...stopped(7), failure: relayError({ code: 'relay-lost', endedAt: 7 }) }], down);
    expect(isOfRelay(stoppedThen.current!)).toBe(false);
    expect(afterAll([opened(9)], stoppedThen).unconfirmed).toMatchObject({ from: 5, to: 9 });
  });

  it('have a gap of length 0 if the clock was set back before the next `opened`', () => {
    const end = disconnected(5);
    expect(afterAll([end, opened(4)]).unconfirmed).toEqual(gapOf(4, 4, end.failure));
    expect(afterAll([stopped(5), requested(3), opened(4)]).unconfirmed).toMatchObject({
      from: 4,
      to: 4,
      durationMs: 0,
    });
  });

  it('are not confirmed by a watermark, which may arrive between `opened` and its gap', () => {
    const end = disconnected(5);
    const gap = gapOf(4, 9);
    const before = afterAll([end, opened(9), watermark(9)]);
    expect(before).toEqual({ ...isOpen, unconfirmed: gapOf(5, 9, end.failure) });
    expect(afterAll([gap], before)).toEqual({ ...isOpen, gaps: [gap] });
  });

  it('continue after a stop, and end with a gap at the `opened` of the next subscription', () => {
    const failure = lost(5, { stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
    const stop = { ...stopped(5), failure };
    const after = afterAll([opened(1), stop]);
    expect(after).toEqual({ ...isOpen, current: { from: 5, failure, hasStopped: true } });
    expect(afterAll([requested(6), issued(6), opened(8)], after)).toEqual({
      ...isOpen,
      unconfirmed: gapOf(5, 8, failure),
    });

    const end = disconnected(5);
    const revoked = { ...stopped(7), failure: lost(7, { stage: 'ticket', status: 403, closeCode: undefined }) };
    const stoppedInOutage = afterAll([opened(1), end, requested(6), revoked]);
    expect(stoppedInOutage.current).toEqual({ from: 5, failure: end.failure, hasStopped: true });
    expect(afterAll([requested(8), opened(9)], stoppedInOutage).unconfirmed).toEqual(gapOf(5, 9, end.failure));
  });

  it('do not begin with the stop of a feed that was never open', () => {
    const stop = { ...stopped(5), failure: lost(5, { stage: 'ticket', status: 401, closeCode: undefined }) };
    expect(afterAll([requested(1), stop, requested(6), opened(8)])).toEqual(isOpen);
  });

  it('begin with the newest frame if a feed ended without an event and is subscribed to again', () => {
    for (const events of [[requested(20), opened(25)], [opened(25)]]) {
      const { gaps, unconfirmed } = events.reduce<Outages>(
        (outages, event) => afterEvent(outages, event, 13),
        afterItem(noOutages, 13),
      );
      expect([...gaps, unconfirmed].find((gap) => gap !== undefined)).toMatchObject({
        from: 13,
        to: 25,
        durationMs: 12,
      });
    }
    expect(afterAll([requested(20), opened(25)], noOutages, undefined)).toEqual(isOpen);
  });

  it('begin with a failure that names the new subscription, and with a stop', () => {
    const { current } = afterEvent(isOpen, requested(20), 13);
    expect(current).toMatchObject({ from: 13, hasStopped: true });
    expect(current?.failure).toMatchObject({ code: 'connection-closed', stage: 'stream', endedAt: 13 });
  });

  it('do not begin if the time of the newest event is unknown, or if the feed only reports its attempts', () => {
    expect(afterEvent(isOpen, requested(20), undefined)).toEqual(isOpen);
    for (const event of [issued(20), reconnecting(20, 5)]) expect(afterEvent(isOpen, event, 13)).toEqual(isOpen);
  });

  it('have another gap, up to the end of a gap that begins later', () => {
    const end = disconnected(5);
    const outage = afterAll([end]);
    const later = gapOf(6, 9);
    expect(afterAll([later], outage)).toEqual({ ...isOpen, gaps: [gapOf(5, 9, end.failure), later] });
    for (const from of [5, 4]) {
      const covering = gapOf(from, 9);
      expect(afterAll([covering], outage)).toEqual({ ...isOpen, gaps: [covering] });
    }
    expect(afterAll([later], isOpen)).toEqual({ ...isOpen, gaps: [later] });
  });

  it('are the same object after a watermark that changes nothing', () => {
    expect(afterAll([watermark(9)], isOpen)).toBe(isOpen);
  });

  it('end with an item if the events before it were filtered out', () => {
    const end = disconnected(5);
    expect(afterItem(afterAll([end]), 9)).toEqual({ ...isOpen, gaps: [gapOf(5, 9, end.failure)] });
    const open = afterItem(noOutages, 9);
    expect(open).toEqual(isOpen);
    expect(afterItem(open, 10)).toBe(open);
  });

  it('can start with a feed that stopped at a known time', () => {
    const failure = lost(5);
    expect(stoppedAt(5, failure)).toEqual({ ...isOpen, current: { from: 5, failure, hasStopped: true } });
    expect(afterAll([opened(8)], stoppedAt(5, failure))).toEqual({ ...isOpen, unconfirmed: gapOf(5, 8, failure) });
  });

  it('have no negative length', () => {
    const failure = lost(9);
    const outage = { from: 9, failure, hasStopped: false };
    expect(gapUntil(outage, 5)).toEqual({ type: 'gap', from: 5, to: 5, durationMs: 0, failure });
    expect(gapUntil(outage, 11)).toEqual({ type: 'gap', from: 9, to: 11, durationMs: 2, failure });
  });
});
