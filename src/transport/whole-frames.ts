import { isAscii, isUtf8 } from 'node:buffer';
import { Opcode } from './frame-head.js';

/** Handles the frames of an open connection. */
export interface FrameHandler {
  /** Is called for each read, before the frames that it contains. */
  readonly read: () => void;
  /**
   * Is called for each complete data frame. Its payload is in `bytes` from `start` to `end`, until `readEnd` is called. `isAscii` is `true`
   * only if a text frame contains only ASCII characters.
   */
  readonly frame: (bytes: Buffer, start: number, end: number, isBinary: boolean, isAscii: boolean) => void;
  /** Is called at the end of each read, before its memory is used again. */
  readonly readEnd: () => void;
  /** Is called after `ws` has received a close frame with this payload. */
  readonly close: (payload: Buffer) => void;
  /** Returns how many frames were received, by this handler and from `ws`. */
  readonly framesReceived: () => number;
  /** Returns whether the subscription has ended. */
  readonly isClosed: () => boolean;
  readonly maxFrameBytes: number;
}

// The first byte of a complete frame: final, without reserved bits.
const TEXT = 0x80 | Opcode.Text;
const BINARY = 0x80 | Opcode.Binary;

/**
 * Emits consecutive data frames that are complete in one read: all of them text, or all of them binary. Stops at the first other
 * frame, and when the subscriber unsubscribes.
 *
 * @param at - where a frame begins
 * @returns where the first frame begins that was not emitted
 */
export const emitWholeFrames = (bytes: Buffer, at: number, handler: FrameHandler): number => {
  const first = bytes[at] === TEXT ? TEXT : BINARY;
  const { heads, end } = wholeFrames(bytes, at, first, handler.maxFrameBytes);
  if (heads.length === 0) return at;
  const kind = first === TEXT ? kindOfTexts(bytes, heads, end) : 'binary';
  for (let i = 1; i < heads.length; i += 2) {
    const start = heads[i] as number;
    const next = heads[i + 1] ?? end;
    if (handler.isClosed()) return heads[i - 1] as number;
    const own = kind === 'invalid' ? textKind(bytes.subarray(start, next)) : kind;
    if (own === 'invalid') return heads[i - 1] as number;
    handler.frame(bytes, start, next, own === 'binary', own === 'ascii');
  }
  return end;
};

/** The positions of complete frames: `heads` contains the start of the head and of the payload of each frame, `end` the end of the last. */
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

// A check of each text costs as much as the rest of the work for a frame, so one check covers all texts of a read. Zeros replace the bytes
// of each head that may not be ASCII. The ASCII heads separate the texts: all bytes are valid UTF-8 if and only if each text is. Then the
// heads are restored.
const kindOfTexts = (bytes: Buffer, heads: readonly number[], end: number): Kind => {
  for (let i = 0; i < heads.length; i += 2) zeroHead(bytes, heads[i] as number, heads[i + 1] as number);
  const kind = textKind(bytes.subarray(heads[0], end));
  for (let i = 0; i < heads.length; i += 2)
    writeHead(bytes, heads[i] as number, heads[i + 1] as number, heads[i + 2] ?? end);
  return kind;
};

type Kind = 'binary' | 'ascii' | 'utf8' | 'invalid';

/** Returns the encoding of a text frame; `invalid` if it is not UTF-8 (RFC 6455, 8.1). */
export const textKind = (text: Buffer): Kind => (isAscii(text) ? 'ascii' : isUtf8(text) ? 'utf8' : 'invalid');

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
