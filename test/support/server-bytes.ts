import fc, { type Arbitrary } from 'fast-check';

/** The fields of a frame header (RFC 6455, 5.2). Any of them may be invalid. */
interface Head {
  readonly isFinal: boolean;
  readonly reserved: number;
  readonly opcode: number;
  readonly isMasked: boolean;
  /** The length in the header, and the number of extra bytes that encode it: 0, 2 or 8. */
  readonly length: number;
  readonly lengthBytes: 0 | 2 | 8;
}

/** Encodes a frame, valid or not. */
const encode = ({ isFinal, reserved, opcode, isMasked, length, lengthBytes }: Head, payload: Uint8Array): Buffer => {
  const head = Buffer.alloc(2 + lengthBytes + (isMasked ? 4 : 0));
  head[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  head[1] = (isMasked ? 0x80 : 0) | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) head.writeUInt16BE(length, 2);
  if (lengthBytes === 8) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
};

const shortest = (length: number) => (length < 126 ? 0 : length < 65_536 ? 2 : 8);

/** Encodes a valid frame. */
export const frameOf = (opcode: number, payload: Uint8Array, isFinal = true): Buffer =>
  encode(
    { isFinal, reserved: 0, opcode, isMasked: false, length: payload.length, lengthBytes: shortest(payload.length) },
    payload,
  );

const sizes = fc.oneof(
  { arbitrary: fc.nat(40), weight: 6 },
  {
    arbitrary: fc.constantFrom(0, 1, 124, 125, 126, 127, 128, 255, 256, 8_191, 8_192, 8_193, 16_383, 16_384),
    weight: 2,
  },
  { arbitrary: fc.constantFrom(65_535, 65_536, 65_537), weight: 1 },
);

const bytesOf = (size: number, seed: number): Buffer =>
  Buffer.alloc(size, Buffer.from([seed, seed >> 3, 0x81, seed ^ 0x55]));

const payloads = fc.tuple(sizes, fc.nat(255)).map(([size, seed]) => bytesOf(size, seed));
const texts = fc
  .tuple(sizes, fc.constantFrom('a', 'é', '€', '😀', '{"n":1}', '\0'))
  .map(([size, unit]) => Buffer.from(unit.repeat(Math.ceil(size / unit.length))).subarray(0, size))
  // A cut within a character makes the text invalid. This removes the partial character in most cases.
  .map((text) =>
    text.length > 0 && (text.at(-1) as number) > 0x7f ? Buffer.from(text.toString('utf8').slice(0, -1)) : text,
  );
const badTexts = fc
  .tuple(
    texts,
    fc.constantFrom([0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]),
    fc.boolean(),
  )
  .map(([text, bad, isLast]) => Buffer.concat(isLast ? [text, Buffer.from(bad)] : [Buffer.from(bad), text]));

const control = (opcode: number) => fc.uint8Array({ maxLength: 125 }).map((payload) => frameOf(opcode, payload));

const close = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(1000, 1001, 1008, 1013, 3000, 4001, 4003, 4999),
      fc.constantFrom(0, 999, 1004, 1005, 1006, 1015, 2999, 5000),
    ),
    fc.oneof(
      fc.string({ maxLength: 40 }).map((reason) => Buffer.from(reason)),
      fc.uint8Array({ maxLength: 123 }),
    ),
  )
  .map(([code, reason]) => Buffer.concat([Buffer.from([code >> 8, code & 255]), reason]).subarray(0, 125))
  .map((payload) => frameOf(8, payload));

const fragmented: Arbitrary<Buffer> = fc
  .tuple(
    fc.constantFrom(1, 2),
    fc.oneof({ arbitrary: texts, weight: 4 }, { arbitrary: payloads, weight: 1 }),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 4 }),
    fc.array(fc.oneof(control(9), control(10)), { maxLength: 3 }),
  )
  .map(([opcode, payload, cuts, controls]) => {
    const at = [0, ...cuts.map((cut) => Math.floor(cut * payload.length)).sort((a, b) => a - b), payload.length];
    const parts = at
      .slice(1)
      .map((end, i) => frameOf(i === 0 ? opcode : 0, payload.subarray(at[i], end), i === at.length - 2));
    return Buffer.concat(
      parts.flatMap((part, i) => [part, ...(controls[i] && i < parts.length - 1 ? [controls[i]] : [])]),
    );
  });

