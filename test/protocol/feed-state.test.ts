import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom } from 'rxjs';
import { afterItem } from '../../src/operators/items/follow-feed.js';
import { timeOf } from '../../src/operators/items/item.js';
import { connectionStatus } from '../../src/operators/connection-status.js';
import { waitsFor } from '../../src/protocol/event-record.js';
import type { ClusterLifecycleEvent, Disconnected, LifecycleEvent, Stopped } from '../../src/protocol/event.js';
import { completeAfter, type LoggedEvent } from '../../src/relay/event-log.js';
import { workerMeanings } from '../../src/worker/feed-in-worker.js';
import { relayError } from '../../src/browser/relay-error.js';
import {
  afterEvent as foldEvent,
  afterFrame as foldItem,
  type FeedState,
  gapOfMissed,
  isOfRelay,
  noFeed,
  notBefore,
  relayGap,
  type Snapshot,
  snapshotAfterGap,
  snapshotNotBefore,
  snapshotOfNew,
  snapshotAt,
  stateOf,
} from '../../src/protocol/feed-state.js';
import {
  disconnected,
  frameOf,
  gapOf,
  issued,
  joined,
  opened,
  opening,
  reconnecting,
  requested,
  stopped,
} from '../operators/stream.js';
import { events } from '../operators/window-words.js';

const refused = (at: number): Disconnected => disconnected(at, { stage: 'ticket', status: 503, closeCode: undefined });

/** More letters of a diagram: a delayed opening, and stops of an open connection, of an attempt, and of one to a relay. */
const more: Readonly<Record<string, (at: number) => LifecycleEvent>> = {
  f: (at) => ({ ...opening(at), completeFrom: at + 2_000 }),
  s: stopped,
  S: (at) => stopped(at, { stage: 'ticket', status: 403, closeCode: undefined }),
  L: (at) => ({ type: 'stopped', at, failure: relayError({ code: 'relay-lost', endedAt: at }) }),
};

/** Folds the events of words such as `x5 o9`, each with the time of the newest one before it. */
const fold = (row: string): FeedState => {
  let newestAt: number | undefined;
  return row.split(' ').reduce((state, word) => {
    const event = more[word.charAt(0)]?.(Number(word.slice(1))) ?? events(word)[0]!;
    const at = timeOf(event) as number;
    const next = event.type === 'frame' ? foldItem(state, at) : foldEvent(state, event, newestAt);
    newestAt = Math.max(newestAt ?? at, at);
    return next;
  }, noFeed);
};

/** Describes the outages of a state: `open` if there is none. */
const outagesIn = (state: FeedState): string => {
  const { hasOpened, outage, settling, gaps } = state;
  const ofOutage = outage && [
    `down since ${outage.from}`,
    outage.hasStopped && 'stopped',
    isOfRelay(outage) && 'relay',
  ];
  const words = [
    ...[!hasOpened && 'never open', ...(ofOutage ?? [])],
    settling && `complete by ${settling.until}`,
    ...gaps.map(({ from, to }) => `gap ${from}-${to}`),
  ];
  return words.filter(Boolean).join(', ') || 'open';
};

