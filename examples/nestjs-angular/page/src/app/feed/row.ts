import type { Frame } from 'rx-trade-feed/browser';

const decoder = new TextDecoder();
const previewBytes = 320;

/** One frame in the list. Nothing of it is decoded before somebody looks. */
export class Row {
  /** Which frame of this page: 1, 2, … */
  readonly number: number;
  readonly frame: Frame<Uint8Array>;
  private shown: string | undefined;

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

  /** Tells whether the payload holds a text in lower case; of a binary one, its hex digits are searched. */
  holds(text: string): boolean {
    const { data, isBinary } = this.frame;
    return isBinary
      ? hexOf(data, '').includes(text.replaceAll(' ', ''))
      : this.frame.text().toLowerCase().includes(text);
  }
}

const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Writes bytes as hex digits, two a byte. */
export const hexOf = (data: Uint8Array, between: string): string => {
  let hex = '';
  for (const byte of data) hex += (hex === '' ? '' : between) + (digits[byte] as string);
  return hex;
};
