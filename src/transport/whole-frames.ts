import { isAscii, isUtf8 } from 'node:buffer';
import { BufferView } from './buffer-view.js';
import { Opcode } from './frame-head.js';
import type { Tap } from './tap.js';

// How whole frames begin: final, without reserved bits.
const TEXT = 0x80 | Opcode.Text;
const BINARY = 0x80 | Opcode.Binary;

/**
 * Tells the data frames that lie whole in what was read, one behind the other: all of them texts, or binary frames. It stops at
 * whatever else comes, and where nobody listens any more.
 *
 * @param at - where a frame begins
 * @returns where the first frame begins that was not told
 */
export const tellWholeFrames = (bytes: Buffer, at: number, tap: Tap): number => {
  const first = bytes[at] === TEXT ? TEXT : BINARY;
  const { heads, end } = wholeFrames(bytes, at, first, tap.maxFrameBytes);
  if (heads.length === 0) return at;
  const kind = first === TEXT ? kindOfTexts(bytes, heads, end) : 'binary';
  for (let i = 1; i < heads.length; i += 2) {
    const start = heads[i] as number;
    const next = heads[i + 1] ?? end;
    if (tap.isClosed()) return heads[i - 1] as number;
    const data = new BufferView(bytes.buffer, bytes.byteOffset + start, next - start);
    const own = kind === 'invalid' ? kindOf(data) : kind;
    if (own === 'invalid') return heads[i - 1] as number;
    tap.frame(data, own === 'binary', own === 'ascii');
  }
  return end;
};

/** Where the heads and the payloads of frames begin, in turn, and where the last one ends. */
interface Whole {
  readonly heads: readonly number[];
  readonly end: number;
}

const wholeFrames = (bytes: Buffer, from: number, first: number, maxFrameBytes: number): Whole => {
  const heads: number[] = [];
  for (let at = from; ;) {
    if (bytes[at] !== first) return { heads, end: at };
    let length = bytes[at + 1] ?? 127;
    let start = at + 2;
    if (length === 126) {
      length = ((bytes[at + 2] ?? 255) << 8) | (bytes[at + 3] ?? 255);
      start = at + 4;
    }
    if (length > maxFrameBytes || start + length > bytes.length || (bytes[at + 1] as number) > 126)
      return { heads, end: at };
    heads.push(at, start);
    at = start + length;
  }
};

// To check each text by itself costs as much as all the rest of a frame. Zeros in the place of the heads part the texts, so that
// together they are valid just when each of them is.
const kindOfTexts = (bytes: Buffer, heads: readonly number[], end: number): Kind => {
  for (let i = 0; i < heads.length; i += 2) zeroHead(bytes, heads[i] as number, heads[i + 1] as number);
  const kind = kindOf(bytes.subarray(heads[0], end));
  for (let i = 0; i < heads.length; i += 2)
    writeHead(bytes, heads[i] as number, heads[i + 1] as number, heads[i + 2] ?? end);
  return kind;
};

type Kind = 'binary' | 'ascii' | 'utf8' | 'invalid';

/** Says what a text frame holds; `invalid` is what is not UTF-8 (RFC 6455, 8.1). */
export const kindOf = (text: Buffer): Kind => (isAscii(text) ? 'ascii' : isUtf8(text) ? 'utf8' : 'invalid');

const zeroHead = (bytes: Buffer, at: number, start: number): void => {
  bytes[at] = 0;
  if (start === at + 4) bytes[at + 2] = bytes[at + 3] = 0;
};

const writeHead = (bytes: Buffer, at: number, start: number, end: number): void => {
  const length = end - start;
  bytes[at] = TEXT;
  if (start !== at + 4) return;
  bytes[at + 2] = length >> 8;
  bytes[at + 3] = length & 255;
};
