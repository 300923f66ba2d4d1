import { describe, expect, it } from '@jest/globals';
import { Decoded } from '../../../src/operators/items/decoded.js';
import { Frame } from '../../../src/protocol/frame.js';
import { frameOf } from '../stream.js';

describe('Decoded', () => {
  const frame = frameOf('{"n":1}', 7, 2);

  it('has the decoded value and the frame', () => {
    const value = { n: 1 };
    const decoded = new Decoded(value, frame);
    expect({ ...decoded }).toEqual({ type: 'decoded', value, frame });
    expect(decoded.value).toBe(value);
    expect(decoded.frame).toBe(frame);
  });

  it('accepts a frame of a relay, with plain bytes', () => {
    const relayed = new Frame('raw', Uint8Array.of(1), true, 7, 2);
    const decoded = new Decoded<number, Frame<Uint8Array>>(1, relayed);
    expect(decoded.frame).toBe(relayed);
  });

  it('accepts any decoded value', () => {
    for (const value of [undefined, null, 0, '', NaN]) expect(new Decoded(value, frame).value).toBe(value);
  });
});
