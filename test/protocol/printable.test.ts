import { expect, it } from '@jest/globals';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { printable } from '../../src/protocol/printable.js';

it.each([
  ['plain text, € and 漢 and 🙂', 'plain text, € and 漢 and 🙂'],
  ['a\r\nb\tc\u0000', 'a␍␊b␉c␀'],
  ['\u001b[31mred\u007f', '␛[31mred␡'],
  ['\u001f !~', '␟ !~'],
  ['a\u0085b\u009bc\u2028d\u202ee\u2066f', 'a�b�c�d�e�f'],
])('replaces characters that control a terminal: %j', (text, shown) => {
  expect(printable(text)).toBe(shown);
});

it('puts a reason and a detail into one line of a message, without white space around them', () => {
  const error = createTradeFeedError({ stage: 'stream', closeCode: 4999, reason: ' a\nb ', detail: '\tc\r\nd\n' });
  expect(error.message).toContain('"a␊b", c␍␊d)');
  expect(error.reason).toBe(' a\nb ');
});
