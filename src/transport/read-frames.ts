import { frameHead, type FrameHead, isControl, Opcode } from './frame-head.js';
import { markUntransferable } from './frame-memory.js';
import { emitWholeFrames, type FrameHandler, textKind } from './whole-frames.js';

/** A generator that receives the bytes of each read by `next(bytes)`, until it returns a result. */
export type ByteReader<Result> = Generator<void, Result, Buffer>;

/** Size limit of a piece for `ws`. After a piece of 16 KiB or more (Node 20), `ws` pauses, and does not read the rest within the call. */
const PIECE_BYTES = 8 * 1024;

/** Size of the memory for small frames that are copied. */
const POOL_BYTES = 64 * 1024;

/** The bytes of the current read, and the position in them. */
interface Cursor {
  bytes: Buffer;
  at: number;
  /** Unused memory for small frames that are copied. */
  pool: Buffer;
}

/**
 * Reads the frames of a server (RFC 6455, section 5) from bytes that can be split anywhere.
 *
 * Emits every valid data frame that is not fragmented. Passes all other bytes to `ws`, in order: `ws` answers pings and close
 * frames, joins fragments and reports invalid frames. From a first fragment until the joined message is emitted, `ws` receives
 * every frame. Returns at an invalid or too large frame, after a close frame, and when the handler is closed: `ws` reads all later
 * bytes.
 *
 * Call `next()` once before the first bytes.
 *
 * @param pass - passes bytes to `ws`, which reads them within the call
 * @returns the bytes that were neither emitted nor passed
 */
export function* readFrames(handler: FrameHandler, pass: (bytes: Buffer) => void): ByteReader<Buffer> {
  const cursor: Cursor = { bytes: yield, at: 0, pool: Buffer.alloc(0) };
  let receivedAtFragment = -1;
  for (;;) {
    const isJoining = handler.framesReceived() === receivedAtFragment;
    if (!isJoining) cursor.at = emitWholeFrames(cursor.bytes, cursor.at, handler);
    const head = frameHead(cursor.bytes, cursor.at) ?? (yield* headOf(cursor));
    const { opcode, length, isFinal } = head;
    if (length > handler.maxFrameBytes || handler.isClosed()) break;
    if (isControl(opcode)) {
      const payload = yield* passControl(cursor, head, pass);
      if (opcode !== Opcode.Close) continue;
      handler.close(payload);
      break;
    }
    if (isJoining || !isFinal || opcode === Opcode.Continuation) {
      receivedAtFragment = handler.framesReceived();
      yield* passFrame(cursor, head, pass);
      continue;
    }
    const start = cursor.bytes.subarray(cursor.at, cursor.at + head.bytes);
    const data = yield* payloadOf(cursor, head);
    const kind = opcode === Opcode.Text ? textKind(data) : 'binary';
    if (kind === 'invalid') {
      pass(start);
      pass(data);
      break;
    }
    handler.frame(data, kind === 'binary', kind === 'ascii');
  }
  return cursor.bytes.subarray(cursor.at);
}

function* more(cursor: Cursor): ByteReader<void> {
  const rest = cursor.bytes.subarray(cursor.at);
  const bytes = yield;
  cursor.bytes = rest.length === 0 ? bytes : untransferable(Buffer.concat([rest, bytes]));
  cursor.at = 0;
}

function* headOf(cursor: Cursor): ByteReader<FrameHead> {
  for (;;) {
    const head = frameHead(cursor.bytes, cursor.at);
    if (head) return head;
    yield* more(cursor);
  }
}

// A frame that `emitWholeFrames` does not emit is copied: most of them arrive in several reads. Small frames share a buffer, because a
// separate buffer costs more than their bytes.
const bytesFor = (cursor: Cursor, length: number): Buffer => {
  if (length > POOL_BYTES / 4) return untransferable(Buffer.allocUnsafeSlow(length));
  if (length > cursor.pool.length) cursor.pool = untransferable(Buffer.allocUnsafeSlow(POOL_BYTES));
  const data = cursor.pool.subarray(0, length);
  cursor.pool = cursor.pool.subarray(length);
  return data;
};

const untransferable = (bytes: Buffer): Buffer => {
  markUntransferable(bytes.buffer);
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
