import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LineBuffer } from '../../src/log/line-buffer.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';

const textOf = ({ bytes, length }: LineBuffer): string => bytes.toString('utf8', 0, length);

it('stores any lines, and returns the length of each in bytes', () => {
  const line = fc.tuple(fc.string({ unit: character, maxLength: 30 }), fc.integer({ min: 1, max: 3_000 }));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), (made) => {
      const texts = made.map(([text, times]) => text.repeat(times));
      const lines = new LineBuffer();
      for (const text of texts) expect(lines.add(text)).toBe(Buffer.byteLength(text));
      expect(textOf(lines)).toBe(Buffer.from(texts.join('')).toString());
    }),
    { numRuns: cases(50) },
  );
});

it('removes the last line', () => {
  const lines = new LineBuffer();
  lines.add('one\n');
  lines.drop(lines.add('zwölf\n'));
  lines.add('two\n');
  expect(textOf(lines)).toBe('one\ntwo\n');
});

it('is reused, unless it has grown large', () => {
  const lines = new LineBuffer();
  lines.add('one');
  lines.written = 3;
  expect(lines.recycle()).toBe(lines);
  expect(lines).toMatchObject({ length: 0, written: 0 });
  lines.add('x'.repeat(2_000_000));
  expect(lines.recycle()).not.toBe(lines);
});