describe('feed state', () => {
  it.each([
    ['begins when an open connection ended, not when that was noticed', 'x9<5', 'down since 5'],
    ["doesn't begin with a failed attempt", 't1 k5', 'never open'],
    ["isn't changed by attempts and their failures", 'x5 r6 t6 i6 k7 w7 x8', 'down since 5'],
    ['ends with the next `opened`', 'x5 r6 t6 i6 k7 o9', 'down since 5, complete by 9'],
    ['has the gap of the source', 'x5 o9 g4-9', 'gap 4-9'],
    ['has its gap only once', 'x5 o9 g4-9 w10', 'open'],
    ['has a gap of its own if another event follows', 'x5 o9 i10', 'gap 5-9'],
    ['has a gap of its own if an item follows', 'x5 o9 a10', 'gap 5-9'],
    ["isn't settled by a watermark", 'x5 o9 w9', 'down since 5, complete by 9'],
    ['has the gap of the source even after a watermark', 'x5 o9 w9 g4-9', 'gap 4-9'],
    ['of the connection to a relay', 'o1 l5', 'down since 5, relay'],
    ['of the connection to a relay has no gap', 'o1 l5 o9', 'open'],
    ['of the connection to a relay has no gap with any clock', 'o1 l5 o4', 'open'],
    ['of the connection to a relay has the gap that the relay emits', 'o1 l5 o9 g3-9', 'gap 3-9'],
    ['of a relay goes on if the feed has a new connection', 'o1 l5 O9', 'down since 5, stopped, complete by 509'],
    ['of the connection to a relay has no gap if the first connection still settles', 'O1 l5 O9', 'complete by 509'],
    ['of the feed behind that of its relay begins when the relay was lost', 'o1 l5 x9<7', 'down since 5'],
    ['settles at its `opened` if the time of the handshake is known', 'x5 t6 i7 O9 a12', 'gap 5-9'],
    ['of the feed before that of its relay begins with its own end', 'o1 l9 x9<7', 'down since 7'],
    ['of the connection to a relay is one of the feed once it stops', 'o1 l5 L7', 'down since 5, stopped'],
    ['of the connection to a relay has a gap once it stops', 'o1 l5 L7 o9', 'down since 5, stopped, complete by 9'],
    ['has a length of 0 if the clock was set back', 'x5 o4', 'down since 5, complete by 4'],
    ['has a length of 0 if the clock was set back after a stop', 's5 t3 o4', 'down since 5, stopped, complete by 4'],
    ['outlasts a stop until the next subscription is open', 'o1 s5 t6 i6 o8', 'down since 5, stopped, complete by 8'],
    ['begins before a stop of an attempt', 'o1 x5 t6 S7', 'down since 5, stopped'],
    ['ends after a stop of an attempt', 'o1 x5 t6 S7 t8 o9', 'down since 5, stopped, complete by 9'],
    ["doesn't begin when a feed stops that was never open", 't1 S5 t6 o8', 'open'],
    ['begins with the newest frame if nothing told its end', 'a13 t20 o25', 'down since 13, stopped, complete by 25'],
    ['begins so even without a new attempt', 'a13 o25', 'down since 13, stopped, complete by 25'],
    ["doesn't begin with a ticket", 'a13 i20', 'open'],
    ["doesn't begin with a wait", 'a13 r20', 'open'],
    ['gets another gap if the reported one begins later', 'x5 g6-9', 'gap 5-9, gap 6-9'],
    ['gets no other gap if the reported one covers it', 'x5 g5-9', 'gap 5-9'],
    [
      'gets another gap after a stop, if the next subscription only knows its own outage',
      's5 t7 i8 O9 x20 t21 i22 O23 g20-23',
      'gap 5-23, gap 20-23',
    ],
    ['may be reported without its begin', 'o1 g6-9', 'gap 6-9'],
    ['ends with an item if the events before it were filtered out', 'x5 a9', 'gap 5-9'],
    ['never was, if items come first', 'a9 a10', 'open'],
  ])('an outage %s: %s', (_title, row, expected) => {
    expect(outagesIn(fold(row))).toBe(expected);
  });

  // `O` opens a connection that has to settle; its handshake is sent when the ticket is issued, `i`.
  it.each([
    ['at `opened`, if a frame comes too early for a delay', 'x5 i100 O110 a594', 'gap 5-110'],
    ['with the first frame, if it could be delayed', 'x5 i100 O110 a595', 'gap 5-595'],
    ['with the first frame after a late answer to the handshake', 'x5 i100 O300 a605', 'gap 5-605'],
    ['with the first frame, if nobody knows when the handshake was sent', 'x5 O110 a120', 'gap 5-120'],
    ['at `opened`, not before it, if the first frame has an earlier time', 'x5 O110 a109', 'gap 5-110'],
    ['500 ms after `opened` at the latest, when a frame shows the time', 'x5 i100 O110 a700', 'gap 5-610'],
    ['500 ms after `opened` at the latest, when a watermark shows the time', 'x5 i100 O110 w610', 'gap 5-610'],
    ['not while a watermark is earlier', 'x5 i100 O110 w609', 'down since 5, complete by 610'],
    ['not if the connection ends before', 'x5 i100 O110 x300', 'down since 5'],
    ['not if the connection stalls before, whenever that is noticed', 'x5 i100 O110 x9000<300', 'down since 5'],
    ['before the connection ends, if that is later', 'x5 i100 O110 x9000<900', 'down since 900, gap 5-610'],
    ['when the connection after it is complete, and has one gap', 'x5 i100 O110 x300 i400 O410 a420', 'gap 5-410'],
    ['when a gap says so', 'x5 i100 O110 g5-300', 'gap 5-300'],
    ['without a gap on the first connection', 'i100 O110 a700', 'open'],
    ['without a gap on the first connection, at a watermark', 'i100 O110 w700', 'open'],
    ['only once', 'x5 i100 O110 w610 g5-610', 'open'],
    ['of a new subscription without events', 'a13 t20 i21 O30 a40', 'gap 13-30'],
    ['of a relay at once, since its connection to the service was complete', 'o1 l5 o9', 'open'],
    ['of a relay that has restarted as any other does', 'o1 l5 t6 i7 O9 a20', 'gap 5-9'],
    ['of a relay whose feed is down as well as any other does', 'o1 l5 x6 i7 O9 a20', 'gap 5-9'],
    ['of a relay that was lost while the connection settled', 'i1 O2 l5 O9', 'complete by 509'],
  ])('an outage ends %s: %s', (_title, row, expected) => {
    expect(outagesIn(fold(row))).toBe(expected);
  });

  it.each([
    ['at `opened`', 'i1 O2 a400', 2],
    ['with the first frame', 'i1 O2 a500', 500],
    ['500 ms later', 'i1 O2 a9000', 502],
    ['with a frame of a source without events', 'a9', 9],
    ['at the end of a gap', 'g3-9', 9],
    ['not before', 'i1 O2', undefined],
    ['not during an outage', 'i1 O2 a9 x10', undefined],
    ['as before, while only the connection to a relay is down', 'i1 O2 a9 l10', 2],
    ['as before, when the relay is back', 'o1 l5 o5', 1],
    ['after the ms in which a relay was lost, for a subscriber that came since', 'l5 o5', 6],
  ])('a connection is complete %s: %s', (_title, row, completeFrom) => {
    expect(fold(row).completeFrom).toBe(completeFrom);
  });

  // `f` opens a connection with that option.
  it.each([
    ['a gap before the first frame', 'x5 f100 a150', 'down since 150, complete by 2100, gap 5-150'],
    ['a second gap up to that time', 'x5 f100 a150 w2100', 'gap 150-2100'],
    [
      'no more gaps with such frames after that of the source',
      'x5 f100 g5-100 a100',
      'down since 100, complete by 2100',
    ],
  ])('an outage with 2000 as `deliveryDelayMs` has %s: %s', (_title, row, expected) => {
    expect(outagesIn(fold(row))).toBe(expected);
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
      expect(events).toEqual([{ type: 'opened', at: 9, feed: 'market', connection: 3, completeFrom: 9 }]);
      expect(foldItem(noFeed, 9)).toMatchObject({ open: { at: 9, connection: 1 }, events: [] });
    });

    it("isn't changed by events about the engine of a cluster, except that the previous event's gaps are cleared", () => {
      const before = stateAfter(opened(1), disconnected(2), opened(3), gapOf(2, 3));
      const refusal = { operation: 'read', message: 'No.', advice: '' } as const;
      const changed: ClusterLifecycleEvent[] = [
        { type: 'engine-refused', at: 4, since: 4, ...refusal },
        { type: 'engine-recovered', at: 5, durationMs: 1 },
      ];
      for (const event of changed) expect(foldEvent(before, event, undefined)).toEqual({ ...before, gaps: [] });
    });

    it('has an outage from the newest frame on when another replica becomes the owner', () => {
      const changed = { type: 'owner-changed', at: 4, owner: 'a', generation: 2 } as const;
      const state = foldEvent(stateAfter(opened(1)), changed, 3);
      expect([state.outage?.from, state.completeFrom, state.open]).toEqual([3, undefined, { at: 1, connection: 1 }]);
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

it('a gap has the number of missed frames, if known, and a failure dated at its start', () => {
  const gap = gapOfMissed({ from: 5, to: 8, frames: 3 }, workerMeanings.tooSlow);
  expect(gap).toMatchObject({ type: 'gap', from: 5, to: 8, durationMs: 3, missed: 3 });
  expect(gap.failure).toMatchObject({ code: 'receiver-too-slow', stage: 'stream', verdict: 'renew', endedAt: 5 });
  const back = gapOfMissed({ from: 8, to: 5, frames: 0 }, workerMeanings.tooSlow);
  expect(back).toMatchObject({ from: 5, to: 5, durationMs: 0, missed: 0, failure: { endedAt: 5 } });
  expect(gapOfMissed({ from: 5, to: 8, frames: undefined }, workerMeanings.tooSlow)).not.toHaveProperty('missed');
  const behind = { code: 'relay-behind', stage: 'stream', verdict: 'renew', endedAt: 5 };
  expect(relayGap({ from: 5, to: 8, frames: 3 })).toMatchObject({ missed: 3, failure: behind });
});

it('a gap that is reported late ends then, and begins where it did', () => {
  expect(notBefore(gapOf(1, 3), 9)).toMatchObject({ from: 1, to: 9, durationMs: 8 });
});

const foldLogged = (state: FeedState, event: LoggedEvent): FeedState => {
  if (event.type === 'value') return state;
  return event.type === 'frame' ? foldItem(state, event.receivedAt, event) : foldEvent(state, event, undefined);
};

describe('snapshot', () => {
  const stateAfter = (events: readonly LoggedEvent[]): FeedState => events.reduce(foldLogged, noFeed);
  const after = (...events: readonly LoggedEvent[]): Snapshot => stateAfter(events).events;

  describe('the events of a state', () => {
    const started = [requested(1), issued(2)];
    const out = disconnected(9);
    const again = reconnecting(9, 5);
    it.each<[string, readonly LoggedEvent[], Snapshot]>([
      ['the feed is open', [...started, opened(3)], [opened(3)]],
      [
        'three attempts failed since the feed was open',
        [opened(3), out, again, refused(15), reconnecting(15, 10, 2), requested(25), refused(26)],
        [out, refused(26)],
      ],
      ['the feed is open again', [opened(3), out, again, requested(14), opened(16, 2), gapOf(9, 16)], [opened(16, 2)]],
    ])('contains the events for a new subscriber when %s', (_when, events, snapshot) => {
      expect(after(...events)).toEqual(snapshot);
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
    const fixed = { ...opened(3), completeFrom: 103 };
    const lost = disconnected(20, { endedAt: 15 });
    const linkLost: Disconnected = { ...disconnected(20), failure: relayError({ code: 'relay-stalled', endedAt: 18 }) };
    it.each<[string, readonly LoggedEvent[], LoggedEvent, number]>([
      ['a frame', open, frameOf('a', 12), 12],
      ['a value', open, { type: 'value', at: 12, json: '1' }, 12],
      ['a frame of a connection that settles for a fixed time', [fixed], frameOf('a', 12), 10],
      ['a value of a connection that settles for a fixed time', [fixed], { type: 'value', at: 12, json: '1' }, 10],
      ['a frame after that time', [fixed], frameOf('a', 103), 103],
      ['a value of a source without events', [], { type: 'value', at: 12, json: '1' }, 12],
      ['a gap', open, gapOf(4, 13), 13],
      ['the first `opened`', [requested(1)], opened(14), 14],
      ['the end of an open connection', open, lost, 15],
      ['another failure in an outage', [lost], disconnected(40, { endedAt: 40 }), 10],
      ['the end of the connection to a relay', open, linkLost, 10],
      ['a failed attempt', open, refused(25), 10],
    ])('returns the time up to which no frame is missing after %s', (_what, before, event, complete) => {
      expect(completeAfter(10, stateAfter(before), event)).toBe(complete);
    });
  });

  it('shows by a value only what time it is, because an operator may emit it late', () => {
    const settling = stateAfter([opened(3), disconnected(9), requested(10), issued(11), opening(20)]);
    expect(afterItem(settling, {}, 30)).toMatchObject({ completeFrom: undefined, outage: { from: 9 } });
    expect(afterItem(settling, {}, 520).gaps).toMatchObject([{ from: 9, to: 520 }]);
    const down = stateAfter([opened(3), disconnected(9)]);
    expect(afterItem(down, {}, 30)).toBe(down);
    expect(afterItem(noFeed, {}, 30)).toMatchObject({ open: { at: 30 }, completeFrom: 30 });
  });

  it('still settles after a gap with a number of frames: they were dropped on the way', () => {
    const settling = stateAfter([opening(3), { ...gapOf(5, 30), missed: 2 }]);
    expect([settling.completeFrom, settling.settling?.until, settling.gaps.length]).toEqual([undefined, 503, 1]);
    const reopened = stateAfter([opened(3), disconnected(9), opening(20), { ...gapOf(25, 30), missed: 2 }]);
    expect([reopened.outage?.from, reopened.gaps.length]).toEqual([9, 1]);
    expect(foldItem(reopened, 40).gaps).toMatchObject([{ from: 9, to: 40 }]);
  });

  it('keeps the first gap if frames are dropped meanwhile: a late subscriber lacks none of those', () => {
    const before = stateAfter([opened(3), disconnected(9), { ...opened(20), completeFrom: 120 }, gapOf(9, 30)]);
    const after = foldEvent(before, { ...gapOf(40, 50), missed: 2 }, 30);
    expect(after.totals.missed).toBe(2);
    expect(after.events).toEqual(before.events);
    expect(stateOf(after.events).outage?.from).toBe(30);
  });

  it('has the first gap while a connection settles for a fixed time: a late subscriber receives only the second one', () => {
    const fixed = { ...opened(20), completeFrom: 120 };
    const before = stateAfter([opened(3), disconnected(9), fixed]);
    for (const settling of [foldItem(before, 30), foldEvent(before, gapOf(9, 30), 20)]) {
      const [, , gap] = snapshotAt(settling, 40);
      expect(gap).toMatchObject({ type: 'gap', from: 9, to: 30 });
      expect(stateOf(settling.events).outage?.from).toBe(30);
      const settled = foldItem(settling, 130);
      expect(settled.gaps).toMatchObject([{ from: 30, to: 120 }]);
      expect(settled.events).toEqual([fixed]);
      const endedAgain = disconnected(50);
      expect(foldEvent(settling, endedAgain, 40).events).toEqual([endedAgain]);
    }
  });

  const outage = [disconnected(9), reconnecting(9, 5)];

  it('is complete for a new subscriber after the ms in which it joins, of which it may lack frames', () => {
    expect(snapshotOfNew(stateOf([opened(3, 2)]), 7)).toEqual([joined(7, 2)]);
    expect(snapshotOfNew(stateOf([opened(9, 2)]), 7)).toEqual([opened(9, 2)]);
  });

  it.each<[string, Snapshot, number, Snapshot]>([
    ['moves earlier events, but not the next attempt', outage, 11, [{ ...outage[0]!, at: 11 }, reconnecting(11, 3)]],
    ['leaves out a ticket that was issued earlier', [requested(9), issued(9)], 11, [requested(11)]],
    ['moves an `opened`', [opened(3, 2)], 7, [opened(7, 2)]],
  ])('snapshotNotBefore %s', (_what, snapshot, at, expected) => {
    expect(snapshotNotBefore(stateOf(snapshot), at)).toEqual(expected);
  });

  it('snapshotAfterGap puts the gap after `opened`, and before the events of an outage', () => {
    const gap = relayGap({ from: 5, to: 8, frames: 3 });
    // Others of the ms in which the gap ends may be missing.
    expect(snapshotAfterGap(stateOf([opened(3, 2)]), gap)).toEqual([joined(8, 2), gap]);
    expect(snapshotAfterGap(stateOf(outage), gap)).toEqual([gap, ...outage]);
    expect(snapshotAfterGap(stateOf([]), gap)).toEqual([gap]);
  });
});
