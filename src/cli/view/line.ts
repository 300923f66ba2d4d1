import { shortened, widthOf } from './width.js';

/** The styles of a terminal that are used here, with their SGR codes (ECMA-48, 8.3.117). */
const codes = { plain: '', bold: '1', dim: '2', red: '31', green: '32', yellow: '33', cyan: '36' } as const;
type Style = keyof typeof codes;

/** A piece of a line in one style. */
export type Span = readonly [text: string, style?: Style];
/** A line of a terminal, as plain data; {@link printed} makes the text of it. */
export type Line = readonly Span[];

/** Makes the text of a line, no wider than the terminal. */
export const printed = (line: Line, columns: number, hasColors: boolean): string => {
  let left = columns;
  return line
    .map(([text, style = 'plain']) => {
      const part = shortened(text, left);
      left -= widthOf(part);
      return hasColors && style !== 'plain' && part !== '' ? `\x1b[${codes[style]}m${part}\x1b[0m` : part;
    })
    .join('')
    .trimEnd();
};

/** Puts the right part of a line at the right edge; what does not fit beside the left part is left out. */
export const spread = (left: Line, right: Line, columns: number): Line => {
  const gap = columns - lineWidth(left) - lineWidth(right);
  return gap < 2 ? left : [...left, [' '.repeat(gap)], ...right];
};

const lineWidth = (line: Line): number => line.reduce((sum, [text]) => sum + widthOf(text), 0);
