import { describe, expect, it } from '@jest/globals';
import { printed, shortened, spread, widthOf } from '../../../src/cli/view/line.js';
import { sparkline } from '../../../src/cli/view/panel.js';
import { printable } from '../../../src/protocol/printable.js';

describe('printed', () => {
  it('colours the spans that have a style', () => {
    expect(printed([['a'], ['b', 'red'], ['c', 'plain']], 10, true)).toBe('a\x1b[31mb\x1b[0mc');
    expect(printed([['a'], ['b', 'red']], 10, false)).toBe('ab');
  });

  it('shortens to the width across spans, without empty styles', () => {
    expect(printed([['abc'], ['def', 'red'], ['ghi', 'dim']], 5, false)).toBe('abcd…');
    expect(printed([['abc'], ['def', 'red'], ['ghi', 'dim']], 5, true)).toBe('abc\x1b[31md…\x1b[0m');
    expect(printed([['abc']], 0, true)).toBe('');
  });
});

describe('spread', () => {
  it('aligns the right part, or removes it', () => {
    expect(printed(spread([['ab']], [['cd']], 8), 8, false)).toBe('ab    cd');
    expect(printed(spread([['ab']], [['cd']], 5), 5, false)).toBe('ab');
  });
});

describe('shortened', () => {
  it.each([
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
  ])('shortens %s to %d columns: %s', (text, columns, short) => {
    expect(shortened(text, columns)).toBe(short);
    expect(widthOf(short)).toBeLessThanOrEqual(columns);
  });
});

describe('printable', () => {
  it('does not change harmless text', () => {
    expect(printable('{"price":"3,000 €","名":"価格 🚀"}')).toBe('{"price":"3,000 €","名":"価格 🚀"}');
  });

  it('replaces control characters and characters that reverse text', () => {
    expect(printable('a\x1b]0;title\x07\r\n\x7f')).toBe('a␛]0;title␇␍␊␡');
    expect(printable('a\u009b31m\u202eb\u2028')).toBe('a�31m�b�');
    expect(printable(Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join(''))).not.toMatch(
      /[\p{Cc}]/u,
    );
  });
});

describe('sparkline', () => {
  it('draws bars from 0 to the largest number', () => {
    expect(sparkline([0, 5, 10])).toBe('▁▅█');
    expect(sparkline([0, 0])).toBe('▁▁');
    expect(sparkline([])).toBe('');
  });
});
