/**
 * Makes the Buffer of a part of some memory, as `Buffer.from(memory, offset, length)` does: that looks at each of its arguments first, which takes
 * longer than all the rest of a small frame.
 */
export const { [Symbol.species]: BufferView } = Buffer as unknown as {
  readonly [Symbol.species]: new (memory: ArrayBufferLike, offset: number, length: number) => Buffer;
};
