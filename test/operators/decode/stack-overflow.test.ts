import { describe, expect, it } from '@jest/globals';
import { type Either, left, right } from 'fp-ts/lib/Either.js';
import type { DecodeIssue } from '../../../src/operators/decode/decode-failure.js';
import { isStackOverflow, refusingOverflows } from '../../../src/operators/decode/stack-overflow.js';

const overflow = (): never => {
  const endless = (): number => endless() + 1;
  throw new Error(String(endless()));
};
const throwing = (error: unknown) => (): never => {
  throw error;
};

const nested = (levels: number): unknown => {
  let document: unknown = null;
  for (let n = 0; n < levels; n += 1) document = n % 2 ? [document] : { a: document };
  return document;
};
const wide = (values: number): unknown => ({ all: Array.from({ length: values - 2 }, () => 0) });

const outcome = (result: Either<() => readonly DecodeIssue[], unknown>): unknown =>
  result._tag === 'Right' ? result.right : result.left();

const deep = [{ path: '', message: 'nested more than 100 levels deep: the codec ran out of stack' }];
const large = [{ path: '', message: 'more than 10000 values: the codec ran out of stack' }];

describe('refusingOverflows', () => {
  it('returns the result of the check', () => {
    const issues = [{ path: '/a', message: 'no' }];
    expect(refusingOverflows(() => right(1))(nested(200))).toEqual(right(1));
    expect(outcome(refusingOverflows(() => left(() => issues))(nested(200)))).toBe(issues);
  });

  it.each([
    ['101 levels', nested(101), deep],
    ['a million levels', nested(1_000_000), deep],
    ['101 levels and many values', [nested(100), wide(20_000)], deep],
    ['10,001 values', wide(10_001), large],
  ])('refuses a document of %s that makes the check, or its issues, run out of stack', (_name, document, issues) => {
    expect(outcome(refusingOverflows(overflow)(document))).toEqual(issues);
    expect(outcome(refusingOverflows(() => left(overflow))(document))).toEqual(issues);
  });

  it.each([
    ['100 levels', nested(100)],
    ['10,000 values', wide(10_000)],
    ['a text', 'a'.repeat(100_000)],
    ['null', null],
  ])('throws the stack overflow of a function for a document of %s', (_name, document) => {
    expect(() => refusingOverflows(overflow)(document)).toThrow(RangeError);
    expect(() => outcome(refusingOverflows(() => left(overflow))(document))).toThrow(RangeError);
  });

  it.each([
    new RangeError('Invalid array length'),
    new Error('Maximum call stack size exceeded'),
    new TypeError('a bug'),
    'a text',
    undefined,
    null,
  ])('throws any other error unchanged, for any document: %p', (error) => {
    for (const document of [nested(1_000), wide(100_000), 1])
      for (const check of [throwing(error), () => left(throwing(error))]) {
        const thrown: unknown[] = [];
        try {
          outcome(refusingOverflows(check)(document));
        } catch (caught) {
          thrown.push(caught);
        }
        expect(thrown).toHaveLength(1);
        expect(thrown[0]).toBe(error);
      }
  });

  it('collects nothing before the issues are read', () => {
    let reads = 0;
    const document = new Proxy([], { ownKeys: () => ((reads += 1), []) });
    refusingOverflows(() => left(overflow))(document);
    expect(reads).toBe(0);
  });
});

describe('isStackOverflow', () => {
  it('distinguishes the stack overflow of this engine from other errors', () => {
    let caught: unknown;
    try {
      overflow();
    } catch (error) {
      caught = error;
    }
    expect(isStackOverflow(caught)).toBe(true);
    expect(isStackOverflow(new RangeError('Invalid array length'))).toBe(false);
    expect(isStackOverflow(null)).toBe(false);
  });
});
