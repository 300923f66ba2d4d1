import { describe, expect, it } from '@jest/globals';
import { literal, type Writer } from '../../../../src/operators/decode/io-ts-guard/guard-text.js';

const writer: Writer = {
  capture: (value) => `captured ${String(value)}`,
  test: () => '',
  name: () => '',
};

describe('literal', () => {
  it.each([
    ['a "b"', '"a \\"b\\""'],
    ['1', '"1"'],
    ['', '""'],
    [1.5, '1.5'],
    [true, 'true'],
    [false, 'false'],
  ])('writes %j as a literal', (value, text) => {
    expect(literal(value, writer)).toBe(text);
  });

  it.each([null, undefined, 1n])('captures any other value: %p', (value) => {
    expect(literal(value, writer)).toBe(`captured ${String(value)}`);
  });
});
