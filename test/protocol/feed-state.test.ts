import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom } from 'rxjs';
import { timeOf } from '../../src/operators/items/item.js';
import { connectionStatus } from '../../src/operators/connection-status.js';
import { waitsFor } from '../../src/protocol/event-record.js';
import type { ClusterLifecycleEvent, Disconnected, LifecycleEvent, Stopped } from '../../src/protocol/event.js';
import { workerMeanings } from '../../src/protocol/failures/classify.js';
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
} from '../operators/stream.js';
import { events } from '../operators/window-words.js';

const refused = (at: number): Disconnected => disconnected(at, { stage: 'ticket', status: 503, closeCode: undefined });

/** More letters of a diagram: stops of an open connection, of an attempt, and of a connection to a relay. */
const stops: Readonly<Record<string, (at: number) => LifecycleEvent>> = {
  s: stopped,
  S: (at) => stopped(at, { stage: 'ticket', status: 403, closeCode: undefined }),
  L: (at) => ({ type: 'stopped', at, failure: relayError({ code: 'relay-lost', endedAt: at }) }),
};

/** Folds the events of words such as `x5 o9`, each with the time of the newest one before it. */
const fold = (row: string): FeedState => {
  let newestAt: number | undefined;
  return row.split(' ').reduce((state, word) => {
    const event = stops[word.charAt(0)]?.(Number(word.slice(1))) ?? events(word)[0]!;
    const at = timeOf(event) as number;
    const next = event.type === 'frame' ? foldItem(state, at) : foldEvent(state, event, newestAt);
    newestAt = Math.max(newestAt ?? at, at);
    return next;
  }, noFeed);
};

/** Describes the outages of a state: `open` if there is none. */
const outagesIn = (state: FeedState): string => {
  const { hasOpened, outage, unconfirmed, gaps } = state;
  const ofOutage = outage && [
    `down since ${outage.from}`,
    outage.hasStopped && 'stopped',
    isOfRelay(outage) && 'relay',
  ];
  const words = [
    ...[!hasOpened && 'never open', ...(ofOutage ?? [])],
    unconfirmed && `unconfirmed ${unconfirmed.from}-${unconfirmed.to}`,
    ...gaps.map(({ from, to }) => `gap ${from}-${to}`),
  ];
  return words.filter(Boolean).join(', ') || 'open';
};

describe('feed state', () => {
  it.each([
    ['begins when an open connection ended, not when that was noticed', 'x9<5', 'down since 5'],
    ["doesn't begin with a failed attempt", 't1 k5', 'never open'],
    ["isn't changed by attempts and their failures", 'x5 r6 t6 i6 k7 w7 x8', 'down since 5'],
    ['ends with the next `opened`', 'x5 r6 t6 i6 k7 o9', 'unconfirmed 5-9'],
    ['has the gap of the source', 'x5 o9 g4-9', 'gap 4-9'],
    ['has its gap only once', 'x5 o9 g4-9 w10', 'open'],
    ['has a gap of its own if another event follows', 'x5 o9 i10', 'gap 5-9'],
    ['has a gap of its own if an item follows', 'x5 o9 a10', 'gap 5-9'],
    ['has that gap only once', 'x5 o9 a10 a11', 'open'],
    ["isn't settled by a watermark", 'x5 o9 w9', 'unconfirmed 5-9'],
    ['has the gap of the source even after a watermark', 'x5 o9 w9 g4-9', 'gap 4-9'],
    ['of the connection to a relay', 'o1 l5', 'down since 5, relay'],
    ['of the connection to a relay has no gap', 'o1 l5 o9', 'open'],
    ['of the connection to a relay has no gap with any clock', 'o1 l5 o4', 'open'],
    ['of the connection to a relay has the gap that the relay emits', 'o1 l5 o9 g3-9', 'gap 3-9'],
    ['of the connection to a relay is one of the feed once it stops', 'o1 l5 L7', 'down since 5, stopped'],
    ['of the connection to a relay has a gap once it stops', 'o1 l5 L7 o9', 'unconfirmed 5-9'],
    ['has a length of 0 if the clock was set back', 'x5 o4', 'unconfirmed 4-4'],
    ['has a length of 0 if the clock was set back after a stop', 's5 t3 o4', 'unconfirmed 4-4'],
    ['outlasts a stop', 'o1 s5', 'down since 5, stopped'],
    ['outlasts a stop until the next subscription is open', 'o1 s5 t6 i6 o8', 'unconfirmed 5-8'],
    ['begins before a stop of an attempt', 'o1 x5 t6 S7', 'down since 5, stopped'],
    ['ends after a stop of an attempt', 'o1 x5 t6 S7 t8 o9', 'unconfirmed 5-9'],
    ["doesn't begin when a feed stops that was never open", 't1 S5 t6 o8', 'open'],
    ['begins with the newest frame for a new subscription without an event', 'a13 t20 o25', 'unconfirmed 13-25'],
    ['begins with the newest frame if the new subscription has no attempt', 'a13 o25', 'unconfirmed 13-25'],
    ["doesn't begin with a ticket", 'a13 i20', 'open'],
    ["doesn't begin with a wait", 'a13 r20', 'open'],
    ['gets another gap if the reported one begins later', 'x5 g6-9', 'gap 5-9, gap 6-9'],
    ['gets no other gap if the reported one covers it', 'x5 g5-9', 'gap 5-9'],
    ['may be reported without its begin', 'o1 g6-9', 'gap 6-9'],
    ['ends with an item if the events before it were filtered out', 'x5 a9', 'gap 5-9'],
    ['never was, if items come first', 'a9 a10', 'open'],
  ])('an outage %s: %s', (_title, row, expected) => {
    expect(outagesIn(fold(row))).toBe(expected);
  });

  it('an outage keeps the failure that began it, and a frame of an open connection changes nothing', () => {
    const first = disconnected(5);
    const state = [first, refused(7), opened(9)].reduce((before, event) => foldEvent(before, event, undefined), noFeed);
    expect(state.unconfirmed).toEqual(gapOf(5, 9, first.failure));
    const open = foldItem(noFeed, 9);
    expect(foldItem(open, 10)).toBe(open);
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
