import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { allocateBytes, allocateSeparately } from '../../src/frames/frame-memory.js';

describe('allocateBytes', () => {
  it('returns memory that no other payload uses', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(0, 1, 200, 4_000, 16_384, 16_385, 65_536, 100_000)), (sizes) => {
        const all = sizes.map((size, n) => allocateBytes(size).fill(n + 1));
        expect(all.map(({ length }) => length)).toEqual(sizes);
        all.forEach((memory, n) => expect(memory.every((byte) => byte === ((n + 1) & 255))).toBe(true));
      }),
    );
  });

  it('shares chunks of 64 KiB between small payloads, and wastes at most a quarter of each', () => {
    const buffers = Array.from({ length: 100 }, () => allocateBytes(16_384).buffer);
    const chunks = new Set(buffers);
    expect(new Set([...chunks].map(({ byteLength }) => byteLength))).toEqual(new Set([65_536]));
    expect(chunks.size).toBeLessThanOrEqual(100 / 3);
    expect(allocateBytes(16_385).buffer.byteLength).toBe(16_385);
  });
});

describe('allocateSeparately', () => {
  it('shares no buffer', () => {
    const [one, other] = [allocateSeparately(5), allocateSeparately(5)];
    expect([one.buffer.byteLength, other.buffer.byteLength, one.buffer === other.buffer]).toEqual([5, 5, false]);
  });
});
