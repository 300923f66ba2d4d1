/** The styles of a span, with their SGR codes (ECMA-48, 8.3.117). */
const codes = { plain: '', bold: '1', dim: '2', red: '31', green: '32', yellow: '33', cyan: '36' } as const;
type Style = keyof typeof codes;

/** A part of a line in one style. */
export type Span = readonly [text: string, style?: Style];
/** A line of a terminal, as plain data. {@link printed} converts it to text. */
export type Line = readonly Span[];

/** Converts a line to text that is at most as wide as the terminal. */
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

/** Aligns the right part of a line to the right edge. Removes the right part if it does not fit next to the left part. */
export const spread = (left: Line, right: Line, columns: number): Line => {
  const gap = columns - lineWidth(left) - lineWidth(right);
  return gap < 2 ? left : [...left, [' '.repeat(gap)], ...right];
};

/** Returns the number of terminal columns of a line. */
export const lineWidth = (line: Line): number => line.reduce((sum, [text]) => sum + widthOf(text), 0);

const twoColumns =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const noColumn = /[\p{Mark}\p{Format}]/u;

/** Returns the number of terminal columns of a text. The result is approximate for rare scripts. */
export const widthOf = (text: string): number => [...text].reduce((sum, char) => sum + charWidth(char), 0);

/** Shortens a text to a number of columns, with an ellipsis in place of the removed part. */
export const shortened = (text: string, columns: number): string => {
  if (text.length <= columns / 2 || widthOf(text) <= columns) return text;
  let [start, width] = ['', 0];
  for (const char of text) {
    width += charWidth(char);
    if (width >= columns) break;
    start += char;
  }
  return columns > 0 ? `${start}…` : '';
};

const charWidth = (char: string): number => {
  if (char >= ' ' && char <= '~') return 1;
  return noColumn.test(char) ? 0 : twoColumns.test(char) ? 2 : 1;
};
