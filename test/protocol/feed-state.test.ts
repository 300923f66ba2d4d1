import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom } from 'rxjs';
import { connectionStatus } from '../../src/operators/connection-status.js';
import { waitsFor } from '../../src/protocol/event-record.js';
import type { ClusterLifecycleEvent, Disconnected, LifecycleEvent, Stopped } from '../../src/protocol/event.js';
import { createTradeFeedError, workerMeanings } from '../../src/protocol/failures/classify.js';
import { relayError } from '../../src/protocol/failures/trade-feed-error.js';
import {
  afterEvent as foldEvent,
  afterItem as foldItem,
  completeAfter,
  createGap,
  type FeedState,
  gapOfMissed,
  gapUntil,
  isOfRelay,
  type LoggedEvent,
  nextSnapshot,
  noFeed,
  notBefore,
  relayGap,
  type Snapshot,
  snapshotAfterGap,
  snapshotNotBefore,
  snapshotSince,
} from '../../src/protocol/feed-state.js';
import {
  disconnected,
  frameOf,
  gapOf,
  issued,
  lost,
  opened,
  reconnecting,
  requested,
  stopped,
  watermark,
} from '../operators/stream.js';

describe('feed state', () => {
  // The part of the state about outages.
  type Outages = Pick<FeedState, 'hasOpened' | 'outage' | 'unconfirmed' | 'gaps'>;
  const outagesOf = ({ hasOpened, outage, unconfirmed, gaps }: FeedState): Outages => ({
    ...{ hasOpened, outage, unconfirmed, gaps },
  });
  const stateOf = (outages: Outages): FeedState => ({ ...noFeed, ...outages });
  const noOutages = outagesOf(noFeed);
  const afterEvent = (outages: Outages, event: LifecycleEvent, newestAt: number | undefined) =>
    outagesOf(foldEvent(stateOf(outages), event, newestAt));
  const afterItem = (outages: Outages, at: number) => outagesOf(foldItem(stateOf(outages), at));
  const afterAll = (events: readonly LifecycleEvent[], from: Outages = noOutages, newestAt?: number) =>
    events.reduce((outages, event) => afterEvent(outages, event, newestAt), from);

  const refused = (at: number) => disconnected(at, { stage: 'ticket', status: 503, closeCode: undefined });
  const isOpen: Outages = { hasOpened: true, outage: undefined, unconfirmed: undefined, gaps: [] };

  describe('outages', () => {
    it('begin at the `endedAt` of an open connection, not with a failed attempt', () => {
      const end = { ...disconnected(5), at: 9 };
      expect(afterAll([end])).toEqual({
        ...isOpen,
        outage: { from: 5, failure: end.failure, hasStopped: false },
      });
      expect(afterAll([requested(1), refused(5)])).toEqual(noOutages);
    });

    it('begin when a connection first ends, and last until the next `opened`', () => {
      const end = disconnected(5);
      const { outage } = afterAll([end]);
      const between = [reconnecting(6, 1), requested(6), issued(6), refused(7), watermark(7), disconnected(8)];
      for (let n = 1; n <= between.length; n += 1)
        expect(afterAll([end, ...between.slice(0, n)]).outage).toEqual(outage);
      expect(afterAll([end, ...between, opened(9)])).toEqual({ ...isOpen, unconfirmed: gapOf(5, 9, end.failure) });
    });

    it("have one gap: the source's, if it emits one", () => {
      const end = disconnected(5);
      const gap = gapOf(4, 9);
      expect(afterAll([end, opened(9), gap])).toEqual({ ...isOpen, gaps: [gap] });
      expect(afterAll([end, opened(9), gap, watermark(10)])).toEqual(isOpen);
      const own = gapOf(5, 9, end.failure);
      expect(afterAll([end, opened(9), issued(10)])).toEqual({ ...isOpen, gaps: [own] });
      expect(afterItem(afterAll([end, opened(9)]), 10)).toEqual({ ...isOpen, gaps: [own] });
      expect(afterItem(afterItem(afterAll([end, opened(9)]), 10), 11)).toEqual(isOpen);
    });

    it('have no gap if only the relay connection was down, with any clock, unless the relay emits one', () => {
      const failure = relayError({ code: 'relay-lost', endedAt: 5 });
      const end: LifecycleEvent = { type: 'disconnected', at: 5, failure };
      const down = afterAll([opened(1), end]);
      expect(isOfRelay(down.outage!)).toBe(true);
      for (const at of [4, 5, 900]) expect(afterAll([opened(at)], down)).toEqual(isOpen);
      const gap = gapOf(3, 9);
      expect(afterAll([opened(9), gap], down)).toEqual({ ...isOpen, gaps: [gap] });
      const stoppedThen = afterAll([{ ...stopped(7), failure: relayError({ code: 'relay-lost', endedAt: 7 }) }], down);
      expect(isOfRelay(stoppedThen.outage!)).toBe(false);
      expect(afterAll([opened(9)], stoppedThen).unconfirmed).toMatchObject({ from: 5, to: 9 });
    });

    it('have a gap of length 0 if the clock was set back before the next `opened`', () => {
      const end = disconnected(5);
      expect(afterAll([end, opened(4)]).unconfirmed).toEqual(gapOf(4, 4, end.failure));
      const gap = { from: 4, to: 4, durationMs: 0 };
      expect(afterAll([stopped(5), requested(3), opened(4)]).unconfirmed).toMatchObject(gap);
    });

    it("aren't settled by a watermark, which may arrive between `opened` and its gap", () => {
      const end = disconnected(5);
      const gap = gapOf(4, 9);
      const before = afterAll([end, opened(9), watermark(9)]);
      expect(before).toEqual({ ...isOpen, unconfirmed: gapOf(5, 9, end.failure) });
      expect(afterAll([gap], before)).toEqual({ ...isOpen, gaps: [gap] });
    });

    it('outlast a stop, and end with a gap when the next subscription emits `opened`', () => {
      const failure = lost(5, { stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
      const stop = { ...stopped(5), failure };
      const after = afterAll([opened(1), stop]);
      expect(after).toEqual({ ...isOpen, outage: { from: 5, failure, hasStopped: true } });
      expect(afterAll([requested(6), issued(6), opened(8)], after)).toEqual({
        ...isOpen,
        unconfirmed: gapOf(5, 8, failure),
      });

      const end = disconnected(5);
      const revoked = { ...stopped(7), failure: lost(7, { stage: 'ticket', status: 403, closeCode: undefined }) };
      const stoppedInOutage = afterAll([opened(1), end, requested(6), revoked]);
      expect(stoppedInOutage.outage).toEqual({ from: 5, failure: end.failure, hasStopped: true });
      expect(afterAll([requested(8), opened(9)], stoppedInOutage).unconfirmed).toEqual(gapOf(5, 9, end.failure));
    });

    it("don't begin when a feed stops that was never open", () => {
      const stop = { ...stopped(5), failure: lost(5, { stage: 'ticket', status: 401, closeCode: undefined }) };
      expect(afterAll([requested(1), stop, requested(6), opened(8)])).toEqual(isOpen);
    });

    it('begin with the newest frame if you resubscribe to a feed that ended without an event', () => {
      for (const events of [[requested(20), opened(25)], [opened(25)]]) {
        const { gaps, unconfirmed } = events.reduce<Outages>(
          (outages, event) => afterEvent(outages, event, 13),
          afterItem(noOutages, 13),
        );
        const gap = [...gaps, unconfirmed].find((each) => each !== undefined);
        expect(gap).toMatchObject({ from: 13, to: 25, durationMs: 12 });
      }
      expect(afterAll([requested(20), opened(25)], noOutages, undefined)).toEqual(isOpen);
    });

    it("don't begin if the time of the newest event is unknown, or if the feed has only reported attempts", () => {
      expect(afterEvent(isOpen, requested(20), undefined)).toEqual(isOpen);
      for (const event of [issued(20), reconnecting(20, 5)]) expect(afterEvent(isOpen, event, 13)).toEqual(isOpen);
    });

    it('get another gap if the reported one begins later, up to its end', () => {
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

    it('end with an item if the events before it were filtered out', () => {
      const end = disconnected(5);
      expect(afterItem(afterAll([end]), 9)).toEqual({ ...isOpen, gaps: [gapOf(5, 9, end.failure)] });
      const open = foldItem(noFeed, 9);
      expect(outagesOf(open)).toEqual(isOpen);
      expect(foldItem(open, 10)).toBe(open);
    });
  });

  describe('the state of a feed', () => {
    const stateAfter = (...events: readonly ClusterLifecycleEvent[]) =>
      events.reduce<FeedState>((state, event) => foldEvent(state, event, undefined), noFeed);

    it('counts attempts, reconnects by code, and failures since a connection last opened', () => {
      const { totals, failuresInRow } = stateAfter(requested(1), opened(2), disconnected(3), requested(4), refused(5));
      expect([totals.attempts, failuresInRow]).toEqual([2, 2]);
      expect(totals.reconnects).toEqual({ 'connection-lost': 1, 'credential-service-unavailable': 1 });
      expect(stateAfter(opened(2), disconnected(3), opened(4)).failuresInRow).toBe(0);
    });

    it('is open after a frame from a source without events, as the frame describes it', () => {
      const frame = frameOf('a', 9, 3);
      const { open, events } = foldItem(stateAfter(disconnected(5), reconnecting(6, 1)), 9, frame);
      expect(open).toEqual({ at: 9, connection: 3 });
      expect(events).toEqual([{ type: 'opened', at: 9, feed: 'market', connection: 3 }]);
      expect(foldItem(noFeed, 9)).toMatchObject({ open: { at: 9, connection: 1 }, events: [] });
    });

    it("isn't changed by events of a cluster, except that the previous event's gaps are cleared", () => {
      const before = stateAfter(opened(1), disconnected(2), opened(3), gapOf(2, 3));
      const refusal = { operation: 'read', message: 'No.', advice: '' } as const;
      const changed: ClusterLifecycleEvent[] = [
        { type: 'owner-changed', at: 4, owner: 'a', generation: 2 },
        { type: 'engine-refused', at: 4, since: 4, ...refusal },
        { type: 'engine-recovered', at: 5, durationMs: 1 },
      ];
      for (const event of changed) expect(foldEvent(before, event, undefined)).toEqual({ ...before, gaps: [] });
    });

    it('knows what the feed waits for, and nothing after a failure', () => {
      const waits = (...events: readonly LifecycleEvent[]) => waitsFor(stateAfter(...events));
      expect([waits(), waits(requested(1)), waits(requested(1), issued(2)), waits(opened(3))]).toEqual([
        ...['source', 'ticket', 'handshake', 'stream'],
      ]);
      for (const failure of [disconnected(5), stopped(5), reconnecting(5, 1)])
        expect([waits(opened(3), failure), waits(failure, requested(6)), waits(failure, opened(7))]).toEqual([
          ...[undefined, undefined, 'stream'],
        ]);
    });
  });
});

describe('gap', () => {
  it('lasts from one time to the other, and never less than 0 if the clock was set back', () => {
    const failure = lost(5);
    expect(createGap(5, 8, failure)).toEqual({ type: 'gap', from: 5, to: 8, durationMs: 3, failure });
    expect(createGap(8, 5, failure)).toEqual({ type: 'gap', from: 5, to: 5, durationMs: 0, failure });
    expect(gapUntil({ from: 9, failure, hasStopped: false }, 5)).toEqual(createGap(5, 5, failure));
  });

  it('has the number of missed frames, if known, and a failure dated at its start', () => {
    const gap = gapOfMissed({ from: 5, to: 8, frames: 3 }, workerMeanings.tooSlow);
    expect(gap).toMatchObject({ type: 'gap', from: 5, to: 8, durationMs: 3, missed: 3 });
    expect(gap.failure).toMatchObject({ code: 'receiver-too-slow', stage: 'stream', verdict: 'renew', endedAt: 5 });
    const back = gapOfMissed({ from: 8, to: 5, frames: 0 }, workerMeanings.tooSlow);
    expect(back).toMatchObject({ from: 5, to: 5, durationMs: 0, missed: 0, failure: { endedAt: 5 } });
    expect(gapOfMissed({ from: 5, to: 8, frames: undefined }, workerMeanings.tooSlow)).not.toHaveProperty('missed');
    const behind = { code: 'relay-behind', stage: 'stream', verdict: 'renew', endedAt: 5 };
    expect(relayGap({ from: 5, to: 8, frames: 3 })).toMatchObject({ missed: 3, failure: behind });
  });
});

it.each([
  ['late', 9, { from: 1, to: 9, durationMs: 8 }],
  ['in time', 3, { from: 1, to: 3, durationMs: 2 }],
])('a gap that is reported %s ends then, and begins where it did', (_when, at, times) => {
  expect(notBefore(gapOf(1, 3), at)).toMatchObject(times);
});

describe('snapshot', () => {
  const after = (...events: readonly LoggedEvent[]): Snapshot => events.reduce(nextSnapshot, []);

  const refused = (at: number): Disconnected => ({
    type: 'disconnected',
    at,
    failure: createTradeFeedError({ stage: 'ticket', status: 503, endedAt: at }),
  });

  describe('nextSnapshot', () => {
    const started = [requested(1), issued(2)];
    const out = disconnected(9);
    const again = reconnecting(9, 5);
    it.each<[string, readonly LoggedEvent[], Snapshot]>([
      ['there were no events', [], []],
      ['the feed connects', [requested(1)], [requested(1)]],
      ['a ticket was issued', started, started],
      ['the feed is open', [...started, opened(3)], [opened(3)]],
      ['there were frames', [...started, opened(3), frameOf('a', 4)], [opened(3)]],
      ['there was a gap', [opened(3), gapOf(1, 3)], [opened(3)]],
      ['there was a value', [opened(3), { type: 'value', at: 4, json: '1' }], [opened(3)]],
      ['the feed waits', [opened(3), out, again], [out, again]],
      ['the feed tries again', [opened(3), out, again, requested(14)], [out, again, requested(14)]],
      [
        'two attempts failed since the feed was open',
        [opened(3), out, again, requested(14), refused(15), reconnecting(15, 10, 2)],
        [out, refused(15), reconnecting(15, 10, 2)],
      ],
      [
        'three attempts failed since the feed was open',
        [opened(3), out, again, refused(15), reconnecting(15, 10, 2), requested(25), refused(26)],
        [out, refused(26)],
      ],
      ['the feed was never open', [...started, refused(3), reconnecting(3, 5)], [refused(3), reconnecting(3, 5)]],
      [
        'the feed was never open, and two attempts failed',
        [...started, refused(3), reconnecting(3, 5), requested(8), refused(9), reconnecting(9, 5, 2)],
        [refused(3), refused(9), reconnecting(9, 5, 2)],
      ],
      ['the feed is open again', [opened(3), out, again, requested(14), opened(16, 2), gapOf(9, 16)], [opened(16, 2)]],
    ])('contains the events for a new subscriber when %s', (_when, events, snapshot) => {
      expect(after(...events)).toEqual(snapshot);
    });

    it('contains an `opened` if a frame arrives before any event', () => {
      expect(after(frameOf('a', 7, 3), frameOf('b', 9, 3))).toEqual([opened(7, 3)]);
      expect(after(out, frameOf('a', 12, 2))).toEqual([opened(12, 2)]);
    });

    it('gives a new subscriber the same status as all others after any events, in at most five events', async () => {
      const attempt = fc.constantFrom('refused', 'opened');
      await fc.assert(
        fc.asyncProperty(fc.array(attempt, { maxLength: 8 }), fc.nat(3), async (attempts, cut) => {
          let at = 0;
          let n = 0;
          const events: Exclude<LifecycleEvent, Stopped>[] = attempts.flatMap((result) => {
            const how = result === 'opened' ? [opened((at += 5)), disconnected((at += 50))] : [refused((at += 5))];
            n = result === 'opened' ? 1 : n + 1;
            return [requested((at += 1)), issued((at += 1)), ...how, reconnecting(at, 100, n)];
          });
          const seen = events.slice(0, Math.max(0, events.length - cut));
          // `reconnecting` follows in the same turn.
          if (seen.at(-1)?.type === 'disconnected') seen.pop();
          const snapshot = after(...seen);
          expect(snapshot.length).toBeLessThanOrEqual(5);
          const statusBy = (emitted: readonly LifecycleEvent[]) =>
            lastValueFrom(from(emitted).pipe(connectionStatus()), { defaultValue: undefined });
          expect(await statusBy(snapshot)).toEqual(await statusBy(seen));
        }),
      );
    });
  });

  describe('completeAfter', () => {
    const open = [opened(3)];
    const lost = disconnected(20, { endedAt: 15 });
    const linkLost: Disconnected = { ...disconnected(20), failure: relayError({ code: 'relay-stalled', endedAt: 18 }) };
    it.each<[string, Snapshot, LoggedEvent, number]>([
      ['a frame', open, frameOf('a', 12), 12],
      ['a value', open, { type: 'value', at: 12, json: '1' }, 12],
      ['a value of a source without events', [], { type: 'value', at: 12, json: '1' }, 12],
      ['a late value in an outage', [lost], { type: 'value', at: 22, json: '1' }, 10],
      ['a gap', open, gapOf(4, 13), 13],
      ['the first `opened`', [requested(1)], opened(14), 14],
      ['`opened` after an outage, before its gap', [lost], opened(30, 2), 10],
      ['the end of an open connection', open, lost, 15],
      ['another failure in an outage', [lost], disconnected(40, { endedAt: 40 }), 10],
      ['the end of the connection to a relay', open, linkLost, 10],
      ['a failed attempt', open, refused(25), 10],
      ['a wait', [lost], reconnecting(20, 5), 10],
      ['an attempt', [lost], requested(25), 10],
    ])('returns the time up to which no frame is missing after %s', (_what, snapshot, event, complete) => {
      expect(completeAfter(10, snapshot, event)).toBe(complete);
    });
  });

  const outage = [disconnected(9), reconnecting(9, 5)];

  it.each<[string, Snapshot, number, Snapshot]>([
    ['opens the feed at the time of the subscriber', [opened(3, 2)], 7, [opened(7, 2)]],
    ['does not open it before it has opened, when the last watermark is older', [opened(9, 2)], 7, [opened(9, 2)]],
    ['leaves an outage unchanged', outage, 20, outage],
    ['leaves no events unchanged', [], 20, []],
  ])('snapshotSince %s', (_what, snapshot, at, expected) => {
    expect(snapshotSince(snapshot, at)).toEqual(expected);
  });

  it.each<[string, Snapshot, number, Snapshot]>([
    ['moves earlier events, but not the next attempt', outage, 11, [{ ...outage[0]!, at: 11 }, reconnecting(11, 3)]],
    ['leaves no wait in the past', [reconnecting(9, 5)], 20, [reconnecting(20, 0)]],
    ['moves an `opened`', [opened(3, 2)], 7, [opened(7, 2)]],
    ['leaves later events unchanged', outage, 9, outage],
    ['leaves a later `opened` unchanged', [opened(9)], 7, [opened(9)]],
  ])('snapshotNotBefore %s', (_what, snapshot, at, expected) => {
    expect(snapshotNotBefore(snapshot, at)).toEqual(expected);
  });

  it('snapshotAfterGap puts the gap after `opened`, and before the events of an outage', () => {
    const missed = { from: 5, to: 8, frames: 3 };
    const gap = expect.objectContaining({ type: 'gap', from: 5, to: 8, missed: 3 });
    expect(snapshotAfterGap([opened(3, 2)], missed)).toEqual([opened(8, 2), gap]);
    expect(snapshotAfterGap(outage, missed)).toEqual([gap, ...outage]);
    expect(snapshotAfterGap([], missed)).toEqual([gap]);
  });
});
