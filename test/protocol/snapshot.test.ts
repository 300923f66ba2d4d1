import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom } from 'rxjs';
import { connectionStatus } from '../../src/operators/connection-status.js';
import type { Disconnected, LifecycleEvent, Stopped } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import {
  type LoggedEvent,
  nextSnapshot,
  openedIn,
  relayGap,
  type Snapshot,
  snapshotAfterGap,
  snapshotNotBefore,
  snapshotSince,
} from '../../src/protocol/snapshot.js';
import { disconnected, frameOf, gapOf, issued, opened, reconnecting, requested } from '../operators/stream.js';

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
    ['the feed waits', [opened(3), out, again], [out, again]],
    [
      'the feed tries again',
      [opened(3), out, again, requested(14), issued(15)],
      [out, again, requested(14), issued(15)],
    ],
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

  it('contains an `opened` for a frame without earlier events', () => {
    expect(after(frameOf('a', 7, 3), frameOf('b', 9, 3))).toEqual([opened(7, 3)]);
    expect(after(out, frameOf('a', 12, 2))).toEqual([opened(12, 2)]);
  });

  it('returns the same list if nothing changes', () => {
    const snapshot = after(opened(3));
    expect(nextSnapshot(snapshot, frameOf('a', 4))).toBe(snapshot);
    expect(nextSnapshot(snapshot, gapOf(1, 3))).toBe(snapshot);
  });

  it('gives a new subscriber the status of all others after any events, and has at most five events', async () => {
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

describe('openedIn', () => {
  it('returns `opened` if the feed is open', () => {
    expect(openedIn([opened(3)])).toEqual(opened(3));
    expect(openedIn([disconnected(9), reconnecting(9, 2)])).toBeUndefined();
    expect(openedIn([])).toBeUndefined();
  });
});

const outage = [disconnected(9), reconnecting(9, 5)];

describe('relayGap', () => {
  it('has the times, the code and the number of missed frames', () => {
    const gap = relayGap({ from: 5, to: 8, frames: 3 });
    expect(gap).toMatchObject({ type: 'gap', from: 5, to: 8, durationMs: 3, missed: 3 });
    expect(gap.failure).toMatchObject({ code: 'relay-behind', stage: 'stream', verdict: 'renew', endedAt: 5 });
  });
});

describe('snapshotSince', () => {
  it('opens the feed at the time of the subscriber', () => {
    expect(snapshotSince([opened(3, 2)], 7)).toEqual([opened(7, 2)]);
  });

  it('leaves an outage unchanged', () => {
    expect(snapshotSince(outage, 20)).toEqual(outage);
    expect(snapshotSince([], 20)).toEqual([]);
  });
});

describe('snapshotNotBefore', () => {
  it('moves earlier events to the time that the client has reached, but not the next attempt', () => {
    expect(snapshotNotBefore(outage, 11)).toEqual([{ ...outage[0], at: 11 }, reconnecting(11, 3)]);
    expect(snapshotNotBefore([reconnecting(9, 5)], 20)).toEqual([reconnecting(20, 0)]);
    expect(snapshotNotBefore([opened(3, 2)], 7)).toEqual([opened(7, 2)]);
  });

  it('leaves later events unchanged', () => {
    expect(snapshotNotBefore(outage, 9)).toEqual(outage);
    expect(snapshotNotBefore([opened(9)], 7)).toEqual([opened(9)]);
  });
});

describe('snapshotAfterGap', () => {
  const missed = { from: 5, to: 8, frames: 3 };
  const gap = expect.objectContaining({ type: 'gap', from: 5, to: 8, missed: 3 });

  it('puts the gap after `opened`', () => {
    expect(snapshotAfterGap([opened(3, 2)], missed)).toEqual([opened(8, 2), gap]);
  });

  it('puts the gap before the events of an outage', () => {
    expect(snapshotAfterGap(outage, missed)).toEqual([gap, ...outage]);
    expect(snapshotAfterGap([], missed)).toEqual([gap]);
  });
});
