import { describe, expect, it } from '@jest/globals';
import {
  afterRecord,
  type Between,
  between,
  formatPlace,
  type Head,
  isAfter,
  missedBetween,
  newLine,
  noLine,
  parsePlace,
  type Place,
  startOf,
} from '../../src/protocol/place.js';
import { cases } from '../support/cases.js';
import { runLine } from './random-line.js';

const at = (gen: number, offset: number, more: Partial<Place> = {}): Place => ({
  ...startOf('a', offset),
  gen,
  ...more,
});
const of = (gen: number, offset: number, count: number, after = 1, began = 0): Head => ({
  ...at(gen, offset),
  ...{ after, began, count },
});
const next = (skip: number, surplus = 0): Between => ({ type: 'next', skip, surplus });
const hole = (from: number, surplus = 0): Between => ({ type: 'hole', from, surplus });
const [first, other, old]: readonly Between[] = [{ type: 'first' }, { type: 'other' }, { type: 'old' }];

describe('between', () => {
  it.each<[name: string, have: Place | undefined, next: Head, result: Between | undefined]>([
    ['nothing and a message', undefined, of(2, 10, 3), first],
    ['a place and a message of another line', { ...at(2, 10), line: 'b' }, of(2, 10, 3), other],
    ['a place in no line and a message', { ...at(2, 10), line: noLine }, of(2, 10, 3), other],
    ['a place and the next message of a replaced owner', at(3, 10), of(2, 10, 3), old],
    ['a place and a message behind it', at(2, 10), of(2, 5, 3), old],
    ['a place and a message that ends there', at(2, 10), of(2, 7, 3), old],
    ['a place and a message whose last record is new', at(2, 10), of(2, 8, 3), next(2)],
    ['a place and the message that begins there', at(2, 10), of(2, 10, 3), next(0)],
    ['a place and a message that begins later', at(2, 10), of(2, 11, 3), hole(10)],
    ['a place and a message without records behind it', at(2, 10), of(2, 9, 0), old],
    ['a place and a message without records there', at(2, 10), of(2, 10, 0), next(0)],
    ['a place and a message without records ahead', at(2, 10), of(2, 11, 0), hole(10)],
    ['a place and an owner that begins there', at(2, 10), of(3, 10, 3, 2, 10), next(0)],
    ['a place and an owner that began there and is ahead', at(2, 10), of(3, 11, 3, 2, 10), hole(10)],
    ['a place and an owner that begins later', at(2, 10), of(3, 12, 3, 2, 12), hole(10)],
    ['a place and an owner that begins earlier', at(2, 10), of(3, 8, 3, 2, 8), next(0, 2)],
    ['a place and an owner that began earlier and is ahead of that', at(2, 10), of(3, 9, 3, 2, 8), hole(8, 2)],
    ['a place and an owner that began earlier and is ahead', at(2, 10), of(3, 12, 3, 2, 8), hole(8, 2)],
    ['a place and an owner that begins earlier, without records', at(2, 10), of(3, 8, 0, 2, 8), next(0, 2)],
    ['a place and an owner without records ahead', at(2, 10), of(3, 12, 0, 2, 12), hole(10)],
    ['a place and the second new owner, which is ahead', at(2, 10), of(4, 11, 3, 3, 8), hole(10)],
    ['a place and the second new owner, which began later', at(2, 10), of(4, 12, 3, 3, 12), hole(10)],
    ['a place and the second new owner, which begins there', at(2, 10), of(4, 10, 3, 3, 10), hole(10)],
    ['a place and the second new owner, which began earlier and is there', at(2, 10), of(4, 10, 3, 3, 9), other],
    ['a place and the second new owner, which began earlier', at(2, 10), of(4, 9, 3, 3, 9), other],
    ['a place of an owner that stored nothing and the next owner, ahead', at(3, 10), of(4, 11, 3, 2, 8), hole(8, 2)],
    ['a place of an owner that stored nothing and the next owner', at(3, 10), of(4, 8, 3, 2, 8), next(0, 2)],
  ])('%s', (_name, have, message, result) => {
    expect(between(have, message)).toEqual(result);
  });
});

describe('missedBetween', () => {
  const have = at(2, 10, { frames: 7, holes: 1 });
  const message = { ...of(2, 15, 1), frames: 11, holes: 1 };
  it.each<[name: string, have: Place, next: Place | Head, missed: number | undefined]>([
    ['counts the frames between two places', have, message, 4],
    ['counts none if only other records are between', have, { ...message, frames: 7 }, 0],
    ['has no number after a gap without one', have, { ...message, holes: 2 }, undefined],
    ['has no number for a place from an id', { ...have, holes: NaN }, { ...message, holes: NaN }, undefined],
    ['has no number if frames are unknown', { ...have, frames: NaN }, message, undefined],
    ['has no number for a place before the first one', have, { ...message, frames: 6 }, undefined],
    ['has no number for another line', have, { ...message, line: 'b' }, undefined],
    ['counts from one owner to the next', have, { ...message, gen: 3, after: 2, began: 10 }, 4],
    ['has no number if the line ended before', have, { ...message, gen: 3, after: 2, began: 9 }, undefined],
    ['has no number if an owner is missing', have, { ...message, gen: 4, after: 3, began: 10 }, undefined],
    ['counts between places that are both in the line', have, { ...have, gen: 4, offset: 15, frames: 9 }, 2],
  ])('%s', (_name, one, message, missed) => {
    expect(missedBetween(one, message)).toBe(missed);
  });
});

