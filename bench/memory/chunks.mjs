// Frames as a socket returns them: views of reads of 64 KiB, each in separate memory, one read in each turn of the event loop.
import { setImmediate as turn } from 'node:timers/promises';
import { Frame } from '../../dist/index.js';

const READ_BYTES = 65_536;
const HEAD_BYTES = { small: 4, large: 10 };

/** Returns a function that returns the frames of the next read. A frame across two reads has separate memory, as in `ws`. */
const reader = (size) => {
  const step = size + (size < 65_536 ? HEAD_BYTES.small : HEAD_BYTES.large);
  const at = Date.now();
  let rest = 0;
  let number = 0;
  const frame = (data) => {
    // A holder can detect by the number that the bytes belong to another frame.
    data.writeUInt32LE((number += 1) % 2 ** 32);
    return new Frame('market', data, true, at, 1);
  };
  return () => {
    const read = Buffer.allocUnsafeSlow(READ_BYTES);
    const frames = [];
    let offset = rest;
    for (; offset + step <= READ_BYTES; offset += step)
      frames.push(frame(read.subarray(offset + step - size, offset + step)));
    rest = 0;
    if (offset < READ_BYTES) {
      frames.push(frame(Buffer.allocUnsafe(size)));
      for (rest = offset + step - READ_BYTES; rest >= READ_BYTES;) rest -= READ_BYTES;
    }
    return frames;
  };
};

/** Returns a function that emits the next frames on a Subject, one of `keep` of those that it reads. */
export const feeder = (subject, size, keep = 1) => {
  const read = reader(size);
  let seen = 0;
  return async (wanted) => {
    for (let emitted = 0; emitted < wanted;) {
      for (const frame of read()) {
        if (seen++ % keep !== 0) continue;
        emitted += 1;
        subject.next(frame);
        if (emitted === wanted) break;
      }
      await turn();
    }
  };
};

const collected = async () => {
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc();
    await turn();
  }
  const { external, heapUsed } = process.memoryUsage();
  return { buffers: external, heap: heapUsed };
};

/** Returns the bytes of buffers and of the heap after garbage collections that free nothing more. */
export const alive = async () => {
  let last = await collected();
  for (let next = await collected(); next.buffers < last.buffers - 1_000; next = await collected()) last = next;
  return last;
};
