const twoColumns =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const noColumn = /[\p{Mark}\p{Format}]/u;

/** Says how many columns of a terminal a text takes: near enough for the scripts that feeds are written in. */
export const widthOf = (text: string): number => [...text].reduce((sum, char) => sum + charWidth(char), 0);

/** Cuts a text to a number of columns, with an ellipsis when something is missing. */
export const shortened = (text: string, columns: number): string => {
  if (text.length <= columns / 2 || widthOf(text) <= columns) return text;
  let [kept, width] = ['', 0];
  for (const char of text) {
    width += charWidth(char);
    if (width >= columns) break;
    kept += char;
  }
  return columns > 0 ? `${kept}…` : '';
};

const charWidth = (char: string): number => {
  if (char >= ' ' && char <= '~') return 1;
  return noColumn.test(char) ? 0 : twoColumns.test(char) ? 2 : 1;
};
