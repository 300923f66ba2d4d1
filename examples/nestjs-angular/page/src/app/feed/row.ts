import type { Frame } from 'rx-trade-feed/browser';

const decoder = new TextDecoder();
const previewBytes = 320;

/** One frame in the list. Nothing of it is decoded before somebody looks. */
export class Row {
  /** Which frame of this page: 1, 2, … */
  readonly number: number;
  readonly frame: Frame<Uint8Array>;
  private shown: string | undefined;
  private found: { readonly text: string; readonly excerpt: string } | undefined;

  constructor(number: number, frame: Frame<Uint8Array>) {
    this.number = number;
    this.frame = frame;
  }

  /** The beginning of the payload, in one line. */
  get preview(): string {
    const { data, isBinary } = this.frame;
    return (this.shown ??= isBinary
      ? hexOf(data.subarray(0, previewBytes / 4), ' ')
      : decoder.decode(data.subarray(0, previewBytes), { stream: false }).replace(/\s+/g, ' '));
  }

  /** The payload around the first place that holds a text in lower case, in one line: its beginning, if that is where it is. */
  excerpt(text: string): string {
    if (this.found?.text === text) return this.found.excerpt;
    const excerpt = this.around(text);
    this.found = { text, excerpt };
    return excerpt;
  }

  /** Tells whether the payload holds a text in lower case; of a binary one, its hex digits are searched. */
  holds(text: string): boolean {
    const { data, isBinary } = this.frame;
    return isBinary
      ? hexOf(data, '').includes(text.replaceAll(' ', ''))
      : this.frame.text().toLowerCase().includes(text);
  }

  private around(text: string): string {
    const { data, isBinary } = this.frame;
    if (isBinary) {
      const at = hexOf(data, '').indexOf(text.replaceAll(' ', '')) >> 1;
      const from = at < 24 ? 0 : at - 6;
      return (from > 0 ? '… ' : '') + hexOf(data.subarray(from, from + previewBytes / 4), ' ');
    }
    const whole = this.frame.text();
    const at = whole.toLowerCase().indexOf(text);
    const from = at < 48 ? 0 : at - 24;
    return (from > 0 ? '…' : '') + whole.slice(from, from + previewBytes).replace(/\s+/g, ' ');
  }
}

const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Writes bytes as hex digits, two a byte. */
export const hexOf = (data: Uint8Array, between: string): string => {
  let hex = '';
  for (const byte of data) hex += (hex === '' ? '' : between) + (digits[byte] as string);
  return hex;
};
