// One sample: a feed at a steady rate, and a blocked main thread. Counts received frames, missing frames and disconnects.
//
//   node bench/stall/stalled.mjs '{ "receiveIn": "worker", "bytesPerSecond": 10e6, "blockedMs": 8000 }'
//   node bench/stall/stalled.mjs '{ "receiveIn": "worker", "bytesPerSecond": 10e6, "busyMs": 50, "freeMs": 1, "forMs": 4000 }'
import { setTimeout as wait } from 'node:timers/promises';
import { tradeFeedEvents$ } from '../../dist/index.js';
import { readStamp } from '../support/stamp.mjs';
import { startSender } from '../support/start.mjs';
import { spin, spinRepeatedly } from './spin.mjs';

const {
  receiveIn,
  receiveBufferBytes,
  blockedMs,
  busyMs,
  freeMs,
  forMs,
  frameBytes = 1024,
  ...rate
} = JSON.parse(process.argv[2]);
const sender = await startSender('paced-sender', [JSON.stringify({ ...rate, frameBytes, backlogBytes: 2 ** 20 })]);
const closings = () => sender.messages.filter(({ type, code }) => type === 'closed' && code === 1013).length;

const seen = { frames: 0, missing: 0, last: -1, reported: 0, gaps: 0, failed: undefined };
const subscription = tradeFeedEvents$('market', {
  baseUrl: sender.baseUrl,
  apiKey: 'bench-key',
  receiveIn,
  ...(receiveIn === 'worker' && { receiveBufferBytes }),
}).subscribe({
  next: (event) => {
    if (event.type === 'opened') seen.last = -1;
    if (event.type === 'gap') {
      seen.gaps += 1;
      seen.reported += event.missed ?? 0;
    }
    if (event.type !== 'frame') return;
    const { seq } = readStamp(event.data);
    seen.frames += 1;
    seen.missing += seq - seen.last - 1;
    seen.last = seq;
  },
  error: ({ code }) => (seen.failed = code),
});
while (seen.frames === 0) await wait(10);
await wait(500);

const begun = { frames: seen.frames, at: performance.now() };
if (blockedMs) spin(blockedMs);
else {
  const stop = spinRepeatedly(busyMs, freeMs);
  // A single timer would be as late as all others.
  await new Promise((done) => {
    const check = setInterval(() => {
      if (performance.now() - begun.at < forMs) return;
      clearInterval(check);
      done();
    }, 1);
  });
  stop();
}
const during = { frames: seen.frames - begun.frames, ms: performance.now() - begun.at };
sender.send({ type: 'pause' });
// Until the buffered frames have been emitted. Don't wait for the reconnect of a disconnected client.
for (let before = -1, tries = 0; before !== seen.frames && tries < 20; await wait(300), tries += 1)
  before = seen.frames;
sender.send({ type: 'count' });
await wait(100);
const { connections = [] } = sender.messages.findLast(({ type }) => type === 'count') ?? {};
const sent = [...connections, ...sender.messages.filter(({ type }) => type === 'closed')];
subscription.unsubscribe();
console.log(
  JSON.stringify({
    cutOff: closings(),
    sent: sent.reduce((sum, each) => sum + each.sent, 0),
    ...seen,
    during,
    rss: process.resourceUsage().maxRSS,
  }),
);
await sender.stop();
process.exit();
