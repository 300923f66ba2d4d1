import { frameHead, type FrameHead, isControl, Opcode } from './frame-head.js';
import { markShared } from './mark-shared.js';
import type { Tap } from './tap.js';
import { kindOf, tellWholeFrames } from './whole-frames.js';

/** Takes bytes as they are read, by `next(bytes)`, until it has what it returns. */
export type ByteReader<Result> = Generator<void, Result, Buffer>;

/** `ws` pauses for a turn after 16 KiB (Node 20) in one piece, and would not read what comes then within the call. */
const PIECE_BYTES = 8 * 1024;

/** Room for frames that are read in several turns. */
const POOL_BYTES = 64 * 1024;

/** Bytes that are there, and how far they are read. */
interface Cursor {
  bytes: Buffer;
  at: number;
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
  const cursor: Cursor = { bytes: yield, at: 0, pool: Buffer.alloc(0) };
  let toldAtFragment = -1;
  for (;;) {
    const isJoining = tap.told() === toldAtFragment;
    if (!isJoining) cursor.at = tellWholeFrames(cursor.bytes, cursor.at, tap);
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

function* more(cursor: Cursor): ByteReader<void> {
  const rest = cursor.bytes.subarray(cursor.at);
  const bytes = yield;
  cursor.bytes = rest.length === 0 ? bytes : shared(Buffer.concat([rest, bytes]));
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
  if (length > POOL_BYTES / 4) return shared(Buffer.allocUnsafeSlow(length));
  if (length > cursor.pool.length) cursor.pool = shared(Buffer.allocUnsafeSlow(POOL_BYTES));
  const data = cursor.pool.subarray(0, length);
  cursor.pool = cursor.pool.subarray(length);
  return data;
};

const shared = (bytes: Buffer): Buffer => {
  markShared(bytes.buffer);
  return bytes;
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
