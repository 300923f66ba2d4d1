// One sample of a feed of frames from a sender in another process. The options are JSON.
//
//   node bench/stall/sample.mjs latency '{ "receiveIn": "worker" }'                                         the latency of each frame in µs
//   node bench/stall/sample.mjs stalled '{ "receiveIn": "worker", "bytesPerSecond": 10e6, "blockedMs": 8000 }'
//   node bench/stall/sample.mjs stalled '{ "receiveIn": "main", "bytesPerSecond": 10e6, "busyMs": 50, "freeMs": 1, "forMs": 4000 }'
import { setTimeout as wait } from 'node:timers/promises';
import { tradeFeedEvents$ } from '../../dist/index.js';
import { quantile } from '../lib/stats.mjs';
import { nowUs, readStamp } from '../support/stamp.mjs';
import { startSender } from '../support/child.mjs';

const [what, optionsText] = process.argv.slice(2);
const { receiveIn, warmUpMs, forMs, ...options } = JSON.parse(optionsText);

const seen = { frames: 0, missing: 0, last: -1, reported: 0, failed: undefined };
/** Subscribes to the feed of a sender. Resolves with the subscription after the first frame. */
const receive = async (baseUrl, onFrame = () => {}) => {
  const subscription = tradeFeedEvents$('market', { baseUrl, apiKey: 'bench-key', receiveIn }).subscribe({
    next: (event) => {
      if (event.type === 'opened') seen.last = -1;
      if (event.type === 'gap') seen.reported += event.missed ?? 0;
      if (event.type !== 'frame') return;
      seen.frames += 1;
      onFrame(event.data);
    },
    error: ({ code }) => (seen.failed = code),
  });
  while (seen.frames === 0) await wait(10);
  return subscription;
};
const startPaced = (rate) => startSender('paced-sender', [JSON.stringify({ frameBytes: 1024, ...rate })]);

const latency = async () => {
  const sender = await startPaced({ framesPerSecond: 10_000 });
  const latencies = [];
  let isCounted = false;
  await receive(sender.baseUrl, (data) => {
    if (isCounted) latencies.push(nowUs() - readStamp(data).sentUs);
  });
  await wait(warmUpMs);
  isCounted = true;
  await wait(forMs);
  await sender.stop();
  return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) };
};

/** Blocks this thread with computation, so that nothing else runs on it. */
const spin = (ms) => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

/** Blocks this thread for `busyMs` of every `busyMs + freeMs`. */
const spinRepeatedly = async (busyMs, freeMs) => {
  for (const end = performance.now() + forMs; performance.now() < end;) {
    spin(busyMs);
    await wait(freeMs);
  }
};

/** Counts received frames, missing frames and disconnects. */
const stalled = async ({ blockedMs, busyMs, freeMs, ...rate }) => {
  const sender = await startPaced(rate);
  const subscription = await receive(sender.baseUrl, (data) => {
    const { seq } = readStamp(data);
    seen.missing += seq - seen.last - 1;
    seen.last = seq;
  });
  await wait(500);

  const before = seen.frames;
  if (blockedMs) spin(blockedMs);
  else await spinRepeatedly(busyMs, freeMs);
  const during = { frames: seen.frames - before };
  sender.send({ type: 'pause' });
  // Until the buffered frames have been emitted. Don't wait for the reconnect of a disconnected client.
  for (let last = -1, tries = 0; last !== seen.frames && tries < 20; await wait(300), tries += 1) last = seen.frames;
  sender.send({ type: 'count' });
  const { connections } = await sender.next('count');
  const closed = sender.messages.filter(({ type }) => type === 'closed');
  subscription.unsubscribe();
  const result = {
    ...seen,
    during,
    cutOff: closed.filter(({ code }) => code === 1013).length,
    sent: [...connections, ...closed].reduce((sum, each) => sum + each.sent, 0),
    rss: process.resourceUsage().maxRSS,
  };
  await sender.stop();
  return result;
};

console.log(JSON.stringify(await { latency, stalled }[what](options)));
process.exit();
