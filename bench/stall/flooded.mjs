// One sample: the flood sender, and a main thread that is free or blocked most of the time. Measures the received frames and CPU time.
//
//   node bench/stall/flooded.mjs '{ "receiveIn": "worker", "size": 200, "busyMs": 50, "freeMs": 1, "forMs": 3000 }'
import { setTimeout as wait } from 'node:timers/promises';
import { tradeFeedEvents$ } from '../../dist/index.js';
import { startSender } from '../support/start.mjs';
import { spinRepeatedly } from './spin.mjs';

const { receiveIn, size, busyMs, freeMs, warmUpMs = 1000, forMs = 2000 } = JSON.parse(process.argv[2]);
const sender = await startSender('flood-sender');
const seen = { frames: 0, bytes: 0, missed: 0 };
tradeFeedEvents$('market', {
  baseUrl: `http://127.0.0.1:${sender.port}/${size}/text/plain`,
  apiKey: 'bench-key',
  receiveIn,
}).subscribe((event) => {
  if (event.type === 'frame') {
    seen.frames += 1;
    seen.bytes += event.data.length;
  } else if (event.type === 'gap') seen.missed += event.missed ?? 0;
});
const stop = busyMs ? spinRepeatedly(busyMs, freeMs) : () => {};
while (seen.frames === 0) await wait(10);
await wait(warmUpMs);
const begun = { ...seen, at: performance.now(), cpu: process.cpuUsage() };
await wait(forMs);
stop();
const seconds = (performance.now() - begun.at) / 1000;
const { user, system } = process.cpuUsage(begun.cpu);
const frames = seen.frames - begun.frames;
console.log(
  JSON.stringify({
    framesPerSecond: frames / seconds,
    megabytesPerSecond: (seen.bytes - begun.bytes) / seconds / 1e6,
    cpuNs: ((user + system) * 1000) / frames,
    systemNs: (system * 1000) / frames,
    missedPerSecond: (seen.missed - begun.missed) / seconds,
  }),
);
await sender.stop();
process.exit();
