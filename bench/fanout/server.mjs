// A server that sends a feed of 500 frames of 1 KB a second to its pages: `node server.mjs <ours|by-hand>`.
//
// It sends these IPC messages: `listening` (port), and `report` (cpuNs, cpuAfterGcNs, rssBytes, frames, pages) after any message, once the frames that
// were emitted before have been written.
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuNs } from '../support/cpu.mjs';
import { FRAME_BYTES, FRAMES_PER_SECOND, textOf } from './frames.mjs';

const { start } = await import(`./${process.argv[2]}.mjs`);
const listening = async (handle) => {
  const server = createServer(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: server.address().port };
};

const steps = async (feed, { count, frames, ms }) => {
  for (let n = 0; n < count * frames; n += 1) {
    feed.emit(Buffer.from(textOf(n, FRAME_BYTES)));
    if (n % frames === frames - 1) await delay(ms);
  }
};

// A server runs for days, so V8 has compiled what runs for each frame and each batch. With a batch every 16 ms that would take minutes here.
const warmUp = async () => {
  const feed = start({ batchMs: 1 });
  const { server, port } = await listening(feed.handle);
  for (let n = 0; n < 10; n += 1) get({ port, agent: false }, (response) => response.on('error', () => {}).resume());
  while (feed.pages() < 10) await delay(10);
  await steps(feed, { count: 4_000, frames: 8, ms: 2 });
  feed.stop();
  server.closeAllConnections();
  server.close();
};
await warmUp();

const feed = start({ batchMs: 16 });
// The log of the relay is full after a minute.
await steps(feed, { count: 60, frames: 500, ms: 16 });
let frames = 30_000;
let begun;
const tick = () => {
  begun ??= performance.now() - (frames * 1_000) / FRAMES_PER_SECOND;
  const due = Math.floor(((performance.now() - begun) * FRAMES_PER_SECOND) / 1_000);
  // A server that can't keep up emits fewer frames, as many for both versions.
  if (due > frames + FRAMES_PER_SECOND) begun += ((due - frames) * 1_000) / FRAMES_PER_SECOND;
  else for (; frames < due; frames += 1) feed.emit(Buffer.from(textOf(frames, FRAME_BYTES)));
};
setInterval(tick, 2);

process.on('message', async () => {
  await delay(50);
  // Only the measurement of memory needs this collection, so its time isn't part of a measurement that begins or ends here.
  const usedNs = cpuNs();
  globalThis.gc?.();
  process.send({
    type: 'report',
    cpuNs: usedNs,
    cpuAfterGcNs: cpuNs(),
    rssBytes: process.memoryUsage.rss(),
    frames,
    pages: feed.pages(),
  });
});
process.once('disconnect', () => process.exit());

process.send({ type: 'listening', port: (await listening(feed.handle)).port });
