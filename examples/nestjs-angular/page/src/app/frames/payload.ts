import type { Row } from '../feed/row';
import { hexOf } from '../feed/row';

/** A part of a shown payload. */
export interface Token {
  readonly kind: 'plain' | 'key' | 'text' | 'number';
  readonly text: string;
  /** Returns whether a character was added for display, and isn't in the payload. */
  readonly isAdded?: (letter: string, index: number) => boolean;
}

const mostBytes = 64 * 1024;
const mostTokens = 4_000;

/** Formats a payload: JSON with line breaks, other text unchanged, bytes as a hex dump. */
export const payloadTokens = ({ frame }: Row): readonly Token[] => {
  if (frame.isBinary) {
    const dump = hexDump(frame.data.subarray(0, mostBytes / 4));
    return [
      { kind: 'plain', text: dump, isAdded: (letter, index) => letter === ' ' || !isHexColumn(index % lineLength) },
    ];
  }
  const text = prettyText(frame.text());
  return text.isJson ? jsonTokens(text.text) : [{ kind: 'plain', text: text.text }];
};

/** Returns the text of a payload unchanged. */
export const rawTokens = ({ frame }: Row): readonly Token[] => [
  { kind: 'plain', text: frame.text().slice(0, mostBytes) },
];

/** Returns how many bytes of a large payload aren't shown. */
export const hiddenBytes = ({ frame }: Row): number =>
  Math.max(0, frame.data.length - (frame.isBinary ? mostBytes / 4 : mostBytes));

/** Formats bytes in lines of sixteen: the offset, the hex digits and the text. */
export const hexDump = (data: Uint8Array): string => {
  const lines: string[] = [];
  for (let start = 0; start < data.length; start += 16) {
    const line = data.subarray(start, start + 16);
    const text = Array.from(line, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('');
    lines.push(`${start.toString(16).padStart(4, '0')}  ${hexOf(line, ' ').padEnd(47)}  ${text}`);
  }
  return lines.join('\n');
};

// A line is `0000  00 01 … 0f  text` and a line break.
const lineLength = 6 + 47 + 2 + 16 + 1;
const isHexColumn = (column: number): boolean => column >= 6 && column < 6 + 47;

const prettyText = (text: string): { readonly text: string; readonly isJson: boolean } => {
  try {
    if (text.length <= mostBytes) return { text: JSON.stringify(JSON.parse(text), null, 2), isJson: true };
  } catch {
    // The text isn't JSON.
  }
  return { text: text.slice(0, mostBytes), isJson: false };
};

const pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\b\d[\d.eE+-]*\b|\b(?:true|false|null)\b/g;

/** Splits JSON into keys, texts, numbers and the rest. The text may end anywhere. */
export const jsonTokens = (text: string): readonly Token[] => {
  const tokens: Token[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (tokens.length > mostTokens) break;
    const [all, quoted, colon] = match;
    if (match.index > end) tokens.push({ kind: 'plain', text: text.slice(end, match.index), isAdded: isSpace });
    tokens.push({ kind: quoted === undefined ? 'number' : colon === undefined ? 'text' : 'key', text: all });
    end = match.index + all.length;
  }
  return [...tokens, { kind: 'plain', text: text.slice(end), isAdded: isSpace }];
};

const isSpace = (letter: string): boolean => letter === ' ' || letter === '\n';
