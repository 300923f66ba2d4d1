import { describe, expect, it } from '@jest/globals';
import { Publisher } from '../../src/cluster/publisher.js';
import { createTradeFeedError, Frame, type LifecycleEvent } from '../../src/index.js';
import { clusterMeanings } from '../../src/protocol/failures/classify.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { gapOfMissed } from '../../src/protocol/feed-state.js';
import { type Place, startOf } from '../../src/protocol/place.js';

const leaseMs = 2_000;
const claimedAt = 500;

/** What the follower of this replica knows of the previous owner. */
const previous = {
  ...{ emitted: { gen: 1, owner: 'other' }, hasEnded: false, heardAt: 1_000 },
  line: { line: 'l', gen: 1, offset: 9, frames: 7, holes: 2, at: 900, complete: 800 } as Place | undefined,
};
const nobody = { emitted: { gen: 0, owner: '' }, hasEnded: false, heardAt: -Infinity, line: undefined };

const reportOf = (gen: number, phase: 'open' | 'opening' = 'open') => ({ gen, owner: 'self', phase, revision: 1 });

/** A publisher that has claimed a generation. */
const claimed = (gen = 2, isOffered = false): Publisher => {
  const publisher = new Publisher();
  publisher.report(reportOf(gen), claimedAt, isOffered);
  return publisher;
};

/** A publisher that has begun. */
const begun = (gen = 2): Publisher => {
  const publisher = claimed(gen);
  publisher.begin(previous, undefined, 1_000);
  return publisher;
};

const frameOf = (data: string | Buffer, receivedAt = 1_000): Frame =>
  new Frame('market', Buffer.from(data), false, receivedAt, 1);
const opened: LifecycleEvent = { type: 'opened', at: 1_000, feed: 'market', connection: 1 };
const gapAt = (at: number, frames?: number): LifecycleEvent =>
  gapOfMissed({ from: at, to: at, frames }, clusterMeanings.ownerChanged);
const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: 1_100 });
const disconnected: LifecycleEvent = { type: 'disconnected', at: 1_100, failure };

describe('a generation begins', () => {
  it.each<[string, Publisher, Partial<typeof previous>, number | undefined]>([
    ['at once if it is the first one', claimed(1), nobody, -Infinity],
    ['at once after the end of the previous one', claimed(), { hasEnded: true }, -Infinity],
    ['at once if its owner claims again', claimed(), { emitted: { gen: 1, owner: 'self' } }, -Infinity],
    ['when the previous owner is silent', claimed(), {}, 1_400],
    ['when the lease of a hand-over is over', claimed(2, true), {}, claimedAt + leaseMs],
    [
      'after the time in which a replica that just started hears the previous owner',
      claimed(),
      nobody,
      claimedAt + 400,
    ],
    ['only once', begun(), {}, undefined],
    ['never if an owner with the same number is followed', claimed(), { emitted: { gen: 2, owner: 'x' } }, undefined],
  ])('%s', (_, publisher, fields, at) => {
    expect(publisher.beginsAt({ ...previous, ...fields }, leaseMs)).toBe(at);
  });

  it.each([
    ['64 MiB of frames', 8, 8 * 1024 * 1024],
    ['10,000 frames', 10_000, 1],
  ])('before the end of the previous one if more than %s wait', (_, count, bytes) => {
    const publisher = claimed();
    const frame = frameOf(Buffer.alloc(bytes));
    for (let n = 0; n < count; n += 1) publisher.hold(frame);
    expect(publisher.beginsAt(previous, leaseMs)).toBe(1_400);
    publisher.hold(frame);
    expect(publisher.beginsAt(previous, leaseMs)).toBe(-Infinity);
  });

  it('with what has waited, in order, and holds nothing from then on', () => {
    const publisher = claimed();
    const held = [opened, frameOf('a'), disconnected];
    expect(held.map((each) => publisher.hold(each))).toEqual([true, true, true]);
    expect(publisher.begin(previous, undefined, 1_000)).toEqual(held);
    expect(publisher.hold(frameOf('b'))).toBe(false);
  });

  it('with what has waited since an earlier one that never began', () => {
    const publisher = claimed();
    publisher.hold(opened);
    publisher.report(reportOf(3), 0, false);
    publisher.hold(frameOf('a'));
    expect(publisher.begin(previous, undefined, 1_000)).toEqual([opened, frameOf('a')]);
    publisher.report(reportOf(4), 0, false);
    expect(publisher.begin(previous, undefined, 1_000)).toEqual([]);
  });

  it('where the line ends, and continues its numbers', () => {
    const publisher = begun();
    const place = { line: 'l', gen: 2, after: 1, began: 9, settling: 'auto' };
    expect(publisher.event(opened)).toMatchObject({
      ...place,
      offset: 9,
      frames: 7,
      holes: 2,
      count: 1,
      complete: 800,
    });
    expect(publisher.event(gapAt(1_000))).toMatchObject({ ...place, offset: 10, holes: 2, settling: undefined });
    expect(publisher.frame(frameOf('a'))).toMatchObject({ offset: 11, frames: 7, holes: 3, settling: undefined });
    expect(publisher.event(gapAt(1_000, 5))).toMatchObject({ offset: 12, frames: 8, holes: 3 });
    expect(publisher.beat(1_000)).toMatchObject({
      ...place,
      offset: 13,
      frames: 13,
      holes: 3,
      count: 0,
      settling: undefined,
    });
  });

  it.each<[string, Partial<typeof previous>, boolean]>([
    ['of another owner, with or without an end', {}, true],
    ['of its own after its end', { emitted: { gen: 1, owner: 'self' }, hasEnded: true }, true],
    // Another owner may have used the same numbers.
    ['of its own without an end', { emitted: { gen: 1, owner: 'self' } }, false],
    ['that it does not know', nobody, false],
  ])('in the same line unless it follows a generation %s', (_, fields, isSame) => {
    const publisher = claimed();
    publisher.begin({ ...previous, ...fields }, undefined, 1_000);
    const { line } = publisher.place;
    expect(line === 'l').toBe(isSame);
    expect(line).toMatch(/^(l|[\da-z]{12})$/);
  });
});

