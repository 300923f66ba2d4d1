// One sample: the share of a core for receiving at a rate. `node --expose-gc bench/growth/rates.mjs <framesPerSecond> <bytes>`
import { setTimeout } from 'node:timers/promises';
import { tradeFeed$ } from '../../dist/index.js';
import { cpuNs } from '../support/cpu.mjs';
import { startSender } from '../support/child.mjs';

const [framesPerSecond, frameBytes] = process.argv.slice(2).map(Number);
const COUNTED_MS = 1_200;
const { baseUrl, stop } = await startSender('paced-sender', [JSON.stringify({ framesPerSecond, frameBytes })]);
let frames = 0;
const subscription = tradeFeed$('market', { baseUrl, apiKey: 'bench' }).subscribe((frame) => {
  frames += frame.data.length > 0 ? 1 : 0;
});
await setTimeout(800);
globalThis.gc();
const from = { cpu: cpuNs(), wall: performance.now(), frames };
await setTimeout(COUNTED_MS);
const usedNs = cpuNs(from.cpu);
const wallMs = performance.now() - from.wall;
const received = frames - from.frames;
subscription.unsubscribe();
await stop();
console.log(JSON.stringify({ rate: (received * 1e3) / wallMs, share: usedNs / 1e6 / wallMs, ns: usedNs / received }));
process.exit();
