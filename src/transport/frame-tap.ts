import { isAscii, isUtf8 } from 'node:buffer';
import { frameHead, type FrameHead, isControl, Opcode } from './frame-head.js';

/** What an open connection wants to hear of its bytes, and what has to be known for that. */
export interface Tap {
  /** Bytes were read: what is told up to the next call came in them. */
  readonly read: () => void;
  /** A data frame is whole; a text that is ASCII alone is told as such. */
  readonly frame: (data: Buffer, isBinary: boolean, isAscii: boolean) => void;
  /** `ws` was given a close frame with this payload. */
  readonly close: (payload: Buffer) => void;
  /** How many frames were told so far, by this tap and by `ws`. */
  readonly told: () => number;
  /** Whether nobody listens any more. */
  readonly isClosed: () => boolean;
  readonly maxFrameBytes: number;
}

/** Takes bytes as they are read, by `next(bytes)`, until it has what it returns. */
export type ByteReader<Result> = Generator<void, Result, Buffer>;

/** `ws` pauses for a turn after 16 KiB (Node 20) in one piece, and would not read what comes then within the call. */
const PIECE_BYTES = 8 * 1024;

const POOL_BYTES = 64 * 1024;

// How whole frames begin: final, without reserved bits.
const TEXT = 0x80 | Opcode.Text;
const BINARY = 0x80 | Opcode.Binary;

/** Bytes that are there, and how far they are read. */
interface Cursor {
  bytes: Buffer;
  at: number;
  /** Where the heads and the payloads begin of the frames that lie whole in them. */
  readonly heads: number[];
  /** Room for frames that are read in several turns. */
  pool: Buffer;
}

/**
 * Reads the frames of a server (RFC 6455, section 5) out of bytes that are cut anywhere.
 *
 * Tells every data frame that is neither fragmented nor wrong. All other bytes go to `ws`, in their order: it answers pings and
 * close frames, joins fragments and judges what is wrong. From a first fragment until it has told the message `ws` gets every
 * frame. What is wrong, a close frame, and a tap that is closed end the reading: all that follows is for `ws`.
 *
 * Call `next()` once before the first bytes.
 *
 * @param pass - gives bytes to `ws`, which reads them within the call
 * @returns the bytes that were read, and not told or passed
 */
export function* frameTap(tap: Tap, pass: (bytes: Buffer) => void): ByteReader<Buffer> {
  const cursor: Cursor = { bytes: yield, at: 0, heads: [], pool: Buffer.alloc(0) };
  let toldAtFragment = -1;
  for (;;) {
    const isJoining = tap.told() === toldAtFragment;
    if (!isJoining) tellWholeFrames(cursor, tap);
    const head = frameHead(cursor.bytes, cursor.at) ?? (yield* headOf(cursor));
    const { opcode, length, isFinal } = head;
    if (length > tap.maxFrameBytes || tap.isClosed()) break;
    if (isControl(opcode)) {
      const payload = yield* passControl(cursor, head, pass);
      if (opcode !== Opcode.Close) continue;
      tap.close(payload);
      break;
    }
    if (isJoining || !isFinal || opcode === Opcode.Continuation) {
      toldAtFragment = tap.told();
      yield* passFrame(cursor, head, pass);
      continue;
    }
    const start = cursor.bytes.subarray(cursor.at, cursor.at + head.bytes);
    const data = yield* payloadOf(cursor, head);
    const kind = opcode === Opcode.Text ? kindOf(data) : 'binary';
    if (kind === 'invalid') {
      pass(start);
      pass(data);
      break;
    }
    tap.frame(data, kind === 'binary', kind === 'ascii');
  }
  return cursor.bytes.subarray(cursor.at);
}

