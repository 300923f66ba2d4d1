import fc from 'fast-check';

const firstSurrogate = 0xd800;
const afterSurrogates = 0xe000;
const surrogates = afterSurrogates - firstSurrogate;

/**
 * Generates any Unicode character, as the unit of `fc.string`.
 *
 * Generates the same strings as fast-check's unit `binary`, which spends a second per test file on a table of a million
 * characters.
 */
export const character: fc.Arbitrary<string> = fc.nat({ max: 0x10_ffff - surrogates }).map(
  (index) => String.fromCodePoint(index < firstSurrogate ? index : index + surrogates),
  (value) => indexOf(value),
);

const indexOf = (value: unknown): number => {
  const point = typeof value === 'string' ? value.codePointAt(0) : undefined;
  if (point === undefined || value !== String.fromCodePoint(point)) throw new Error('Not one character.');
  if (point >= firstSurrogate && point < afterSurrogates) throw new Error('Half of a surrogate pair.');
  return point < firstSurrogate ? point : point - surrogates;
};
