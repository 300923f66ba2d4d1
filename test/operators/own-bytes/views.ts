import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MemoryUse, Payload, PayloadKind, ReceivedFrame } from '../../../src/frames/received-frame.js';
import { Frame } from '../../../src/protocol/frame.js';

/** Creates frames as a socket does: views of one buffer, which gets other bytes each time. */
export const chunk = (bytes: number, ...views: readonly (readonly [start: number, end: number])[]): Frame[] => {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  for (let n = 0; n < bytes; n += 1) buffer[n] = n % 251;
  return views.map(([start, end]) => new Frame('raw', buffer.subarray(start, end), false, 1, 1));
};

/** Creates frames of a service in one block. From 4 KiB, a frame that is stored gets a buffer of its size. */
export const inBlock = (frames: number, frameBytes: number): Frame[] => {
  const block = Buffer.allocUnsafeSlow(frames * frameBytes);
  const payload = (n: number) =>
    new Payload(block, n * frameBytes, (n + 1) * frameBytes, PayloadKind.Binary, MemoryUse.Block);
  return Array.from({ length: frames }, (_, n) => new ReceivedFrame('raw', payload(n), 1, 1));
};

/** Returns the sizes of the buffers of frames. */
export const bufferSizes = (frames: readonly Frame[]): number[] => frames.map(({ data }) => data.buffer.byteLength);

/** Returns how many bytes frames keep alive. */
export const aliveBytes = (frames: readonly Frame[]): number =>
  [...new Set(frames.map(({ data }) => data.buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0);

/** Collects garbage. Returns how many of the objects are still alive. */
export const aliveOf = async (references: readonly WeakRef<object>[]): Promise<number> => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const alive = () => references.filter((reference) => reference.deref() !== undefined).length;
  for (let turns = 0; turns < 20 && alive() > 0; turns += 1) {
    await turn();
    collectGarbage();
  }
  return alive();
};
