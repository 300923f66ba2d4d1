import { describe, expect, it } from '@jest/globals';
import { LogEntries, type Position } from '../../src/relay/log-entries.js';
import { range } from './support.js';

const position = (seq: number): Position => ({
  seq,
  frames: seq,
  at: seq,
  snapshot: [],
  watermark: seq,
  shared: undefined,
});
const entriesOf = (lines: readonly string[], bounds: { capacity?: number; capacityBytes?: number } = {}) => {
  const entries = new LogEntries({ capacity: 100, capacityBytes: 1e6, ...bounds }, position(0));
  for (const [index, line] of lines.entries()) entries.add(line, position(index + 1));
  return entries;
};

describe('LogEntries', () => {
  it('starts with one position', () => {
    const entries = entriesOf([]);
    expect([entries.oldest, entries.newest, entries.size, entries.bytes]).toEqual([position(0), position(0), 0, 0]);
    expect(range(-1, 1).map((seq) => entries.positionAt(seq)?.seq)).toEqual([undefined, 0, undefined]);
  });

  it.each([
    ['entries', { capacity: 2 }],
    ['bytes', { capacityBytes: 4 }],
  ])('removes the oldest entries beyond the limit of %s, and keeps the position before the rest', (_what, bounds) => {
    const entries = entriesOf(['aa', 'bb', 'cc', 'dd'], bounds);
    expect([entries.size, entries.bytes, entries.oldest]).toEqual([2, 4, position(2)]);
    expect([entries.after(2).line, entries.after(3).line]).toEqual(['cc', 'dd']);
    expect(range(1, 5).map((seq) => entries.positionAt(seq)?.seq)).toEqual([undefined, 2, 3, 4, undefined]);
  });

  it.each([
    [0, 4],
    [1, 4],
    [2, 3],
    [5, 3],
    [6, 2],
    [100, 1],
  ])('returns the oldest position before at most %d bytes of UTF-8: %d', (bytes, seq) => {
    // The first line is removed. The others have 2, 4 and 2 bytes.
    expect(entriesOf(['xx', 'aa', 'éé', 'bb'], { capacity: 3 }).positionBeforeLast(bytes).seq).toBe(seq);
  });

  it('releases the line of a removed entry', () => {
    expect(entriesOf(['aa', 'bb'], { capacity: 1 }).oldest).not.toHaveProperty('line');
  });
});
