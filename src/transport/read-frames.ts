import { isAscii, isUtf8 } from 'node:buffer';
import { PayloadKind } from '../frames/received-frame.js';

export interface FrameHandler {
  /** How many frames arrived, here and from `ws`. */
  readonly framesReceived: number;
  /** Whether the subscription has ended. */
  readonly isClosed: boolean;
  readonly maxFrameBytes: number;
  /** Called for each read, before the frames in it. */
  read(): void;
  /**
   * Called for each complete data frame. Its payload is in `bytes` from `start` to `end`, until `readEnd` is called.
   */
  frame(bytes: Buffer, start: number, end: number, kind: PayloadKind): void;
  /** Called at the end of each read, before its memory is reused. */
  readEnd(): void;
  /** Called after `ws` received a close frame with this payload. */
  close(payload: Buffer): void;
}

/**
 * Size limit of a piece for `ws`. After a piece of 16 KiB or more (Node 20), `ws` pauses and doesn't read the rest
 * within the call.
 */
const PIECE_BYTES = 8 * 1024;

/**
 * Creates a function that reads a server's frames (RFC 6455, section 5) from bytes that may be split anywhere. It's
 * called with the unconsumed bytes followed by those of the next read, and returns how many it consumed.
 *
 * Emits every valid data frame that isn't fragmented. Passes all other bytes to `ws`, in order: `ws` answers pings and
 * close frames, joins fragments and reports invalid frames. From a first fragment until the joined message is emitted,
 * `ws` gets every frame. From an invalid or too large frame on, after a close frame, and once the handler is closed, it
 * gets all bytes.
 *
 * @param pass - passes bytes to `ws`, which reads them before it returns
 */
export const frameReader = (handler: FrameHandler, pass: (bytes: Buffer) => void): ((bytes: Buffer) => number) => {
  /** How many bytes of a frame for `ws` are still to come; `Infinity` once it gets everything. */
  let passing = 0;
  let framesAtFragment = -1;

  const passFrom = (bytes: Buffer, from: number): number => {
    const end = Math.min(from + passing, bytes.length);
    for (let at = from; at < end; at += PIECE_BYTES) pass(bytes.subarray(at, Math.min(at + PIECE_BYTES, end)));
    passing -= end - from;
    return end;
  };

  return (bytes) => {
    let at = passFrom(bytes, 0);
    while (passing === 0) {
      const isJoining = handler.framesReceived === framesAtFragment;
      if (!isJoining) at = emitWholeFrames(bytes, at, handler);
      const head = frameHead(bytes, at);
      if (head === undefined) return at;
      const { opcode, length, isFinal } = head;
      const start = at + head.bytes;
      const end = start + length;
      if (length > handler.maxFrameBytes || handler.isClosed) passing = Infinity;
      else if (opcode === Opcode.Ping || opcode === Opcode.Pong) passing = end - at;
      else if (opcode !== Opcode.Close && (isJoining || !isFinal || opcode === Opcode.Continuation)) {
        framesAtFragment = handler.framesReceived;
        passing = end - at;
      } else if (bytes.length < end) return at;
      else if (opcode === Opcode.Close) {
        pass(bytes.subarray(at, end));
        at = end;
        handler.close(bytes.subarray(start, end));
        passing = Infinity;
      } else {
        const kind = opcode === Opcode.Text ? textKind(bytes.subarray(start, end)) : PayloadKind.Binary;
        if (kind === undefined) passing = Infinity;
        else {
          handler.frame(bytes, start, end, kind);
          at = end;
        }
      }
      at = passFrom(bytes, at);
    }
    return at;
  };
};

/** The opcodes of WebSocket frames (RFC 6455, 5.2). */
const Opcode = { Continuation: 0, Text: 1, Binary: 2, Close: 8, Ping: 9, Pong: 10 } as const;

// The first byte of an unfragmented frame: final, no reserved bits.
const TEXT = 0x80 | Opcode.Text;
const BINARY = 0x80 | Opcode.Binary;

/**
 * Emits consecutive data frames that arrived whole in one read, as long as all are text or all are binary. Returns
 * where the first other frame begins: of another kind, invalid, or after the subscription ended.
 */
const emitWholeFrames = (bytes: Buffer, at: number, handler: FrameHandler): number => {
  const first = bytes[at] === TEXT ? TEXT : BINARY;
  const { heads, end } = wholeFrames(bytes, at, first, handler.maxFrameBytes);
  if (heads.length === 0) return at;
  const kind = first === TEXT ? kindOfTexts(bytes, heads, end) : PayloadKind.Binary;
  for (let i = 1; i < heads.length; i += 2) {
    const start = heads[i] as number;
    const next = heads[i + 1] ?? end;
    if (handler.isClosed) return heads[i - 1] as number;
    const frameKind = kind ?? textKind(bytes.subarray(start, next));
    if (frameKind === undefined) return heads[i - 1] as number;
    handler.frame(bytes, start, next, frameKind);
  }
  return end;
};

/** Locates complete frames: where the head and the payload of each begin, and where the last one ends. */
const wholeFrames = (bytes: Buffer, from: number, first: number, maxFrameBytes: number) => {
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

// Checking each text would cost as much as all other work for a frame, so one check covers all texts of a read. Zeros
// replace the bytes of each head that may not be ASCII. Since ASCII heads separate the texts, all bytes are valid UTF-8
// if and only if each text is. Then the heads are restored.
const kindOfTexts = (bytes: Buffer, heads: readonly number[], end: number): PayloadKind | undefined => {
  for (let i = 0; i < heads.length; i += 2) zeroHead(bytes, heads[i] as number, heads[i + 1] as number);
  const kind = textKind(bytes.subarray(heads[0], end));
  for (let i = 0; i < heads.length; i += 2)
    writeHead(bytes, heads[i] as number, heads[i + 1] as number, heads[i + 2] ?? end);
  return kind;
};

const textKind = (text: Buffer): PayloadKind | undefined => {
  if (isAscii(text)) return PayloadKind.Ascii;
  return isUtf8(text) ? PayloadKind.Utf8 : undefined;
};

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

interface FrameHead {
  readonly isFinal: boolean;
  readonly opcode: number;
  /** The head's length in bytes. */
  readonly bytes: number;
  /** The payload's length in bytes; `Infinity` if the head is invalid, because nothing after it can be parsed. */
  readonly length: number;
}

const known: ReadonlySet<number> = new Set(Object.values(Opcode));

/** Parses the head of the frame at `at`. Returns `undefined` if more bytes are needed. */
const frameHead = (bytes: Buffer, at: number): FrameHead | undefined => {
  if (bytes.length < at + 2) return undefined;
  const first = bytes.readUInt8(at);
  const second = bytes.readUInt8(at + 1);
  const opcode = first & 0x0f;
  const isFinal = first >= 0x80;
  const hasReservedBits = (first & 0x70) !== 0;
  const isMasked = second >= 0x80;
  if (hasReservedBits || isMasked || !known.has(opcode) || (opcode >= Opcode.Close && (!isFinal || second > 125)))
    return { isFinal, opcode, bytes: 2, length: Infinity };
  const extra = second === 127 ? 8 : second === 126 ? 2 : 0;
  if (bytes.length < at + 2 + extra) return undefined;
  const length =
    extra === 8 ? Number(bytes.readBigUInt64BE(at + 2)) : extra === 2 ? bytes.readUInt16BE(at + 2) : second;
  return { isFinal, opcode, bytes: 2 + extra, length };
};
