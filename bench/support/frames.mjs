// Frames as a server writes them (RFC 6455, 5.2): unmasked and not fragmented.
import { beyondAscii, isWantedKind, payloads, wantedPayloads } from './payloads.mjs';

const lengthOf = (bytes) => {
  if (bytes < 126) return Buffer.from([bytes]);
  const wide = Buffer.alloc(bytes < 65_536 ? 3 : 9);
  wide[0] = bytes < 65_536 ? 126 : 127;
  if (bytes < 65_536) wide.writeUInt16BE(bytes, 1);
  else wide.writeBigUInt64BE(BigInt(bytes), 1);
  return wide;
};

const opcodes = { text: 1, unicode: 1, batches: 1, calls: 1, prices: 1, binary: 2, close: 8 };

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

const surrounded = (before, after) => (data) => Buffer.concat([Buffer.from(before), data, Buffer.from(after)]);

/** How each protocol wraps a payload. The plain feed doesn't. */
const wraps = {
  plain: (data) => data,
  graphql: surrounded('{"id":"1","type":"next","payload":{"data":{"feed":', '}}}'),
  centrifuge: surrounded('{"push":{"channel":"feed","pub":{"data":', '}}}'),
};

/** The supported protocols. */
export const protocols = Object.keys(wraps);

/**
 * Builds about a megabyte of complete frames, which a sender writes repeatedly. Of the kinds `batches` and `calls`, one in a thousand is of a certain wallet. Those of
 * the kind `prices` are alike, and may be larger than that.
 *
 * @returns `bytes`, the number of `frames`, and `frameBytes`: the size of each
 */
export const batch = ({ size, kind, protocol }) => {
  if (isWantedKind(kind)) {
    const all = wantedPayloads(size, kind).map((data) => frame(wraps[protocol](data), kind));
    return { bytes: Buffer.concat(all), frames: all.length, frameBytes: all[0].length };
  }
  if (kind === 'prices') {
    const one = frame(Buffer.alloc(size, '{"price":1.0842,"size":100}'));
    const frames = Math.max(1, Math.round(2 ** 20 / size));
    return { bytes: Buffer.concat(new Array(frames).fill(one)), frames, frameBytes: one.length };
  }
  const count = Math.max(4, Math.round(2 ** 20 / size));
  const contents = payloads(size, Math.min(count, 256)).map((data) => (kind === 'unicode' ? beyondAscii(data) : data));
  const distinct = contents.map((data) => frame(wraps[protocol](data), kind));
  const all = Array.from({ length: count }, (_, n) => distinct[n % distinct.length]);
  return { bytes: Buffer.concat(all), frames: count, frameBytes: distinct[0].length };
};
