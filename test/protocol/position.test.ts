import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  LogPositions,
  type FeedPosition,
  feedPositionOf,
  formatEventId,
  framesBetween,
  isAfterPosition,
  parseEventId,
  runOf,
} from '../../src/protocol/position.js';

describe('event id', () => {
  describe('formatEventId', () => {
    it('returns text that `parseEventId` reads back', () => {
      const count = fc.integer({ min: 0, max: 10 ** 15 });
      fc.assert(
        fc.property(fc.stringMatching(/^[\w-]{8}$/), count, count, count, count, (epoch, seq, frames, at, other) => {
          const complete = Math.min(at, other);
          const text = formatEventId(epoch, { seq, frames, at, complete });
          expect(parseEventId(text)).toEqual({ epoch, seq, frames, at, complete });
          // It's written as is into a header and into a field of Server-Sent Events.
          expect(text).toMatch(/^[\x21-\x7e]+$/);
        }),
      );
    });

    it('rounds `at` up and `complete` down, to at least 0, and omits `complete` if it is not earlier', () => {
      expect(formatEventId('e', { seq: 1, frames: 0, at: 1.75, complete: 1.75 })).toBe('e.1.0.2.1');
      expect(formatEventId('e', { seq: 1, frames: 0, at: 9, complete: 9 })).toBe('e.1.0.9');
      expect(formatEventId('e', { seq: 1, frames: 0, at: -5, complete: -6 })).toBe('e.1.0.0');
    });
  });

  describe('parseEventId', () => {
    it('reads ids of earlier versions, with one time, and limits a forged `complete` to `at`', () => {
      for (const id of ['e.3.2.9', 'e.3.2.9.10'])
        expect(parseEventId(id)).toEqual({ epoch: 'e', seq: 3, frames: 2, at: 9, complete: 9 });
    });

    it.each([
      ...[undefined, '', '1', 'e.1.1', 'e.1.1.1.1.1', 'e.1.1.1.', 'e.1.1.1.-1', '.1.1.1', 'e.-1.1.1', 'e.1.-1.1'],
      ...['e.1.1.-1', 'e.1e3.1.1', 'e.0x1.1.1', 'e.1.1.1 ', ' e.1.1.1', 'e.1.1.1\n', 'e.1.1.1\r\nx: y', 'é.1.1.1'],
      ...['e.1.1.1, e.2.2.2', '__proto__', 'e.NaN.1.1', 'e.Infinity.1.1', 'e.١.1.1', 'e.99999999999999999.1.1'],
      `${'e'.repeat(41)}.1.1.1`,
    ])('refuses %j', (text) => {
      expect(parseEventId(text)).toBeUndefined();
    });

    it('never throws, and returns only finite numbers', () => {
      const nearly = fc.stringMatching(/^[\w.-]{0,60}$/);
      fc.assert(
        fc.property(fc.oneof(fc.string(), nearly), (text) => {
          const id = parseEventId(text);
          if (id === undefined) return;
          for (const number of [id.seq, id.frames, id.at, id.complete]) expect(Number.isFinite(number)).toBe(true);
        }),
      );
    });
  });
});

describe('feed position', () => {
  const at = (run: string, sequence = 5): FeedPosition => ({ run, sequence, frames: sequence });
  const first = runOf(1, 1, 'host-1-aaaaaaaaaaaa');

  describe('the name of a run', () => {
    it('consists of the store, the generation and the end of the owner id, in safe characters', () => {
      expect(runOf(36, 35, 'host-1-0123456789ab')).toBe('c10-z-0123456789ab');
      expect(runOf(1, 2, 'a.b:c')).toBe('c1-2-a_b_c');
    });

    it('fits into the id of a message, even with the largest numbers', () => {
      const run = runOf(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 'x'.repeat(80));
      const id = parseEventId(`${run}.1.2.3`);
      expect(id && feedPositionOf(id)).toEqual({ run, sequence: 1, frames: 2 });
    });

    it("can't be mistaken for the id of a relay without a cluster", () => {
      expect(feedPositionOf({ epoch: 'relay', seq: 1, frames: 1, at: 0, complete: 0 })).toBeUndefined();
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

    it('counts the frames up to a later one in the same run', () => {
      expect(framesBetween(at(first, 2), at(first, 7))).toBe(5);
      expect(framesBetween(at(first, 7), at(first, 2))).toBe(0);
      expect(framesBetween(at(first, 2), at(runOf(1, 2, 'b'), 7))).toBeUndefined();
    });
  });
});

it('LogPositions follows the records of a log, and counts the frames of a gap that its reader found', () => {
  const positions = new LogPositions();
  const after = (type: string, position?: { log: string; offset: number; frames?: number }, missed?: number) => {
    positions.receive({ type, position, ...(missed !== undefined && { missed }) });
    return positions.position;
  };
  const run = 'c0-0-a';
  expect(after('watermark')).toBeUndefined();
  expect(after('frame', { log: '', offset: 1 })).toBeUndefined();
  expect(after('frame', { log: 'a', offset: 1 })).toEqual({ run, sequence: 1, frames: 0 });
  expect(after('frame', { log: 'a', offset: 2, frames: 5 })).toEqual({ run, sequence: 2, frames: 5 });
  expect(after('gap', { log: 'a', offset: 2 }, 3)).toEqual({ run, sequence: 3, frames: 8 });
  expect(after('gap', { log: 'a', offset: 3 })).toEqual({ run, sequence: 4, frames: 8 });
  expect(after('frame', { log: 'a', offset: 9 })).toEqual({ run, sequence: 9, frames: 8 });
});
