import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bytesOfJson,
  endOfDigits,
  hasAt,
  numberIn,
  viewOf,
  viewOfText,
  writeJsonString,
} from '../../src/frames/json-bytes.js';

const quoted = (json: string) => Buffer.from(`"${json}"`);
const bytesOf = (json: string): Buffer | undefined => {
  const bytes = quoted(json);
  return bytesOfJson(viewOf(bytes), 1, bytes.length - 1);
};

describe('bytesOfJson', () => {
  it('returns what JSON.parse returns, unless a code unit is escaped', () => {
    const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.json(), fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(text, fc.nat(9), (text, before) => {
        const json = JSON.stringify('x'.repeat(before) + text).slice(1, -1);
        const isRead = !/(?<!\\)(\\\\)*\\u/.test(json);
        expect(bytesOf(json)?.toString()).toBe(isRead ? 'x'.repeat(before) + text : undefined);
      }),
    );
  });

  it('returns nothing for what is no JSON string, or only the beginning of one', () => {
    const part = fc.constantFrom('\\', '"', 'u', 'n', 'x', 'é', '00e9');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
        const json = parts.join('');
        const bytes = bytesOf(json);
        if (bytes !== undefined) expect(bytes.toString()).toBe(JSON.parse(`"${json}"`));
      }),
    );
    for (const json of ['\\', '"', 'abc"', 'abcd\\', 'a","b', '\\x']) expect(bytesOf(json)).toBeUndefined();
    expect(bytesOfJson(viewOf(quoted('')), 1, 0)).toBeUndefined();
  });

  it('keeps the payloads that it has returned, each in memory of its own', () => {
    const texts = Array.from({ length: 2_000 }, (_, n) => `${n}`.repeat(n % 40));
    const kept = texts.map((text) => bytesOf(text));
    expect(kept.map((bytes) => bytes?.toString())).toEqual(texts);
    expect(Math.max(...kept.map((bytes) => bytes?.buffer.byteLength ?? Infinity))).toBeLessThanOrEqual(64 * 1024);
    expect(bytesOf('x'.repeat(64 * 1024))).toBeUndefined();
  });
});

it('writeJsonString writes what JSON.stringify returns, unless a control character is escaped', () => {
  const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.json(), fc.string({ unit: 'binary' }));
  fc.assert(
    fc.property(text, fc.nat(9), (text, before) => {
      const bytes = Buffer.from(text);
      const memory = Buffer.alloc(before + 2 * bytes.length);
      const end = writeJsonString(viewOf(bytes), viewOf(memory), before);
      if (/[\0-\x1f]/.test(text)) return expect(end).toBe(-1);
      expect(memory.toString('utf8', before, end)).toBe(JSON.stringify(bytes.toString()).slice(1, -1));
      expect(memory.subarray(0, before)).toEqual(Buffer.alloc(before));
    }),
    { numRuns: 2_000 },
  );
});

it('finds bytes at a place, also at the end of others', () => {
  const bytes = viewOfText('{"offset":12');
  for (const text of ['{"of', '{"offset', '{"offset":12']) expect(hasAt(bytes, 0, viewOfText(text))).toBe(true);
  expect(hasAt(bytes, 5, viewOfText('set":12'))).toBe(true);
  for (const text of ['{"oF', '{"offseT', '{"offset":123']) expect(hasAt(bytes, 0, viewOfText(text))).toBe(false);
  for (const at of [-1, 20]) expect(hasAt(bytes, at, viewOfText('{"of'))).toBe(false);
});

it.each([
  ['0,', 0],
  ['1767225600000', 1_767_225_600_000],
  ['999999999999999', 999_999_999_999_999],
  ['1234567890123456', 123_456_789_012_345],
  ['12.5', 12],
  ['-1', NaN],
  ['', NaN],
])('reads the digits of %j', (text, number) => {
  const bytes = viewOfText(text);
  expect(numberIn(bytes, 0, endOfDigits(bytes, 0))).toBe(number);
});
