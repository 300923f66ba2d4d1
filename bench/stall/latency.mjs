// One sample: 10,000 frames a second, and the latency of each in microseconds.
//
//   node bench/stall/latency.mjs '{ "receiveIn": "worker" }'
import { setTimeout as wait } from 'node:timers/promises';
import { tradeFeed$ } from '../../dist/index.js';
import { cpuNs } from '../support/cpu.mjs';
import { nowUs, readStamp } from '../support/stamp.mjs';
import { startSender } from '../support/start.mjs';

const {
  receiveIn,
  framesPerSecond = 10_000,
  frameBytes = 1024,
  warmUpMs = 1000,
  forMs = 2000,
} = JSON.parse(process.argv[2]);
const sender = await startSender('paced-sender', [JSON.stringify({ framesPerSecond, frameBytes })]);
const latencies = [];
let isReceiving = false;
let isCounted = false;
tradeFeed$('market', { baseUrl: sender.baseUrl, apiKey: 'bench-key', receiveIn }).subscribe(({ data }) => {
  isReceiving = true;
  if (isCounted) latencies.push(nowUs() - readStamp(data).sentUs);
});
while (!isReceiving) await wait(10);
await wait(warmUpMs);
isCounted = true;
const before = cpuNs();
await wait(forMs);
const cpuPercent = cpuNs(before) / forMs / 1e4;
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.floor(latencies.length * share)];
console.log(
  JSON.stringify({
    frames: latencies.length,
    p50: at(0.5),
    p90: at(0.9),
    p99: at(0.99),
    cpuPercent,
  }),
);
await sender.stop();
process.exit();
