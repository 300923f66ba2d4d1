import { describe, expect, it } from '@jest/globals';
import { workerMeanings } from '../../src/protocol/failures/worker-meanings.js';
import { createGap, gapOfMissed } from '../../src/protocol/gap.js';
import { lost } from '../operators/stream.js';

describe('createGap', () => {
  it('has the length between the two times', () => {
    const failure = lost(5);
    expect(createGap(5, 8, failure)).toEqual({ type: 'gap', from: 5, to: 8, durationMs: 3, failure });
  });

  it('has no negative length when a clock was set back', () => {
    expect(createGap(8, 5, lost(8))).toMatchObject({ from: 5, to: 5, durationMs: 0 });
  });
});

describe('gapOfMissed', () => {
  it('has a failure of the meaning, at the begin of the gap', () => {
    const gap = gapOfMissed({ from: 5, to: 8, frames: 3 }, workerMeanings.tooSlow);
    expect(gap).toMatchObject({ type: 'gap', from: 5, to: 8, durationMs: 3, missed: 3 });
    expect(gap.failure).toMatchObject({ code: 'receiver-too-slow', stage: 'stream', verdict: 'renew', endedAt: 5 });
  });

  it('has no `missed` if the number of frames is unknown', () => {
    expect(gapOfMissed({ from: 5, to: 8, frames: undefined }, workerMeanings.tooSlow)).not.toHaveProperty('missed');
    expect(gapOfMissed({ from: 5, to: 8, frames: 0 }, workerMeanings.tooSlow)).toHaveProperty('missed', 0);
  });

  it('never ends before it begins, also when a clock was set back', () => {
    const gap = gapOfMissed({ from: 8, to: 5, frames: 1 }, workerMeanings.tooSlow);
    expect(gap).toMatchObject({ from: 5, to: 5, durationMs: 0, failure: { endedAt: 5 } });
  });
});
