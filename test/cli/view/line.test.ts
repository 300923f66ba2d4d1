import { describe, expect, test } from '@jest/globals';
import { printed, shortened, spread, widthOf } from '../../../src/cli/view/line.js';
import { sparkline } from '../../../src/cli/view/panel.js';
import { printable } from '../../../src/protocol/printable.js';

describe('printed', () => {
  test('colours the spans that have a style', () => {
    expect(printed([['a'], ['b', 'red'], ['c', 'plain']], 10, true)).toBe('a\x1b[31mb\x1b[0mc');
    expect(printed([['a'], ['b', 'red']], 10, false)).toBe('ab');
  });

  test('cuts to the width, whatever the spans, and leaves nothing of what is cut away', () => {
    expect(printed([['abc'], ['def', 'red'], ['ghi', 'dim']], 5, false)).toBe('abcd…');
    expect(printed([['abc'], ['def', 'red'], ['ghi', 'dim']], 5, true)).toBe('abc\x1b[31md…\x1b[0m');
    expect(printed([['abc']], 0, true)).toBe('');
  });
});

describe('spread', () => {
  test('puts the right part at the right edge, or leaves it out', () => {
    expect(printed(spread([['ab']], [['cd']], 8), 8, false)).toBe('ab    cd');
    expect(printed(spread([['ab']], [['cd']], 5), 5, false)).toBe('ab');
  });
});

describe('shortened', () => {
  test.each([
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcd…'],
    ['abcdef', 1, '…'],
    ['abcdef', 0, ''],
    ['価格価格', 8, '価格価格'],
    ['価格価格', 7, '価格価…'],
    ['価格価格', 4, '価…'],
    ['e\u0301e\u0301e\u0301', 3, 'e\u0301e\u0301e\u0301'],
    ['🚀🚀', 3, '🚀…'],
    ['naïve', 5, 'naïve'],
  ])('cuts %s to %d columns: %s', (text, columns, short) => {
    expect(shortened(text, columns)).toBe(short);
    expect(widthOf(short)).toBeLessThanOrEqual(columns);
  });
});

describe('printable', () => {
  test('leaves a text alone that cannot do harm', () => {
    expect(printable('{"price":"3,000 €","名":"価格 🚀"}')).toBe('{"price":"3,000 €","名":"価格 🚀"}');
  });

  test('shows pictures of control characters, and drops what turns text around', () => {
    expect(printable('a\x1b]0;title\x07\r\n\x7f')).toBe('a␛]0;title␇␍␊␡');
    expect(printable('a\u009b31m\u202eb\u2028')).toBe('a�31m�b�');
    expect(printable(Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join(''))).not.toMatch(
      /[\p{Cc}]/u,
    );
  });
});

describe('sparkline', () => {
  test('draws from nothing to the largest', () => {
    expect(sparkline([0, 5, 10])).toBe('▁▅█');
    expect(sparkline([0, 0])).toBe('▁▁');
    expect(sparkline([])).toBe('');
  });
});
