/** One payload of a feed: a string becomes a text frame, bytes become a binary frame. */
export type Payload = string | Uint8Array;

/**
 * Encodes a payload as one unmasked WebSocket frame (RFC 6455, section 5.2).
 *
 * A server sends the same bytes to every client, so each frame is encoded once.
 */
export const encodeFrame = (payload: Payload): Buffer => {
  const isText = typeof payload === 'string';
  const length = isText ? Buffer.byteLength(payload) : payload.byteLength;
  const start = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = isText ? fin | text : fin | binary;
  if (start === 2) frame[1] = length;
  else if (start === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeUIntBE(0, 2, 2);
    frame.writeUIntBE(length, 4, 6);
  }
  if (isText) frame.write(payload, start);
  else frame.set(payload, start);
  return frame;
};

const fin = 0x80;
const text = 0x1;
const binary = 0x2;
