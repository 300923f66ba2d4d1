import { Frame } from '../../../src/protocol/frame.js';

/** Creates frames as a socket does: views of one buffer, which gets other bytes each time. */
export const chunk = (bytes: number, ...views: readonly (readonly [start: number, end: number])[]): Frame[] => {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  for (let n = 0; n < bytes; n += 1) buffer[n] = n % 251;
  return views.map(([start, end]) => new Frame('raw', buffer.subarray(start, end), false, 1, 1));
};

/** Creates a chunk full of frames, with no space between them. */
export const fullChunk = (frames: number, frameBytes: number): Frame[] =>
  chunk(
    frames * frameBytes,
    ...Array.from({ length: frames }, (_, n) => [n * frameBytes, (n + 1) * frameBytes] as const),
  );

/** Returns the sizes of the buffers of frames. */
export const bufferSizes = (frames: readonly Frame[]): number[] => frames.map(({ data }) => data.buffer.byteLength);

/** Returns how many bytes frames keep alive. */
export const aliveBytes = (frames: readonly Frame[]): number =>
  [...new Set(frames.map(({ data }) => data.buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0);
