/** The opcodes of WebSocket frames (RFC 6455, 5.2). */
export const Opcode = { Continuation: 0, Text: 1, Binary: 2, Close: 8, Ping: 9, Pong: 10 } as const;

/** The head of a WebSocket frame from a server. */
export interface FrameHead {
  readonly isFinal: boolean;
  readonly opcode: number;
  /** Length of the head in bytes. */
  readonly bytes: number;
  /** Length of the payload in bytes; `Infinity` when the head is invalid, because nothing after it can be parsed. */
  readonly length: number;
}

/** Returns whether a frame is a control frame. It has at most 125 bytes and may be sent between fragments (RFC 6455, 5.5). */
export const isControl = (opcode: number): boolean => opcode >= Opcode.Close;

const known: ReadonlySet<number> = new Set(Object.values(Opcode));

/** Parses the head of a frame that begins at `at`. Returns `undefined` if more bytes are needed. */
export const frameHead = (bytes: Buffer, at: number): FrameHead | undefined => {
  if (bytes.length < at + 2) return undefined;
  const first = bytes.readUInt8(at);
  const second = bytes.readUInt8(at + 1);
  const opcode = first & 0x0f;
  const isFinal = first >= 0x80;
  const hasReservedBits = (first & 0x70) !== 0;
  const isMasked = second >= 0x80;
  if (hasReservedBits || isMasked || !known.has(opcode) || (isControl(opcode) && (!isFinal || second > 125)))
    return { isFinal, opcode, bytes: 2, length: Infinity };
  const extra = second === 127 ? 8 : second === 126 ? 2 : 0;
  if (bytes.length < at + 2 + extra) return undefined;
  const length =
    extra === 8 ? Number(bytes.readBigUInt64BE(at + 2)) : extra === 2 ? bytes.readUInt16BE(at + 2) : second;
  return { isFinal, opcode, bytes: 2 + extra, length };
};
