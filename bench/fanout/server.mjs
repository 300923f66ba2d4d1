// A server that sends a feed of 500 frames of 1 KB a second to its pages: `node server.mjs <ours|by-hand>`.
//
// It sends these IPC messages: `listening` (port), and `report` (cpuNs, cpuAfterGcNs, rssBytes, frames, pages) after any message, once the frames that
// were emitted before have been written.
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuNs } from '../support/cpu.mjs';
import { FRAME_BYTES, FRAMES_PER_SECOND, textOf } from './frames.mjs';

const { start } = await import(`./${process.argv[2]}.mjs`);
const { handle, emit, pages } = start();

let [frames, begun] = [0, undefined];
// A server that has run for a minute: the log of the relay is full, and V8 has compiled what runs for each frame.
while (frames < 30_000) {
  for (let n = 0; n < 500; n += 1, frames += 1) emit(Buffer.from(textOf(frames, FRAME_BYTES)));
  await delay(16);
}
const tick = () => {
  begun ??= performance.now() - (frames * 1_000) / FRAMES_PER_SECOND;
  const due = Math.floor(((performance.now() - begun) * FRAMES_PER_SECOND) / 1_000);
  // A server that can't keep up emits fewer frames, as many for both versions.
  if (due > frames + FRAMES_PER_SECOND) begun += ((due - frames) * 1_000) / FRAMES_PER_SECOND;
  else for (; frames < due; frames += 1) emit(Buffer.from(textOf(frames, FRAME_BYTES)));
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
    pages: pages(),
  });
});
process.once('disconnect', () => process.exit());

const server = createServer(handle).listen(0, '127.0.0.1', () => {
  process.send({ type: 'listening', port: server.address().port });
});
