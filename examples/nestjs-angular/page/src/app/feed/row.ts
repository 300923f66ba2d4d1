import type { Frame } from 'rx-trade-feed/browser';

const decoder = new TextDecoder();
/** How much of a payload is read to show it in one line, and around a match. */
const [previewBytes, excerptBytes] = [8 * 1_024, 320];

/** A frame in the list. The payload is decoded when the row is shown. */
export class Row {
  /** The number of the frame on this page: 1, 2, … */
  readonly number: number;
  readonly frame: Frame<Uint8Array>;
  private found: { readonly text: string; readonly excerpt: string } | undefined;

  constructor(number: number, frame: Frame<Uint8Array>) {
    this.number = number;
    this.frame = frame;
  }

  /** The start of the payload, in one line. */
  get preview(): string {
    const { data, isBinary } = this.frame;
    return isBinary
      ? hexOf(data.subarray(0, excerptBytes / 4), ' ')
      : decoder.decode(data.subarray(0, previewBytes)).replace(/\s+/g, ' ');
  }

  /** Returns the payload around the first occurrence of a lower-case text, in one line. */
  excerpt(text: string): string {
    if (this.found?.text === text) return this.found.excerpt;
    const excerpt = this.around(text);
    this.found = { text, excerpt };
    return excerpt;
  }

  /** Returns whether the payload contains a lower-case text. In a binary payload it searches the hex digits. */
  includes(text: string): boolean {
    const { data, isBinary } = this.frame;
    return isBinary
      ? hexOf(data, '').includes(text.replaceAll(' ', ''))
      : this.frame.text().toLowerCase().includes(text);
  }

  private around(text: string): string {
    const { data, isBinary } = this.frame;
    if (isBinary) {
      const at = hexOf(data, '').indexOf(text.replaceAll(' ', '')) >> 1;
      const from = at < 6 ? 0 : at - 2;
      return (from > 0 ? '… ' : '') + hexOf(data.subarray(from, from + excerptBytes / 4), ' ');
    }
    const whole = this.frame.text();
    // The match is near the start, so that it is visible on a narrow screen.
    const at = whole.toLowerCase().indexOf(text);
    const from = at < 16 ? 0 : at - 8;
    return (from > 0 ? '…' : '') + whole.slice(from, from + excerptBytes).replace(/\s+/g, ' ');
  }
}

const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Formats bytes as hex digits, two per byte. */
export const hexOf = (data: Uint8Array, between: string): string => {
  let hex = '';
  for (const byte of data) hex += (hex === '' ? '' : between) + (digits[byte] as string);
  return hex;
};
