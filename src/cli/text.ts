import { stripVTControlCharacters, styleText } from 'node:util';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const count = (number: number): string => whole.format(number);

/** `20.1`, `1,842` */
export const amount = (number: number): string => (number < 99.95 ? oneDigit : whole).format(number);

export const counted = (number: number, thing: string): string => `${count(number)} ${thing}${number === 1 ? '' : 's'}`;

/** Formats a number of bytes with decimal units: `421 B`, `8.4 kB`. */
export const bytes = (number: number): string => {
  if (number < 1_000) return `${count(number)} B`;
  const step = Math.min(4, Math.floor(Math.log10(number) / 3));
  return `${amount(number / 1_000 ** step)} ${'kMGT'.charAt(step - 1)}B`;
};

/** Formats a duration: `12 ms`, `3.2 s`, `30 s`, `1 min 05 s`, `2 h 03 min`. */
export const duration = (ms: number): string => {
  if (ms < 1_000) return `${count(ms)} ms`;
  if (ms < 9_950) return `${amount(ms / 1_000)} s`;
  if (ms < 59_500) return `${count(ms / 1_000)} s`;
  const s = Math.round(ms / 1_000);
  const [h, min] = [Math.floor(s / 3_600), Math.floor(s / 60) % 60];
  return h === 0 ? `${min} min ${padded(s % 60)} s` : `${count(h)} h ${padded(min)} min`;
};

const padded = (number: number): string => String(number).padStart(2, '0');

export const joined = (separator: string, ...parts: readonly (string | false | undefined)[]): string =>
  parts.filter(Boolean).join(separator);

export type Fact = readonly [name: string, ...lines: readonly string[]];

export const factLines = (facts: readonly Fact[]): readonly string[] =>
  facts.flatMap(([name, ...lines]) => lines.map((line, n) => `${(n === 0 ? name : '').padEnd(12)}${line}`));

const bars = '▁▂▃▄▅▆▇█';

export const sparkline = (numbers: readonly number[]): string => {
  const most = Math.max(1, ...numbers);
  return numbers.map((number) => bars.charAt(Math.round((number / most) * (bars.length - 1)))).join('');
};

export const logLine = (text: string, at = Date.now()): string => `${new Date(at).toISOString()} ${text}\n`;

/**
 * Wraps the lines of a text at spaces. The rest of a line begins below its last column, or as the line does. A word that's
 * longer than a line stays whole: it may be an address that somebody wants to copy.
 */
export const wrapped = (text: string, columns: number): string =>
  text
    .split('\n')
    .map((line) => wrappedLine(line, columns))
    .join('\n');

const wrappedLine = (line: string, columns: number): string => {
  if (widthOf(line) <= columns) return line;
  const hang = hangOf(stripVTControlCharacters(line), columns);
  let [complete, current] = ['', ''];
  for (const word of line.match(/\s*\S+/g) ?? []) {
    if (current === '' || widthOf(current + word) <= columns) {
      current += word;
      continue;
    }
    complete += `${current}\n`;
    const room = Math.max(0, columns - widthOf(word.trimStart()));
    current = ' '.repeat(Math.min(hang, room)) + word.trimStart();
  }
  return complete + current;
};

const hangOf = (line: string, columns: number): number => {
  const [beforeLastColumn = ''] = /^.*\S {2,}(?=\S)/.exec(line) ?? [];
  if (beforeLastColumn !== '' && beforeLastColumn.length <= columns / 2) return beforeLastColumn.length;
  const indent = line.search(/\S/);
  // An arrow, or the time of a log line.
  return /^ *(→|\d{4}-)/.test(line) ? indent + 2 : indent;
};

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export type Span = readonly [text: string, style?: Style | undefined];
/** A line of a terminal as plain data. {@link printed} turns it into text. */
export type Line = readonly Span[];

/** The symbols of all commands. Each means the same everywhere, and a word next to it says so without color. */
export const symbols = {
  good: ['●', 'green'],
  inProgress: ['◐', 'yellow'],
  waiting: ['○', 'red'],
  inactive: ['○', 'dim'],
  warning: ['▲', 'yellow'],
  failed: ['■', 'red'],
} as const satisfies Readonly<Record<string, Span>>;

/** Prints a line on one row of a terminal, which ends in an ellipsis if the line is longer. */
export const printed = (line: Line, columns: number, hasColors = false): string => {
  let left = columns;
  const parts = line.map(([text, style]) => {
    const part = shortened(text, left, columns);
    left = part === text ? left - widthOf(part) : 0;
    return hasColors && style && part !== '' ? styleText(style, part, { validateStream: false }) : part;
  });
  return parts.join('').trimEnd();
};

/** Aligns the right part of a line to the right edge, or drops it if it doesn't fit next to the left part. */
export const spread = (left: Line, right: Line, columns: number): Line => {
  const lineWidth = (line: Line): number => widthOf(line.map(([text]) => text).join(''));
  const gap = columns - lineWidth(left) - lineWidth(right);
  return gap < 2 ? left : [...left, [' '.repeat(gap)], ...right];
};

const twoColumns =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const noColumn = /[\p{Mark}\p{Format}]/u;

/** Returns how many terminal columns a text takes: an approximation for rare scripts. */
export const widthOf = (text: string): number =>
  [...stripVTControlCharacters(text)].reduce((sum, char) => sum + charWidth(char), 0);

const charWidth = (char: string): number => {
  if (noColumn.test(char)) return 0;
  return twoColumns.test(char) ? 2 : 1;
};

/**
 * Shortens a text to a number of columns, ending in an ellipsis: after its last word that fits. Cuts only a word that's
 * longer than a whole line.
 */
export const shortened = (text: string, columns: number, lineColumns = columns): string => {
  if (text.length <= columns / 2 || widthOf(text) <= columns) return text;
  let [start, width] = ['', 0];
  for (const char of text) {
    width += charWidth(char);
    if (width >= columns) break;
    start += char;
  }
  const wordAt = start.lastIndexOf(' ') + 1;
  const [word = ''] = text.slice(wordAt).split(' ', 1);
  if (start.slice(0, wordAt).trim() !== '' && widthOf(word) <= lineColumns) start = start.slice(0, wordAt);
  return columns > 0 ? `${start}…` : '';
};
