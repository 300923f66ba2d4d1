import { describe, expect, it } from '@jest/globals';
import {
  emptyReplayTally,
  replayProgressWords,
  replaySummary,
  replayTallied,
  tornWords,
} from '../../../src/cli/replay/replay-tally.js';
import { ReplayedFrame, type ReplayedGap, createTradeFeedError } from '../../../src/index.js';

const frame = (at: number, offset: number) => new ReplayedFrame('market', Buffer.from('abc'), false, at, 1, offset);
const gap: ReplayedGap = {
  type: 'gap',
  from: 1_000,
  to: 2_000,
  durationMs: 1_000,
  failure: createTradeFeedError({ stage: 'stream', closeCode: 1006 }),
  offset: 420,
};

describe('the tally of a replay', () => {
  it('counts events, and stores the position', () => {
    const tally = [frame(1_000, 200), gap, frame(3_000, 500)].reduce(replayTallied, {
      ...emptyReplayTally(100),
      totalBytes: 1_000,
    });
    expect(tally).toStrictEqual({
      frames: 2,
      bytes: 6,
      gaps: 1,
      from: 1_000,
      to: 3_000,
      offset: 500,
      totalBytes: 1_000,
      torn: undefined,
    });
    expect(replayProgressWords(tally)).toBe('50% · 2 frames · 1 gap · 1970-01-01T00:00:03.000Z');
    const recorded = '2 frames, 6 B; gaps: 1; recorded from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:03.000Z';
    expect(replaySummary(tally, { kind: 'interrupted' })).toBe(`${recorded}; continue with --offset 500`);
    expect(replaySummary(tally, { kind: 'output-closed' })).toBe(`${recorded}; the reader of stdout has exited`);
  });

  it('reports a torn last line, and nothing for a complete recording', () => {
    expect(tornWords(emptyReplayTally(0))).toBeUndefined();
    expect(tornWords({ torn: { at: 12_345, bytes: 1_234 } })).toBe(
      'The last line of the recording is torn: 1,234 bytes at byte 12345 were skipped, and its frame or gap is lost.',
    );
    expect(tornWords({ torn: { at: 0, bytes: 1 } })).toContain('1 byte at byte 0 were');
  });

  it('describes an empty recording, a recording that grows, and times that `Date` does not support', () => {
    expect(replayProgressWords(emptyReplayTally(0))).toBe('0% · 0 frames · no gaps');
    const grown = replayTallied({ ...emptyReplayTally(0), totalBytes: 10 }, frame(1e300, 20));
    expect(replayProgressWords(grown)).toBe('100% · 1 frame · no gaps · 1e+300');
  });
});