const anything: Arbitrary<Buffer> = fc
  .record({
    isFinal: fc.boolean(),
    reserved: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, { arbitrary: fc.nat(7), weight: 1 }),
    opcode: fc.nat(15),
    isMasked: fc.oneof({ arbitrary: fc.constant(false), weight: 3 }, { arbitrary: fc.constant(true), weight: 1 }),
    lengthBytes: fc.constantFrom(0 as const, 2 as const, 8 as const),
    payload: payloads,
    over: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, { arbitrary: fc.nat(1_000_000_000), weight: 1 }),
  })
  .map(({ payload, over, ...head }) => {
    const most = head.lengthBytes === 0 ? 125 : head.lengthBytes === 2 ? 65_535 : 2 ** 40;
    return encode({ ...head, length: Math.min(payload.length + over, most) }, payload);
  });

const overlong = fc
  .constantFrom('0020000000000000', 'ffffffffffffffff', '8000000000000000', '001fffffffffffff')
  .map((length) => Buffer.concat([Buffer.from([0x82, 127]), Buffer.from(length, 'hex')]));

const right = fc.oneof(
  { arbitrary: texts.map((text) => frameOf(1, text)), weight: 8 },
  { arbitrary: payloads.map((bytes) => frameOf(2, bytes)), weight: 3 },
  { arbitrary: control(9), weight: 1 },
  { arbitrary: control(10), weight: 1 },
  { arbitrary: fragmented, weight: 2 },
);
const wrong = fc.oneof(
  fc
    .tuple(fc.constantFrom(8, 9, 10), fc.constantFrom(126, 300))
    .map(([opcode, size]) => frameOf(opcode, Buffer.alloc(size))),
  badTexts.map((text) => frameOf(1, text)),
  close,
  fc.constantFrom(frameOf(8, Buffer.alloc(0)), frameOf(8, Buffer.of(3))),
  anything,
  overlong,
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(
    frameOf(0, Buffer.from('lost')),
    frameOf(0, Buffer.from('lost'), false),
    frameOf(1, Buffer.from('begun'), false),
  ),
);

/** Bytes that a server sends after the handshake: mostly valid frames, some invalid ones, and a few changed bytes. */
export const serverBytes: Arbitrary<Buffer> = fc
  .tuple(
    fc.array(fc.oneof({ arbitrary: right, weight: 12 }, { arbitrary: wrong, weight: 1 }), { maxLength: 12 }),
    fc.oneof(
      { arbitrary: fc.constant([]), weight: 2 },
      { arbitrary: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), weight: 1 },
    ),
  )
  .map(([frames, changes]) => {
    const bytes = Buffer.concat(frames);
    for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
    return bytes;
  });

/** Splits bytes at a few places, at many, or after each of the first bytes. */
export const cuts: Arbitrary<(bytes: Buffer) => Buffer[]> = fc
  .oneof(
    fc
      .array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { maxLength: 3 })
      .map((at) => ({ at, each: 0 })),
    fc
      .array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { maxLength: 60 })
      .map((at) => ({ at, each: 0 })),
    fc.nat(600).map((each) => ({ at: [], each })),
  )
  .map(({ at, each }) => (bytes) => {
    const places = new Set([
      ...at.map((part) => Math.floor(part * bytes.length)),
      ...Array.from({ length: each }, (_, i) => i),
      bytes.length,
    ]);
    const ends = [...places].filter((place) => place > 0 && place <= bytes.length).sort((a, b) => a - b);
    // A separate buffer for each part, as from a socket.
    return ends.map((end, i) => Buffer.from(bytes.subarray(ends[i - 1] ?? 0, end)));
  });
