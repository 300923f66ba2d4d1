import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Conflated } from '../../../src/operators/items/conflated.js';
import { Decoded } from '../../../src/operators/items/decoded.js';
import { FeedTally } from '../../../src/operators/items/feed-tally.js';
import { Frame } from '../../../src/protocol/frame.js';
import { binaryFrame, disconnected, frameOf, gapOf, issued, opened, reconnecting, requested } from '../stream.js';

/** Creates a tally that has counted the events. */
const tallyOf = (...events: readonly unknown[]): FeedTally => {
  const tally = new FeedTally(1_000);
  for (const event of events) tally.count(event);
  return tally;
};

const refused = { stage: 'ticket', status: 503, closeCode: undefined } as const;

describe('FeedTally', () => {
  it('returns all figures, and zero for those without a count', () => {
    expect(new FeedTally(1_000).read(1_500)).toStrictEqual({
      type: 'stats',
      from: 1_000,
      to: 1_500,
      frames: 0,
      bytes: 0,
      framesPerSecond: 0,
      bytesPerSecond: 0,
      totalFrames: 0,
      totalBytes: 0,
      gaps: 0,
      lostMs: 0,
      reconnects: {},
      dropped: 0,
    });
  });

  it('counts frames of any size with their bytes, and values created from a frame with the bytes of the frame', () => {
    const value = new Decoded('a value much longer than its payload', frameOf('1234567'));
    const counted = tallyOf(frameOf('ü'), frameOf(''), binaryFrame(1, 2, 3), value, new Conflated('key', value, 9));
    expect(counted.read(2_000)).toMatchObject({ frames: 5, bytes: 2 + 0 + 3 + 7 + 7 });
  });

  it('counts frames that a relay skipped, if it reports their number', () => {
    const tally = tallyOf({ ...gapOf(1, 2), missed: 7 }, gapOf(3, 4), { ...gapOf(5, 6), missed: 0 });
    tally.drop(2);
    tally.count({ ...gapOf(7, 8), missed: 1 });
    expect(tally.read(2_000)).toMatchObject({ dropped: 10, gaps: 4, lostMs: 4 });
  });

  it('counts the frames of a relay with their bytes', () => {
    const relayed = new Frame('raw', new Uint8Array(5), true, 1, 1);
    expect(tallyOf(relayed, new Decoded(1, relayed)).read(2_000)).toMatchObject({ frames: 2, bytes: 10 });
  });

  it('counts an empty frame, which has no bytes', () => {
    expect(tallyOf(frameOf(''), frameOf('')).read(2_000)).toMatchObject({
      frames: 2,
      bytes: 0,
      framesPerSecond: 2,
      bytesPerSecond: 0,
      totalFrames: 2,
    });
  });

  it('counts items of any kind; an item without bytes adds only to the number', () => {
    const items = ['ab', new Uint8Array(5), 7, null, undefined, { type: 'trade' }];
    expect(tallyOf(...items).read(2_000)).toMatchObject({ frames: 6, bytes: 4 + 5 });
  });

  it('does not count lifecycle events as frames', () => {
    const events = [requested(1), issued(2), opened(3), disconnected(4), reconnecting(5, 1), gapOf(4, 6)];
    expect(tallyOf(...events).read(2_000)).toMatchObject({ frames: 0, bytes: 0, totalFrames: 0, totalBytes: 0 });
  });

  it('has separate figures for each period, and continues the totals', () => {
    const tally = tallyOf(frameOf('12345'), frameOf('1'));
    expect(tally.read(1_500)).toMatchObject({
      ...{ from: 1_000, to: 1_500, frames: 2, bytes: 6, framesPerSecond: 4, bytesPerSecond: 12 },
      ...{ totalFrames: 2, totalBytes: 6 },
    });
    tally.count(frameOf('123'));
    expect(tally.read(3_500)).toMatchObject({
      ...{ from: 1_500, to: 3_500, frames: 1, bytes: 3, framesPerSecond: 0.5, bytesPerSecond: 1.5 },
      ...{ totalFrames: 3, totalBytes: 9 },
    });
  });

  it.each([
    ['without length', 1_000],
    ['whose end was set back', 400],
  ])('has a rate of 0 for a period %s', (_what, to) => {
    expect(tallyOf(frameOf('12')).read(to)).toMatchObject({
      ...{ from: 1_000, to, frames: 1, bytes: 2, framesPerSecond: 0, bytesPerSecond: 0 },
    });
  });

  it('counts an outage from its beginning on, and once', () => {
    const tally = tallyOf(opened(1_000), { ...disconnected(1_200), at: 1_250 });
    expect(tally.read(1_500)).toMatchObject({ gaps: 1, lostMs: 300 });
    tally.count(disconnected(1_600, refused));
    expect(tally.read(2_000)).toMatchObject({ gaps: 1, lostMs: 800 });
    tally.count(opened(2_200, 2));
    tally.count(gapOf(1_200, 2_200));
    expect(tally.read(2_500)).toMatchObject({ gaps: 1, lostMs: 1_000 });
    tally.count(disconnected(2_600));
    expect(tally.read(2_700)).toMatchObject({ gaps: 2, lostMs: 1_100 });
    tally.count(gapOf(2_600, 2_850));
    expect(tally.read(3_000)).toMatchObject({ gaps: 2, lostMs: 1_250 });
  });

  it('does not reduce the lost time for an outage that begins in the future, by a clock that was set back', () => {
    expect(tallyOf(gapOf(100, 200), disconnected(5_000)).read(2_000)).toMatchObject({ gaps: 2, lostMs: 100 });
  });

  it('counts a gap whose beginning was before the subscription', () => {
    expect(tallyOf(gapOf(400, 1_100)).read(2_000)).toMatchObject({ gaps: 1, lostMs: 700 });
  });

  it('counts reconnects by the failure before, also if no connection was open', () => {
    const tally = tallyOf(disconnected(1), disconnected(2, refused), disconnected(3, { closeCode: 1001 }));
    const before = tally.read(2_000);
    tally.count(disconnected(4));
    expect(before.reconnects).toEqual({
      'connection-lost': 1,
      'credential-service-unavailable': 1,
      'server-shutdown': 1,
    });
    expect(tally.read(3_000).reconnects).toEqual({ ...before.reconnects, 'connection-lost': 2 });
  });

  it('counts no reconnect for a failure that stops the feed', () => {
    const tally = tallyOf(disconnected(1), disconnected(2, { closeCode: 4001 }));
    expect(tally.read(2_000).reconnects).toEqual({ 'connection-lost': 1 });
  });

  it('adds up the dropped values, over all periods', () => {
    const tally = new FeedTally(0);
    tally.drop(2);
    tally.drop(3);
    expect(tally.read(1).dropped).toBe(5);
    tally.drop(1);
    expect([tally.read(2).dropped, tally.read(3).dropped]).toEqual([6, 6]);
  });

  it('counts each frame in exactly one period, for any length of the periods', () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.string({ maxLength: 40 }) },
      { weight: 1, arbitrary: fc.constant('read' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const tally = new FeedTally(0);
        const [sent, emitted] = [
          { frames: 0, bytes: 0 },
          { frames: 0, bytes: 0 },
        ];
        let now = 0;
        for (const each of [...steps, 'read']) {
          if (each !== 'read') {
            const frame = frameOf(each);
            tally.count(now % 2 === 0 ? frame : new Decoded(each, frame));
            sent.frames += 1;
            sent.bytes += frame.data.length;
            continue;
          }
          now += 1;
          const { frames, bytes, totalFrames, totalBytes } = tally.read(now);
          emitted.frames += frames;
          emitted.bytes += bytes;
          expect(emitted).toEqual(sent);
          expect({ frames: totalFrames, bytes: totalBytes }).toEqual(sent);
        }
      }),
    );
  });
});
