import { describe, expect, it } from '@jest/globals';
import { presentAgain, presentBehindGap, presentSince, relayGap } from '../../src/protocol/catch-up.js';
import { disconnected, opened, reconnecting } from '../operators/stream.js';

const outage = [disconnected(9), reconnecting(9, 5)];

describe('relayGap', () => {
  it('has the times, the code and the number of missed frames', () => {
    const gap = relayGap({ from: 5, to: 8, frames: 3 });
    expect(gap).toMatchObject({ type: 'gap', from: 5, to: 8, durationMs: 3, missed: 3 });
    expect(gap.failure).toMatchObject({ code: 'relay-behind', stage: 'stream', verdict: 'renew', endedAt: 5 });
  });
});

describe('presentSince', () => {
  it('lets the feed be open from then on', () => {
    expect(presentSince([opened(3, 2)], 7)).toEqual([opened(7, 2)]);
  });

  it('tells of an outage as it was', () => {
    expect(presentSince(outage, 20)).toEqual(outage);
    expect(presentSince([], 20)).toEqual([]);
  });
});

describe('presentAgain', () => {
  it('lets no event be earlier than what the client has received; the next attempt begins when it did', () => {
    expect(presentAgain(outage, 11)).toEqual([{ ...outage[0], at: 11 }, reconnecting(11, 3)]);
    expect(presentAgain([reconnecting(9, 5)], 20)).toEqual([reconnecting(20, 0)]);
    expect(presentAgain([opened(3, 2)], 7)).toEqual([opened(7, 2)]);
  });

  it('leaves later events unchanged', () => {
    expect(presentAgain(outage, 9)).toEqual(outage);
    expect(presentAgain([opened(9)], 7)).toEqual([opened(9)]);
  });
});

describe('presentBehindGap', () => {
  const missed = { from: 5, to: 8, frames: 3 };
  const gap = expect.objectContaining({ type: 'gap', from: 5, to: 8, missed: 3 });

  it('puts the gap right behind the opening', () => {
    expect(presentBehindGap([opened(3, 2)], missed)).toEqual([opened(8, 2), gap]);
  });

  it('puts it before an outage that goes on', () => {
    expect(presentBehindGap(outage, missed)).toEqual([gap, ...outage]);
    expect(presentBehindGap([], missed)).toEqual([gap]);
  });
});
