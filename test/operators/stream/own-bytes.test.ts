import { describe, expect, it } from '@jest/globals';
import { right } from 'fp-ts/lib/Either.js';
import { Conflated } from '../../../src/operators/stream/conflated.js';
import { clustersOf, isSparse, movedTo, packed, viewOf } from '../../../src/operators/stream/own-bytes.js';
import { chunk, fullChunk } from './views.js';

const itself = (view: Uint8Array): Uint8Array => view;

describe('viewOf', () => {
  const [frame] = fullChunk(1, 10);

  it.each([
    ['a frame', frame, frame!.data],
    ['what was made of a frame', right(new Conflated(1, frame, 2)), frame!.data],
    ['a byte array', frame!.data, frame!.data],
    ['anything else', { data: frame!.data }, undefined],
    ['a text', 'text', undefined],
  ])('gives the bytes of %s', (_, value, view) => {
    expect(viewOf(value)).toBe(view);
  });
});

describe('isSparse', () => {
  it.each([
    [0, 0, false],
    [0, 1, true],
    [74, 100, true],
    [75, 100, false],
    [99, 99, false],
  ])('%d bytes of %d: %p', (bytes, bufferBytes, is) => {
    expect(isSparse(bytes, bufferBytes)).toBe(is);
  });
});

describe('clustersOf', () => {
  it('puts those together that follow one another out of the same buffer', () => {
    const [a, b] = chunk(100, [0, 10], [20, 40]).map(({ data }) => data) as [Buffer, Buffer];
    const [c] = chunk(50, [0, 5]).map(({ data }) => data) as [Buffer];
    expect(clustersOf([a, b, c, a], itself)).toEqual([
      { values: [a, b], bytes: 30, bufferBytes: 100 },
      { values: [c], bytes: 5, bufferBytes: 50 },
      { values: [a], bytes: 10, bufferBytes: 100 },
    ]);
    expect(clustersOf([], itself)).toEqual([]);
  });
});

describe('packed', () => {
  it('fills buffers of up to 64 KiB, and gives what is larger one of its own', () => {
    const sizes = [1, 65_535, 1, 70_000, 0, 2];
    const values = sizes.map((size) => ({ view: Buffer.alloc(100_000, size % 251).subarray(0, size) }));
    const clusters = packed(
      values,
      ({ view }) => view,
      (value, view) => {
        value.view = view as typeof value.view;
      },
    );
    expect(clusters.map(({ values: { length }, bytes, bufferBytes }) => [length, bytes, bufferBytes])).toEqual([
      [2, 65_536, 65_536],
      [1, 1, 1],
      [1, 70_000, 70_000],
      [2, 2, 2],
    ]);
    expect(values.map(({ view }) => view.buffer.byteLength)).toEqual([65_536, 65_536, 1, 70_000, 2, 2]);
    values.forEach(({ view }, n) => expect(view).toEqual(Buffer.alloc(sizes[n]!, sizes[n]! % 251)));
  });
});

describe('movedTo', () => {
  it('puts other bytes into a frame, and in the place of a byte array', () => {
    const [frame] = fullChunk(1, 3);
    const elsewhere = Buffer.from([0, 1, 2]);
    expect(movedTo(frame, elsewhere)).toBe(frame);
    expect(frame!.data).toBe(elsewhere);
    expect(movedTo(Buffer.from([0, 1, 2]), elsewhere)).toBe(elsewhere);
  });
});