describe('an owner', () => {
  it('is not complete once its connection was replaced, although no event says so', () => {
    const publisher = begun();
    publisher.event(opened);
    publisher.event(gapAt(1_000));
    expect(publisher.beat(1_005)).toMatchObject({ settling: undefined, complete: 1_005 });
    publisher.report(reportOf(2, 'opening'), 0, false);
    expect(publisher.beat(1_006)).toMatchObject({ settling: 'auto', complete: 1_005 });
    publisher.report(reportOf(2), 0, false);
    expect(publisher.beat(1_007)).toMatchObject({ settling: 'auto', complete: 1_005 });
  });

  it('was complete in what has waited since before its connection was replaced', () => {
    const publisher = begun();
    publisher.accepts(opened);
    for (const event of [opened, gapAt(1_000)]) publisher.event(event);
    publisher.report(reportOf(3), 0, false);
    publisher.hold(frameOf('a'));
    publisher.report(reportOf(3, 'opening'), 0, false);
    publisher.begin({ ...previous, emitted: { gen: 2, owner: 'self' } }, undefined, 1_010);
    expect(publisher.frame(frameOf('a', 1_005))).toMatchObject({ settling: undefined, complete: 1_005 });
    expect(publisher.event({ ...opened, at: 1_200 })).toMatchObject({ settling: 'auto', complete: 1_005 });
    publisher.event(gapAt(1_200));
    expect(publisher.end(3, 1_205)).toMatchObject({ settling: 'auto', complete: 1_200 });
  });

  it('adds to its clock what continues the time of the stream, until that is right again', () => {
    const publisher = new Publisher();
    const line = startOf('l');
    const times = [undefined, 9_800, 70_000, 70_000, 10_300].map((time, n) => {
      publisher.report(reportOf(n + 1), 0, false);
      publisher.begin({ ...previous, line: { ...line, at: 0 } }, time, 10_000 + n);
      return publisher.beat(10_000 + n).at;
    });
    expect(times).toEqual([10_000, 10_001, 70_000, 70_001, 10_004]);
    publisher.report(reportOf(9), 0, false);
    publisher.begin({ ...previous, line: { ...line, at: 75_000 } }, undefined, 10_005);
    expect([publisher.beat(10_005).at, publisher.beat(10_000).at]).toEqual([75_000, 75_000]);
    const settling = { settling: 70_000 + 64_995, complete: 0 };
    expect(publisher.event({ ...opened, at: 10_006, completeFrom: 70_000 })).toMatchObject({ at: 75_001, ...settling });
    publisher.event(gapAt(70_000));
    publisher.count(publisher.timeOf(frameOf('a', 70_010)));
    expect(publisher.beat(70_005).at).toBe(135_005);
    const lost = { ...disconnected, at: 70_020, failure: copyFailure(failure, { endedAt: 70_015 }) };
    expect(publisher.event(lost)).toMatchObject({
      ...{ at: 135_015, complete: 135_010, event: { at: 135_015, failure: { endedAt: 135_010 } } },
    });
  });

  it('says in its beats why it has no connection, until it opens', () => {
    const publisher = claimed();
    publisher.accepts(disconnected);
    publisher.begin(previous, undefined, 1_000);
    const reasonIn = (phase: 'open' | 'opening', gen = 2): unknown => {
      publisher.report(reportOf(gen, phase), 0, false);
      const beat = publisher.beat(1_200);
      return beat.kind === 'beat' && beat.event?.type;
    };
    expect(reasonIn('opening')).toBe('disconnected');
    publisher.report(reportOf(3), 0, false);
    publisher.begin(previous, undefined, 1_000);
    expect(reasonIn('opening', 3)).toBeUndefined();
    publisher.accepts(disconnected);
    expect(reasonIn('opening', 3)).toBe('disconnected');
    expect(reasonIn('open', 3)).toBeUndefined();
    publisher.accepts(opened);
    expect(reasonIn('opening', 3)).toBeUndefined();
  });

  it('says in the beat before its opened only who it is: a replica that joins with it would open twice', () => {
    const publisher = begun();
    const lineAfter = (phase: 'open' | 'opening', event?: LifecycleEvent): string => {
      publisher.report(reportOf(2, phase), 0, false);
      if (event) publisher.event(event);
      return publisher.beat(1_200).line;
    };
    const isOpen = ['l', '', 'l', 'l'];
    expect([lineAfter('opening'), lineAfter('open'), lineAfter('open', opened), lineAfter('open')]).toEqual(isOpen);
    // Its connection was replaced.
    expect([lineAfter('opening'), lineAfter('open'), lineAfter('open', opened), lineAfter('open')]).toEqual(isOpen);
  });

  it('publishes only failures before its first connection', () => {
    const publisher = claimed();
    const asked: LifecycleEvent = { type: 'ticket-requested', at: 1, feed: 'market' };
    const waiting: LifecycleEvent = { type: 'reconnecting', at: 1, delayMs: 1, attempt: 1, verdict: 'backoff' };
    const areAccepted = () => [asked, waiting, disconnected].map((event) => publisher.accepts(event));
    expect(areAccepted()).toEqual([false, true, true]);
    publisher.accepts(opened);
    expect(areAccepted()).toEqual([true, true, true]);
    publisher.report(reportOf(3, 'opening'), 0, false);
    expect(areAccepted()).toEqual([false, true, true]);
  });

  it('is not complete at its end if its connection was replaced before it has begun', () => {
    const publisher = claimed();
    const held = [opened, gapAt(1_100)];
    for (const each of held) publisher.hold(each);
    publisher.report(reportOf(2, 'opening'), 1_200, false);
    publisher.begin(previous, undefined, 1_300);
    for (const each of held) publisher.event(each);
    expect(publisher.end(2, 1_300)).toMatchObject({ at: 1_300, complete: 1_100, settling: 'auto' });
  });

  it('ends the generation that it has begun, and is not complete at its end if it stood still before', () => {
    expect(claimed().end(2, 1_000)).toBeUndefined();
    const publisher = begun();
    publisher.event(opened);
    publisher.event(gapAt(1_000));
    expect(publisher.end(1, 1_000)).toBeUndefined();
    expect(publisher.end(2, 1_400)).toMatchObject({ kind: 'end', offset: 11, at: 1_400, settling: undefined });
    expect(publisher.end(2, 1_801)).toMatchObject({ at: 1_801, complete: 1_400, settling: 'auto' });
  });
});
