import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Lines } from '../../../src/operators/node/recording-lines.js';
import { cases } from '../../support/cases.js';

const textOf = ({ bytes, length }: Lines): string => bytes.toString('utf8', 0, length);

it('holds any lines, and says how many bytes each has', () => {
  const line = fc.tuple(fc.string({ unit: 'binary', maxLength: 30 }), fc.integer({ min: 1, max: 3_000 }));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), (made) => {
      const texts = made.map(([text, times]) => text.repeat(times));
      const lines = new Lines();
      for (const text of texts) expect(lines.add(text)).toBe(Buffer.byteLength(text));
      expect(textOf(lines)).toBe(Buffer.from(texts.join('')).toString());
    }),
    { numRuns: cases(50) },
  );
});

it('takes the last line away again', () => {
  const lines = new Lines();
  lines.add('one\n');
  lines.drop(lines.add('zwölf\n'));
  lines.add('two\n');
  expect(textOf(lines)).toBe('one\ntwo\n');
});

it('is used again, unless it has grown large', () => {
  const lines = new Lines();
  lines.add('one');
  lines.done = 3;
  expect(lines.cleared()).toBe(lines);
  expect(lines).toMatchObject({ length: 0, done: 0 });
  lines.add('x'.repeat(2_000_000));
  expect(lines.cleared()).not.toBe(lines);
});
