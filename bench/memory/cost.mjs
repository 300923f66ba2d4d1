// One sample: the CPU time for each frame of copying held frames out of their read buffers.
//
//   node --expose-gc bench/memory/cost.mjs <none|stored> <size> <keep>
import { setImmediate as turn } from 'node:timers/promises';
// The bundles in dist don't export this.
import { withOwnBytes } from '../../temp/rx-trade-feed/operators/own-bytes.js';
import { Frame } from '../../temp/rx-trade-feed/protocol/frame.js';
import { cpuNs } from '../support/cpu.mjs';
import { reader } from './chunks.mjs';

const [kind, size, keep] = process.argv.slice(2);
const HELD = 4_096;
const frames = Math.round(Math.min(400_000, 3e8 / Number(size)));

const hold = {
  // Without copies: the newest frames are in an array.
  none: () => {
    const slots = new Array(HELD);
    return (frame, n) => (slots[n % HELD] = frame);
  },
  stored: () => {
    const slots = new Array(HELD);
    return (frame, n) => (slots[n % HELD] = withOwnBytes(frame));
  },
}[kind]();

const read = reader(Number(size), Frame);
const pass = async (many) => {
  let held = 0;
  for (let seen = 0; seen < many;) {
    for (const frame of read()) if (seen++ % Number(keep) === 0) hold(frame, held++);
    await turn();
  }
  return held;
};
await pass(frames);
globalThis.gc();
const begun = cpuNs();
const held = await pass(frames);
globalThis.gc();
const usedNs = cpuNs(begun);
console.log(JSON.stringify({ kind, ns: usedNs / frames, nsPerHeld: usedNs / held }));
