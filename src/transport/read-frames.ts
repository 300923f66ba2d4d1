import { frameHead, type FrameHead, isControl, Opcode } from './frame-head.js';
import { emitWholeFrames, type FrameHandler, textKind } from './whole-frames.js';

/**
 * A generator that receives the bytes of each read by `next(bytes)`, and returns how many of them it used. The next bytes must begin with
 * those that it did not use.
 */
export type ByteReader<Result> = Generator<number, Result, Buffer>;

/** Size limit of a piece for `ws`. After a piece of 16 KiB or more (Node 20), `ws` pauses, and does not read the rest within the call. */
const PIECE_BYTES = 8 * 1024;

/** The bytes of the current read, and the position in them. */
interface Cursor {
  bytes: Buffer;
  at: number;
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
 * @returns how many bytes were emitted or passed
 */
export function* readFrames(handler: FrameHandler, pass: (bytes: Buffer) => void): ByteReader<number> {
  const cursor: Cursor = { bytes: yield 0, at: 0 };
  let receivedAtFragment = -1;
  for (;;) {
    const isJoining = handler.framesReceived() === receivedAtFragment;
    if (!isJoining) cursor.at = emitWholeFrames(cursor.bytes, cursor.at, handler);
    const head = frameHead(cursor.bytes, cursor.at);
    if (head === undefined) {
      yield* more(cursor);
      continue;
    }
    const { opcode, length, isFinal } = head;
    if (length > handler.maxFrameBytes || handler.isClosed()) break;
    if (!isControl(opcode) && (isJoining || !isFinal || opcode === Opcode.Continuation)) {
      receivedAtFragment = handler.framesReceived();
      yield* passFrame(cursor, head, pass);
      continue;
    }
    const start = cursor.at + head.bytes;
    const end = start + length;
    if (cursor.bytes.length < end) {
      yield* more(cursor);
      continue;
    }
    if (isControl(opcode)) {
      const frame = cursor.bytes.subarray(cursor.at, end);
      cursor.at = end;
      pass(frame);
      if (opcode !== Opcode.Close) continue;
      handler.close(frame.subarray(head.bytes));
      break;
    }
    const kind = opcode === Opcode.Text ? textKind(cursor.bytes.subarray(start, end)) : 'binary';
    if (kind === 'invalid') break;
    cursor.at = end;
    handler.frame(cursor.bytes, start, end, kind === 'binary', kind === 'ascii');
  }
  return cursor.at;
}

function* more(cursor: Cursor): ByteReader<void> {
  cursor.bytes = yield cursor.at;
  cursor.at = 0;
}

function* passFrame(cursor: Cursor, head: FrameHead, pass: (bytes: Buffer) => void): ByteReader<void> {
  for (let left = head.bytes + head.length; left > 0;) {
    const piece = cursor.bytes.subarray(cursor.at, cursor.at + Math.min(left, PIECE_BYTES));
    pass(piece);
    cursor.at += piece.length;
    left -= piece.length;
    if (left > 0 && cursor.at === cursor.bytes.length) yield* more(cursor);
  }
}
