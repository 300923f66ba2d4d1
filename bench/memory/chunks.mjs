// Frames as a socket gives them: views of reads of 64 KiB, each in memory of its own, one read in each turn of the event loop.
import { setImmediate as turn } from 'node:timers/promises';
import { Frame } from '../../dist/index.js';

const READ_BYTES = 65_536;
const HEAD_BYTES = { small: 4, large: 10 };

/** Gives the frames of the next read; what does not fit goes on in the one after it, and its frame has bytes of its own, as in `ws`. */
export const reader = (size) => {
  const step = size + (size < 65_536 ? HEAD_BYTES.small : HEAD_BYTES.large);
  const at = Date.now();
  let rest = 0;
  let number = 0;
  const frame = (data) => {
    // So that whoever gets it can see whose bytes they are.
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

/** Emits one frame of `keep` on a Subject until there were `wanted` of them; calls `atTurn` after each read. */
export const feed = async (subject, { size, keep, wanted }, atTurn = () => {}) => {
  const read = reader(size);
  let seen = 0;
  for (let given = 0; given < wanted;) {
    for (const frame of read()) {
      if (seen++ % keep !== 0) continue;
      given += 1;
      subject.next(frame);
      if (given === wanted) break;
    }
    await turn();
    atTurn(given);
  }
};

const collected = async () => {
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc();
    await turn();
  }
  const { external, heapUsed } = process.memoryUsage();
  return { buffers: external, heap: heapUsed };
};

/** What is alive after a collection, once it is less no more: bytes of buffers, and of the heap. */
export const alive = async () => {
  let last = await collected();
  for (let next = await collected(); next.buffers < last.buffers - 1_000; next = await collected()) last = next;
  return last;
};
