import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom } from 'rxjs';
import { connectionStatus } from '../../src/operators/connection-status.js';
import type { Disconnected, LifecycleEvent, Stopped } from '../../src/protocol/event.js';
import { tradeFeedError } from '../../src/protocol/failures/classify.js';
import { type LoggedEvent, nextPresent, openedIn, type Present } from '../../src/protocol/present.js';
import { disconnected, frameOf, gapOf, issued, opened, reconnecting, requested } from '../operators/stream.js';

const after = (...events: readonly LoggedEvent[]): Present => events.reduce(nextPresent, []);

const refused = (at: number): Disconnected => ({
  type: 'disconnected',
  at,
  failure: tradeFeedError({ stage: 'ticket', status: 503, endedAt: at }),
});

describe('nextPresent', () => {
  const begun = [requested(1), issued(2)];
  const out = disconnected(9);
  const again = reconnecting(9, 5);
  it.each<[string, readonly LoggedEvent[], Present]>([
    ['nothing has happened', [], []],
    ['it connects', [requested(1)], [requested(1)]],
    ['it has a ticket', begun, begun],
    ['it is open', [...begun, opened(3)], [opened(3)]],
    ['there were frames', [...begun, opened(3), frameOf('a', 4)], [opened(3)]],
    ['there was a gap', [opened(3), gapOf(1, 3)], [opened(3)]],
    ['it waits', [opened(3), out, again], [out, again]],
    ['it tries again', [opened(3), out, again, requested(14), issued(15)], [out, again, requested(14), issued(15)]],
    [
      'it has failed twice since it was open',
      [opened(3), out, again, requested(14), refused(15), reconnecting(15, 10, 2)],
      [out, refused(15), reconnecting(15, 10, 2)],
    ],
    [
      'it has failed three times since it was open',
      [opened(3), out, again, refused(15), reconnecting(15, 10, 2), requested(25), refused(26)],
      [out, refused(26)],
    ],
    ['it was never open', [...begun, refused(3), reconnecting(3, 5)], [refused(3), reconnecting(3, 5)]],
    [
      'it was never open, and has failed twice',
      [...begun, refused(3), reconnecting(3, 5), requested(8), refused(9), reconnecting(9, 5, 2)],
      [refused(3), refused(9), reconnecting(9, 5, 2)],
    ],
    ['it is open again', [opened(3), out, again, requested(14), opened(16, 2), gapOf(9, 16)], [opened(16, 2)]],
  ])('keeps what somebody must be told when %s', (_when, events, present) => {
    expect(after(...events)).toEqual(present);
  });

  it('takes a frame as a sign that the feed is open, when nothing else has told', () => {
    expect(after(frameOf('a', 7, 3), frameOf('b', 9, 3))).toEqual([opened(7, 3)]);
    expect(after(out, frameOf('a', 12, 2))).toEqual([opened(12, 2)]);
  });

  it('gives the same list while nothing changes', () => {
    const present = after(opened(3));
    expect(nextPresent(present, frameOf('a', 4))).toBe(present);
    expect(nextPresent(present, gapOf(1, 3))).toBe(present);
  });

  it('tells a newcomer the status that everyone else has, whatever has happened; and stays short', async () => {
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
        // The wait is told of in the same turn.
        if (seen.at(-1)?.type === 'disconnected') seen.pop();
        const present = after(...seen);
        expect(present.length).toBeLessThanOrEqual(5);
        const statusBy = (told: readonly LifecycleEvent[]) =>
          lastValueFrom(from(told).pipe(connectionStatus()), { defaultValue: undefined });
        expect(await statusBy(present)).toEqual(await statusBy(seen));
      }),
    );
  });
});

describe('openedIn', () => {
  it('gives the opening alone', () => {
    expect(openedIn([opened(3)])).toEqual(opened(3));
    expect(openedIn([disconnected(9), reconnecting(9, 2)])).toBeUndefined();
    expect(openedIn([])).toBeUndefined();
  });
});
