import { describe, expect, it } from '@jest/globals';
import { frameHead, isControl, Opcode } from '../../src/transport/frame-head.js';

const headOf = (...bytes: readonly number[]) => frameHead(Buffer.from([9, ...bytes]), 1);
const wrong = { bytes: 2, length: Infinity };

// RFC 6455, 5.2, byte by byte. One extra byte before each head shows that `at` is used.
describe('frameHead', () => {
  it.each([
    ['a text', [0x81, 5], { isFinal: true, opcode: Opcode.Text, bytes: 2, length: 5 }],
    ['an empty binary frame', [0x82, 0], { isFinal: true, opcode: Opcode.Binary, bytes: 2, length: 0 }],
    ['a first fragment', [0x01, 1], { isFinal: false, opcode: Opcode.Text, bytes: 2, length: 1 }],
    ['a fragment', [0x00, 1], { isFinal: false, opcode: Opcode.Continuation, bytes: 2, length: 1 }],
    ['the last fragment', [0x80, 1], { isFinal: true, opcode: Opcode.Continuation, bytes: 2, length: 1 }],
    ['a ping of the largest size', [0x89, 125], { isFinal: true, opcode: Opcode.Ping, bytes: 2, length: 125 }],
    ['a length of 16 bits', [0x82, 126, 1, 2], { isFinal: true, opcode: Opcode.Binary, bytes: 4, length: 258 }],
    [
      'a length of 64 bits',
      [0x82, 127, 0, 0, 0, 1, 0, 0, 0, 3],
      { isFinal: true, opcode: Opcode.Binary, bytes: 10, length: 2 ** 32 + 3 },
    ],
  ])('reads %s', (_, bytes, head) => {
    expect(headOf(...bytes)).toEqual(head);
  });

  it.each([
    ['a reserved bit', [0xc1, 0]],
    ['another reserved bit', [0xa1, 0]],
    ['the third reserved bit', [0x91, 0]],
    ['a mask', [0x81, 0x80]],
    ['an unknown data opcode', [0x83, 0]],
    ['an unknown control opcode', [0x8b, 0]],
    ['a ping in fragments', [0x09, 0]],
    ['a close frame of more than 125 bytes', [0x88, 126, 0, 126]],
  ])('reports %s as invalid at once', (_, bytes) => {
    expect(headOf(...bytes)).toMatchObject(wrong);
    expect(headOf(...bytes.slice(0, 2))).toMatchObject(wrong);
  });

  it.each([
    ['no byte', []],
    ['one byte', [0x81]],
    ['half of a length of 16 bits', [0x81, 126, 1]],
    ['most of a length of 64 bits', [0x81, 127, 0, 0, 0, 0, 0, 0, 1]],
  ])('needs more bytes after %s', (_, bytes) => {
    expect(headOf(...bytes)).toBeUndefined();
  });
});

describe('isControl', () => {
  it('is true only for close, ping and pong', () => {
    expect(Object.entries(Opcode).filter(([, opcode]) => isControl(opcode))).toEqual([
      ['Close', 8],
      ['Ping', 9],
      ['Pong', 10],
    ]);
  });
});
