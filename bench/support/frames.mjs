// Frames as a server writes them (RFC 6455, 5.2): unmasked and not fragmented.
import { beyondAscii, payloads, tradeBatches } from './payloads.mjs';

const lengthOf = (bytes) => {
  if (bytes < 126) return Buffer.from([bytes]);
  const wide = Buffer.alloc(bytes < 65_536 ? 3 : 9);
  wide[0] = bytes < 65_536 ? 126 : 127;
  if (bytes < 65_536) wide.writeUInt16BE(bytes, 1);
  else wide.writeBigUInt64BE(BigInt(bytes), 1);
  return wide;
};

const opcodes = { text: 1, unicode: 1, batches: 1, binary: 2, close: 8 };

/** Returns one frame: `text`, `unicode` (text that isn't only ASCII), `binary` or `close`. */
export const frame = (data, kind = 'text') =>
  Buffer.concat([Buffer.from([0x80 | opcodes[kind]]), lengthOf(data.length), data]);

/** Returns a close frame. */
export const closeFrame = (code, reason = '') => {
  const data = Buffer.alloc(2 + Buffer.byteLength(reason));
  data.writeUInt16BE(code);
  data.write(reason, 2);
  return frame(data, 'close');
};

/**
 * Builds about a megabyte of complete frames, which a sender writes repeatedly. Of the kind `batches`, one in a thousand is of a certain wallet.
 *
 * @returns `bytes`, the number of `frames`, and `frameBytes`: the size of each
 */
export const batch = ({ size, kind }) => {
  const count = Math.max(4, Math.round(2 ** 20 / size));
  const contents = kind === 'batches' ? tradeBatches(size) : payloads(size, Math.min(count, 256));
  const distinct = contents.map((data) => frame(kind === 'unicode' ? beyondAscii(data) : data, kind));
  const all = kind === 'batches' ? distinct : Array.from({ length: count }, (_, n) => distinct[n % distinct.length]);
  return { bytes: Buffer.concat(all), frames: all.length, frameBytes: distinct[0].length };
};
