import { describe, expect, it } from '@jest/globals';
import { map, noop, take } from 'rxjs';
import { frameLine, gapLine } from '../../../../src/operators/node/recording/recording-line.js';
import type { RecordedLines } from '../../../../src/operators/node/recording/recording-reader.js';
import { replayRounds } from '../../../../src/operators/node/recording/replay-rounds.js';
import { marbles } from '../../stream.js';
import { frameAt, gapBetween } from '../support/recorded.js';

const failure = new Error('of the disk');

/** A read: when it emits its chunk (`p`) after the subscription, the times in the chunk, and when it is subscribed to. */
interface Read {
  readonly gives: string;
  /** The times of frames; a negative time is the end of a gap. Without times, the source is at its end. */
  readonly times?: readonly number[];
  readonly sub: string | readonly string[];
}

/** Runs a replay in which each read is another source. Returns the number of reads. */
const check = (reads: readonly Read[], expected: string, { unsub = '', speed = 1, count = Infinity } = {}): number => {
  let begun = 0;
  marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
    const sources = reads.map(({ gives, times }) => cold(gives, { p: times && linesOf(times) }, failure));
    const source = { totalBytes: 0, tornBytes: 0, read: () => sources[begun++]! };
    const replayed$ = replayRounds(source, { speed, offset: 0, onProgress: noop, scheduler }).pipe(
      map(({ type }) => (type === 'gap' ? 'g' : 'f')),
      take(count),
    );
    expectObservable(replayed$, unsub).toBe(expected, undefined, failure);
    for (const [which, { sub }] of reads.entries())
      expectSubscriptions(sources[which]!.subscriptions).toBe(typeof sub === 'string' ? sub : [...sub]);
  });
  return begun;
};

const linesOf = (times: readonly number[]): RecordedLines => {
  const text = times.map((ms) => (ms < 0 ? gapLine(gapBetween(0, -ms)) : frameLine(frameAt(ms)))).join('');
  return { bytes: Buffer.from(text), path: 'f', fileOffset: 0, offset: 0 };
};

describe('the reads of a replay', () => {
  it('follow each other at the end of each chunk, not during a wait; the last one returns undefined', () => {
    const expected = '  --f--f-(ff)--|';
    check(
      [
        { sub: '    ^-!', gives: '--p', times: [100, 103] },
        { sub: '    -----^!', gives: '-p', times: [105, 105] },
        { sub: '    -------^-----!', gives: '------(p|)' },
      ],
      expected,
    );
  });

  it('do not delay events that are due during a read', () => {
    // 104 was due at 4 and 109 at 9: both are emitted when their chunk arrives, at 10. 118 is due at 18.
    const expected = '  f-f-------(fg)----f-';
    check(
      [
        { sub: '    (^!)', gives: 'p', times: [100, 102] },
        { sub: '    --^-------!', gives: '--------p', times: [104, -109, 118] },
        { sub: '    ------------------^-!', gives: '-' },
      ],
      expected,
      { unsub: '  ^-------------------!' },
    );
  });

  it('do not begin after the subscriber unsubscribes during a wait', () => {
    const begun = check(
      [
        { sub: '    ^-!', gives: '--p', times: [100, 200] },
        { sub: [], gives: 'p', times: [201] },
      ],
      '            --f-----',
      { unsub: '   ^-----!' },
    );
    expect(begun).toBe(1);
  });
});
