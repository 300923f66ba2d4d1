// JSON that is read and written as bytes, because it's longer as a string: in time, and in memory.
//
// In: bytes of JSON lines, or of payloads. Out: numbers in them, and the bytes that a string stands for, or the reverse.
// Never: memory that is used again.
import { allocateSeparately } from './received-frame.js';

export const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);

export const viewOfText = (text: string): DataView => viewOf(Buffer.from(text));

/** Whether bytes have at least four others at a place. A method of a Buffer takes four times as long. */
export const hasAt = (bytes: DataView, at: number, others: DataView): boolean => {
  const last = others.byteLength - 4;
  if (at < 0 || at + others.byteLength > bytes.byteLength) return false;
  for (let n = 0; n < last; n += 4) if (bytes.getInt32(at + n) !== others.getInt32(n)) return false;
  return bytes.getInt32(at + last) === others.getInt32(last);
};

const zero = 0x30;
/** More of them may be no safe integer. */
const mostDigits = 15;

/** Returns where the digits end that begin at a place: in front of another one if there are too many. */
export const endOfDigits = (bytes: DataView, from: number): number => {
  const most = Math.min(from + mostDigits, bytes.byteLength);
  let at = from;
  while (at < most && bytes.getUint8(at) >= zero && bytes.getUint8(at) <= zero + 9) at += 1;
  return at;
};

/** Reads digits; NaN if there are none. */
export const numberIn = (bytes: DataView, from: number, to: number): number => {
  let value = to > from ? 0 : NaN;
  for (let at = from; at < to; at += 1) value = value * 10 + bytes.getUint8(at) - zero;
  return value;
};

/** The size of a block of payloads. One that is kept keeps its whole block. */
const blockBytes = 64 * 1024;
/** Larger payloads aren't worth a part of a block. */
const mostBytes = blockBytes / 4;

const [quote, backslash, space] = [0x22, 0x5c, 0x20];
/** What a letter after a backslash stands for; 0 for a code unit, which has four digits. */
const escapes = new Uint8Array(256);
Buffer.from('"\\/bfnrt').forEach((letter, n) => (escapes[letter] = '"\\/\b\f\n\r\t'.charCodeAt(n)));

// Like Node's pool for small Buffers. Its memory is never reused, so all readers can share it.
let block: Buffer = Buffer.alloc(0);
let blockView = viewOf(block);
let used = 0;

/**
 * Returns what a JSON string stands for. `undefined` if it's large, ends earlier, or has an escaped code unit, which
 * only `JSON.parse` reads.
 *
 * @param json - UTF-8 with the string, without its quotes, from `from` to `to`. Control characters aren't noticed
 */
export const bytesOfJson = (json: DataView, from: number, to: number): Buffer | undefined => {
  const most = to - from;
  if (most < 0 || most > mostBytes) return undefined;
  if (used + most > block.length) {
    block = allocateSeparately(blockBytes);
    blockView = viewOf(block);
    used = 0;
  }
  const end = copyUnescaped(json, from, to, used);
  if (end < 0) return undefined;
  const bytes = block.subarray(used, end);
  used = end;
  return bytes;
};

/** Copies a string to the block. Returns where the copy ends, or -1. Four bytes at once take the time of one. */
const copyUnescaped = (json: DataView, from: number, to: number, start: number): number => {
  const copy = blockView;
  let at = start;
  for (let n = from; n < to;) {
    const four = n + 4 <= to ? json.getInt32(n) : 0;
    if (n + 4 <= to && !hasByte(four, backslash) && !hasByte(four, quote)) {
      copy.setInt32(at, four);
      n += 4;
      at += 4;
      continue;
    }
    let byte = json.getUint8(n);
    if (byte === quote) return -1;
    if (byte === backslash) {
      n += 1;
      byte = n < to ? (escapes[json.getUint8(n)] as number) : 0;
      if (byte === 0) return -1;
    }
    copy.setUint8(at, byte);
    n += 1;
    at += 1;
  }
  return at;
};

/**
 * Writes UTF-8 as a JSON string without its quotes, of at most twice as many bytes. Returns where it ends; -1 if it has a
 * control character, whose escape is longer.
 */
export const writeJsonString = (text: DataView, json: DataView, start: number): number => {
  const to = text.byteLength;
  let at = start;
  for (let n = 0; n < to;) {
    const four = n + 4 <= to ? text.getInt32(n) : 0;
    if (n + 4 <= to && !hasByte(four, backslash) && !hasByte(four, quote) && !hasControl(four)) {
      json.setInt32(at, four);
      n += 4;
      at += 4;
      continue;
    }
    const byte = text.getUint8(n);
    if (byte < space) return -1;
    if (byte === backslash || byte === quote) {
      json.setUint8(at, backslash);
      at += 1;
    }
    json.setUint8(at, byte);
    n += 1;
    at += 1;
  }
  return at;
};

/** Whether one of four bytes is less than a space. */
const hasControl = (four: number): boolean => ((four - space * 0x01010101) & ~four & 0x80808080) !== 0;

/** Whether one of four bytes has a value. Subtracting 1 from a byte that is 0 borrows: its highest bit is set then. */
const hasByte = (four: number, byte: number): boolean => {
  const zeroIfSame = four ^ (byte * 0x01010101);
  return ((zeroIfSame - 0x01010101) & ~zeroIfSame & 0x80808080) !== 0;
};