// The common case: texts, or binary frames, that lie whole in what was read.
const tellWholeFrames = (cursor: Cursor, tap: Tap): void => {
  const { bytes, heads, at } = cursor;
  const first = bytes[at] === TEXT ? TEXT : BINARY;
  const end = findWhole(cursor, first, tap.maxFrameBytes);
  const kind = first === TEXT ? kindOfTexts(bytes, heads, end) : 'binary';
  for (let i = 1; i < heads.length && !tap.isClosed(); i += 2) {
    const start = heads[i] as number;
    const next = heads[i + 1] ?? end;
    const data = new View(bytes.buffer, bytes.byteOffset + start, next - start);
    const own = kind === 'invalid' ? kindOf(data) : kind;
    if (own === 'invalid') return;
    cursor.at = next;
    tap.frame(data, own === 'binary', own === 'ascii');
  }
};

// Notes where their heads and their payloads begin; gives where the last one ends.
const findWhole = ({ bytes, at: from, heads }: Cursor, first: number, maxFrameBytes: number): number => {
  heads.length = 0;
  for (let at = from; ;) {
    if (bytes[at] !== first) return at;
    let length = bytes[at + 1] ?? 127;
    let start = at + 2;
    if (length === 126) {
      length = ((bytes[at + 2] ?? 255) << 8) | (bytes[at + 3] ?? 255);
      start = at + 4;
    }
    if (length > maxFrameBytes || start + length > bytes.length || (bytes[at + 1] as number) > 126) return at;
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

const kindOf = (text: Buffer): Kind => (isAscii(text) ? 'ascii' : isUtf8(text) ? 'utf8' : 'invalid');

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

// What `subarray` makes, without its checks: they cost more than all the rest.
const { [Symbol.species]: View } = Buffer as unknown as {
  [Symbol.species]: new (buffer: ArrayBufferLike, offset: number, length: number) => Buffer;
};

function* more(cursor: Cursor): ByteReader<void> {
  const rest = cursor.bytes.subarray(cursor.at);
  const bytes = yield;
  cursor.bytes = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
  cursor.at = 0;
}

function* headOf(cursor: Cursor): ByteReader<FrameHead> {
  for (;;) {
    const head = frameHead(cursor.bytes, cursor.at);
    if (head) return head;
    yield* more(cursor);
  }
}

// A frame that is read in several turns gets other bytes; small ones share a buffer, for a buffer costs more than what is in it.
const bytesFor = (cursor: Cursor, length: number): Buffer => {
  if (length > POOL_BYTES / 4) return Buffer.allocUnsafeSlow(length);
  if (length > cursor.pool.length) cursor.pool = Buffer.allocUnsafeSlow(POOL_BYTES);
  const data = cursor.pool.subarray(0, length);
  cursor.pool = cursor.pool.subarray(length);
  return data;
};

function* payloadOf(cursor: Cursor, head: FrameHead): ByteReader<Buffer> {
  const data = bytesFor(cursor, head.length);
  cursor.at += head.bytes;
  for (let filled = 0; ;) {
    const copied = cursor.bytes.copy(data, filled, cursor.at);
    cursor.at += copied;
    filled += copied;
    if (filled === head.length) return data;
    cursor.bytes = yield;
    cursor.at = 0;
  }
}

function* passControl(cursor: Cursor, head: FrameHead, pass: (bytes: Buffer) => void): ByteReader<Buffer> {
  const size = head.bytes + head.length;
  while (cursor.bytes.length - cursor.at < size) yield* more(cursor);
  const frame = cursor.bytes.subarray(cursor.at, cursor.at + size);
  cursor.at += size;
  pass(frame);
  return frame.subarray(head.bytes);
}

function* passFrame(cursor: Cursor, head: FrameHead, pass: (bytes: Buffer) => void): ByteReader<void> {
  for (let left = head.bytes + head.length; left > 0;) {
    const piece = cursor.bytes.subarray(cursor.at, cursor.at + Math.min(left, PIECE_BYTES));
    pass(piece);
    cursor.at += piece.length;
    left -= piece.length;
    if (left > 0 && cursor.at === cursor.bytes.length) {
      cursor.bytes = yield;
      cursor.at = 0;
    }
  }
}