describe('a reader', () => {
  it('emits or misses each record of a random line once, in order, and counts what it misses', () => {
    const reached = new Set<string>();
    for (let seed = 1; seed <= cases(1_000); seed += 1) runLine(seed, reached);
    expect([...reached].sort()).toEqual([
      ...['first', 'gap', 'gap with a number', 'hole', 'next', 'old', 'other', 'surplus', 'two owners'],
    ]);
  });
});

describe('isAfter', () => {
  it('compares the generations first, then the offsets', () => {
    expect([isAfter(at(2, 11), at(2, 10)), isAfter(at(2, 10), at(2, 10)), isAfter(at(2, 9), at(2, 10))]).toEqual([
      ...[true, false, false],
    ]);
    expect([isAfter(at(3, 1), at(2, 10)), isAfter(at(2, 10), at(3, 1))]).toEqual([true, false]);
    expect(isAfter(at(2, 11, { line: 'b' }), at(2, 10))).toBeUndefined();
    expect(isAfter(at(2, 11, { line: noLine }), at(2, 10, { line: noLine }))).toBeUndefined();
  });
});

describe('afterRecord', () => {
  it('counts frames and gaps; other records only advance the offset and the time', () => {
    const start = startOf('a', 5, 100);
    expect(start).toEqual({ line: 'a', gen: 0, offset: 5, frames: 0, holes: 0, at: 100, complete: 100 });
    const then = { ...start, offset: 6, at: 200 };
    expect(afterRecord(start, { type: 'opened', missed: 3 }, 200)).toEqual(then);
    expect(afterRecord(start, { type: 'frame' }, 200)).toEqual({ ...then, frames: 1, complete: 200 });
    expect(afterRecord(start, { type: 'gap' }, 200)).toEqual({ ...then, holes: 1, complete: 200 });
    expect(afterRecord(start, { type: 'gap', missed: 3 }, 200)).toEqual({ ...then, frames: 3, complete: 200 });
    expect(afterRecord(start, { type: 'gap', missed: 0 }, 200)).toEqual({ ...then, complete: 200 });
  });
});

describe('parsePlace', () => {
  const place: Place = { line: 'k3x', gen: 37, offset: 12, frames: 90, holes: NaN, at: 1_000, complete: 900 };

  it.each<[name: string, place: Place, id: string]>([
    ['a place', place, 'lk3x-11.12.90.1000.900'],
    ['a place that is complete', { ...place, complete: 1_000 }, 'lk3x-11.12.90.1000'],
    ['a place of a client that is in no line', { ...place, line: noLine }, 'l-11.12.90.1000.900'],
    ['a line whose name has hyphens', { ...place, line: 'a-b_1.2'.slice(0, 5) }, 'la-b_1-11.12.90.1000.900'],
  ])('reads what formatPlace writes: %s', (_name, written, id) => {
    expect(formatPlace(written)).toBe(id);
    expect(parsePlace(id)).toEqual(written);
    expect(parsePlace(`${id}-0123abcd`)).toEqual(written);
  });

  it('never reads more than there was: the time is rounded up, and the complete time down', () => {
    expect(formatPlace({ ...place, at: 1_000.2, complete: 999.9 })).toBe('lk3x-11.12.90.1001.999');
    expect(formatPlace({ ...place, at: -5, complete: -6 })).toBe('lk3x-11.12.90.0');
    expect(formatPlace({ ...place, at: 1_000, complete: 2_000 })).toBe('lk3x-11.12.90.1000');
    expect(parsePlace('lk3x-11.12.9.1000.2000')?.complete).toBe(1_000);
  });

  it('reads the name of a new line', () => {
    const lines = Array.from({ length: 50 }, newLine);
    expect(new Set(lines).size).toBe(50);
    for (const line of lines) {
      expect(line).toMatch(/^[\da-z]{12}$/);
      expect(parsePlace(formatPlace({ ...place, line }))).toEqual({ ...place, line });
    }
  });

  it.each([
    ...[undefined, '', 'text', '5', 'k3x-11.12.9.1000', 'lk3x.12.9.1000', 'lk3x-11.12.9', 'lk3x-11.12.9.1000.900.1'],
    ...['lk3x-11.12.9.1000-0123abc', 'lk3x-11.12.9.1000-0123ABCD', 'lk3x-11.-1.9.1000', 'lk3x-11.1e3.9.1000'],
    ...['lk3x-A.12.9.1000', 'lk 3x-11.12.9.1000', ` lk3x-11.12.9.1000`, 'lk3x-11.12.9.1000\n', 'xlk3x-11.12.9.1000'],
    ...[`l${'x'.repeat(29)}-11.12.9.1000`, `lk3x-${'1'.repeat(12)}.1.1.1`, `lk3x-1.${'1'.repeat(17)}.1.1`],
  ])('returns undefined for other text: %p', (text) => {
    expect(parsePlace(text)).toBeUndefined();
  });
});
