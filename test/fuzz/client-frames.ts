import fc, { type Arbitrary } from 'fast-check';
import { closePayload, type FrameFields } from '../support/wire.js';

/** A frame of a client (RFC 6455, 5.2). Every field may be wrong. */
export interface ClientFrame extends FrameFields {
  readonly payload: Uint8Array;
}

const frame = (opcode: number, payload: Uint8Array | string = '', changes: Partial<ClientFrame> = {}): ClientFrame => ({
  opcode,
  payload: Buffer.from(payload),
  isMasked: true,
  ...changes,
});

const small = fc.uint8Array({ maxLength: 125 });
const ping = small.map((payload) => frame(9, payload));
const pong = small.map((payload) => frame(10, payload));

/** Frames that a client is allowed to send. The service answers pings. */
export const harmless: Arbitrary<readonly ClientFrame[]> = fc.array(fc.oneof(ping, pong), { maxLength: 6 });

/** Frames that break a rule, with the close code for each. */
export interface Abuse {
  readonly frames: readonly ClientFrame[];
  readonly closeCode: number;
}

const closedWith = (closeCode: number, ...abuses: readonly Arbitrary<readonly ClientFrame[]>[]): Arbitrary<Abuse> =>
  fc.oneof(...abuses).map((frames) => ({ frames, closeCode }));

const data = fc.constantFrom(1, 2);
const sizes = fc.constantFrom(0, 1, 125, 126, 1_024, 1_025, 65_535, 65_536, 300_000);

// Contract, section 3.2: any text or binary message closes with 1008, even if it's too large or not UTF-8.
const messages = closedWith(
  1008,
  fc.tuple(data, small).map(([opcode, payload]) => [frame(opcode, payload)]),
  fc.tuple(data, sizes).map(([opcode, size]) => [frame(opcode, Buffer.alloc(size, 'x'))]),
  fc.constant([frame(1, Buffer.from([0xff, 0xc0]))]),
  fc
    .tuple(data, fc.array(fc.tuple(small, harmless), { minLength: 1, maxLength: 20 }))
    .map(([opcode, parts]) => [
      frame(opcode, 'begun', { isFinal: false }),
      ...parts.flatMap(([part, between]) => [...between, frame(0, part, { isFinal: false })]),
      frame(0, 'ended'),
    ]),
  fc.constant([
    frame(1, '', { isFinal: false }),
    ...Array<ClientFrame>(30).fill(frame(0, Buffer.alloc(100), { isFinal: false })),
  ]),
  data.map((opcode) => [frame(opcode, 'x', { length: 2n ** 40n })]),
);

// RFC 6455: an unmasked frame, an unknown or reserved bit, a misplaced fragment, a long or fragmented control frame, a bad close frame.
const breaches = closedWith(
  1002,
  fc
    .tuple(fc.constantFrom(0, 1, 2, 8, 9, 10), small)
    .map(([opcode, payload]) => [frame(opcode, payload, { isMasked: false })]),
  fc.constantFrom(3, 4, 5, 6, 7, 11, 12, 13, 14, 15).map((opcode) => [frame(opcode)]),
  fc
    .tuple(fc.constantFrom(1, 2, 9), fc.integer({ min: 1, max: 7 }))
    .map(([opcode, reserved]) => [frame(opcode, '', { reserved })]),
  fc.boolean().map((isFinal) => [frame(0, 'lost', { isFinal })]),
  fc.tuple(data, data).map(([a, b]) => [frame(a, 'begun', { isFinal: false }), frame(b, 'begun again')]),
  fc.constantFrom(8, 9, 10).map((opcode) => [frame(opcode, 'ab', { isFinal: false })]),
  fc
    .tuple(fc.constantFrom(8, 9, 10), fc.constantFrom(126, 65_536))
    .map(([opcode, size]) => [frame(opcode, Buffer.alloc(size))]),
  fc.constantFrom(0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65_535).map((code) => [frame(8, closePayload(code))]),
  fc.constant([frame(8, 'x')]),
);

const goodbyes: Arbitrary<Abuse> = fc
  .tuple(fc.constantFrom(1000, 1001, 1011, 3000, 4001, 4999), fc.string({ maxLength: 40 }))
  .map(([closeCode, reason]) => ({
    frames: [frame(8, closePayload(closeCode, reason))],
    closeCode,
  }));

/** All bytes that close a connection, with the close code. */
export const abuses: Arbitrary<Abuse> = fc.oneof(messages, breaches, goodbyes);

/** The control frames that a service sent, and whether it sent other frames. */
export const framesIn = (bytes: Buffer): { readonly opcode: number; readonly payload: Buffer }[] => {
  const frames = [];
  for (let at = 0; at < bytes.length;) {
    const length = (bytes[at + 1] as number) & 127;
    const end = at + 2 + length;
    if (length > 125 || end > bytes.length) throw new Error('The service sent what is no control frame.');
    frames.push({ opcode: (bytes[at] as number) & 15, payload: bytes.subarray(at + 2, end) });
    at = end;
  }
  return frames;
};
