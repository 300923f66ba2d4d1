import { describe, expect, it } from '@jest/globals';
import { parseEventId } from '../../src/protocol/event-id.js';
import {
  feedPositionOf,
  type FeedPosition,
  framesBetween,
  isAfterPosition,
  runOf,
} from '../../src/protocol/feed-position.js';

const at = (run: string, sequence = 5): FeedPosition => ({ run, sequence, frames: sequence });
const first = runOf(1, 1, 'host-1-aaaaaaaaaaaa');

describe('the name of a run', () => {
  it('has the store, the generation and the end of the owner id, without other characters', () => {
    expect(runOf(36, 35, 'host-1-0123456789ab')).toBe('c10-z-0123456789ab');
    expect(runOf(1, 2, 'a.b:c')).toBe('c1-2-a_b_c');
  });

  it('fits into the id of a message, also with the largest numbers', () => {
    const run = runOf(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 'x'.repeat(80));
    const id = parseEventId(`${run}.1.2.3`);
    expect(id && feedPositionOf(id)).toEqual({ run, sequence: 1, frames: 2 });
  });

  it('is not the id of a relay without a cluster', () => {
    expect(feedPositionOf({ epoch: 'relay', seq: 1, frames: 1, at: 0 })).toBeUndefined();
  });
});

describe('a position', () => {
  it.each<[string, FeedPosition, FeedPosition, boolean | undefined]>([
    ['later in the same run', at(first, 6), at(first, 5), true],
    ['the same', at(first, 5), at(first, 5), false],
    ['of a later generation', at(runOf(1, 2, 'b'), 0), at(first, 9), true],
    ['of an earlier generation', at(first, 9), at(runOf(1, 2, 'b'), 0), false],
    ['of a later store', at(runOf(2, 1, 'b'), 0), at(runOf(1, 9, 'b'), 9), true],
    ['of another owner with the same number', at(runOf(1, 1, 'b')), at(first), undefined],
    ['of no owner', at('other'), at(first), undefined],
    ['compared with a position of no owner', at(first), at('other'), undefined],
  ])('%s is compared', (_, one, other, expected) => {
    expect(isAfterPosition(one, other)).toBe(expected);
  });

  it('counts the frames to a later one of the same run', () => {
    expect(framesBetween(at(first, 2), at(first, 7))).toBe(5);
    expect(framesBetween(at(first, 7), at(first, 2))).toBe(0);
    expect(framesBetween(at(first, 2), at(runOf(1, 2, 'b'), 7))).toBeUndefined();
  });
});
