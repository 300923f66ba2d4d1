import fc, { type Arbitrary } from 'fast-check';
import { closePayload, encodeFrame, wsFrame } from './wire.js';

/** Draws from one of several arbitraries, each with its weight. */
export const weighted = <T>(...values: readonly (readonly [weight: number, arbitrary: Arbitrary<T>])[]): Arbitrary<T> =>
  fc.oneof(...values.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const sizes = weighted(
  [6, fc.nat(40)],
  [2, fc.constantFrom(0, 1, 124, 125, 126, 127, 128, 255, 256, 8_191, 8_192, 8_193, 16_383, 16_384)],
  [1, fc.constantFrom(65_535, 65_536, 65_537)],
);
const payloads = fc
  .tuple(sizes, fc.nat(255))
  .map(([size, seed]) => Buffer.alloc(size, Buffer.from([seed, seed >> 3, 0x81, seed ^ 0x55])));
const texts = fc
  .tuple(sizes, fc.constantFrom('a', 'é', '€', '😀', '{"n":1}', '\0'))
  .map(([size, unit]) => Buffer.from(unit.repeat(Math.ceil(size / unit.length))).subarray(0, size))
  // A cut within a character makes the text invalid, so this removes the partial character in most cases.
  .map((text) =>
    text.length > 0 && (text.at(-1) as number) > 0x7f ? Buffer.from(text.toString('utf8').slice(0, -1)) : text,
  );
const badBytes = fc.constantFrom([0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]);
const badTexts = fc
  .tuple(texts, badBytes, fc.boolean())
  .map(([text, bad, isLast]) => Buffer.concat(isLast ? [text, Buffer.from(bad)] : [Buffer.from(bad), text]));

const control = (opcode: number) => fc.uint8Array({ maxLength: 125 }).map((payload) => wsFrame(opcode, payload));

const closeCodes = fc.constantFrom(
  ...[1000, 1001, 1008, 1013, 3000, 4001, 4003, 4999],
  ...[0, 999, 1004, 1005, 1006, 1015, 2999, 5000],
);
const closes = fc
  .tuple(closeCodes, fc.oneof(fc.string({ maxLength: 40 }), fc.uint8Array({ maxLength: 123 })))
  .map(([code, reason]) => wsFrame(8, closePayload(code, reason)));

const fragmented: Arbitrary<Buffer> = fc
  .tuple(
    fc.constantFrom(1, 2),
    weighted([4, texts], [1, payloads]),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 4 }),
    fc.array(fc.oneof(control(9), control(10)), { maxLength: 3 }),
  )
  .map(([opcode, payload, cuts, controls]) => {
    const at = [0, ...cuts.map((cut) => Math.floor(cut * payload.length)).sort((a, b) => a - b), payload.length];
    const parts = at
      .slice(1)
      .map((end, i) => wsFrame(i === 0 ? opcode : 0, payload.subarray(at[i], end), i === at.length - 2));
    return Buffer.concat(
      parts.flatMap((part, i) => [part, ...(controls[i] && i < parts.length - 1 ? [controls[i]] : [])]),
    );
  });

const anything: Arbitrary<Buffer> = fc
  .record({
    isFinal: fc.boolean(),
    reserved: weighted([3, fc.constant(0)], [1, fc.nat(7)]),
    opcode: fc.nat(15),
    isMasked: weighted([3, fc.constant(false)], [1, fc.constant(true)]),
    lengthBytes: fc.constantFrom(0 as const, 2 as const, 8 as const),
    payload: payloads,
    over: weighted([3, fc.constant(0)], [1, fc.nat(1_000_000_000)]),
  })
  .map(({ over, ...fields }) => {
    const most = { 0: 125, 2: 65_535, 8: 2 ** 40 }[fields.lengthBytes];
    return encodeFrame({ ...fields, length: BigInt(Math.min(fields.payload.length + over, most)) });
  });

const right = weighted(
  [8, texts.map((text) => wsFrame(1, text))],
  [3, payloads.map((bytes) => wsFrame(2, bytes))],
  [1, control(9)],
  [1, control(10)],
  [2, fragmented],
);
const wrong = fc.oneof(
  fc.tuple(fc.constantFrom(8, 9, 10), fc.constantFrom(126, 300)).map(([opcode, n]) => wsFrame(opcode, Buffer.alloc(n))),
  badTexts.map((text) => wsFrame(1, text)),
  closes,
  anything,
  // Lengths beyond 2^53.
  fc
    .constantFrom('0020000000000000', 'ffffffffffffffff', '8000000000000000', '001fffffffffffff')
    .map((length) => Buffer.from(`827f${length}`, 'hex')),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(wsFrame(8), wsFrame(8, '\x03'), wsFrame(0, 'lost'), wsFrame(0, 'lost', false), wsFrame(1, '', false)),
);

/** Bytes that a server sends after the handshake: mostly valid frames, some invalid ones, and a few changed bytes. */
export const serverBytes: Arbitrary<Buffer> = fc
  .tuple(
    fc.array(weighted([12, right], [1, wrong]), { maxLength: 12 }),
    weighted<[number, number][]>(
      [2, fc.constant([])],
      [1, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 })],
    ),
  )
  .map(([frames, changes]) => {
    const bytes = Buffer.concat(frames);
    for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
    return bytes;
  });

const shares = (maxLength: number) =>
  fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { maxLength });

/** Splits bytes at a few places, at many, or after each of the first bytes. */
export const cuts: Arbitrary<(bytes: Buffer) => Buffer[]> = fc
  .oneof(
    fc.oneof(shares(3), shares(60)).map((at) => ({ at, each: 0 })),
    fc.nat(600).map((each) => ({ at: [], each })),
  )
  .map(({ at, each }) => (bytes) => {
    const inTheMiddle = [...at.map((share) => Math.floor(share * bytes.length)), ...Array(each).keys()];
    const places = new Set([...inTheMiddle, bytes.length]);
    const ends = [...places].filter((place) => place > 0 && place <= bytes.length).sort((a, b) => a - b);
    // A separate buffer for each part, like from a socket.
    return ends.map((end, i) => Buffer.from(bytes.subarray(ends[i - 1] ?? 0, end)));
  });
