// A relay's process while pages come back: `node server.mjs`. 500 frames of 1 KB a second.
//
// It sends these IPC messages: `listening` (port), and `report` after any message: what was longest since the last one. `heldMs` is the time that
// the event loop was held, `heldCpuMs` the CPU time of it, which doesn't count what other processes of the machine take; `liveMs` is how old
// a frame was when it was written to a live page.
import { createServer } from 'node:http';
import { FRAME_BYTES, FRAMES_PER_SECOND, textOf } from '../fanout/frames.mjs';
import { start } from '../fanout/ours.mjs';
import { cpuNs } from '../support/cpu.mjs';

const longest = { heldMs: 0, heldCpuMs: 0, liveMs: 0 };
const record = (name, ms) => (longest[name] = Math.max(longest[name], ms));

const { relay, handle, emit } = start();
relay.messages$().subscribe(({ type, data }) => {
  if (type !== undefined) return;
  for (const [, at] of data.matchAll(/"receivedAt":(\d+)/g)) record('liveMs', Date.now() - Number(at));
});

let frames = 0;
const begun = performance.now();
setInterval(() => {
  const due = Math.floor(((performance.now() - begun) * FRAMES_PER_SECOND) / 1_000);
  for (; frames < due; frames += 1) emit(Buffer.from(textOf(frames, FRAME_BYTES)));
}, 2);

const beatMs = 5;
let last = { at: performance.now(), cpu: cpuNs() };
setInterval(() => {
  const now = { at: performance.now(), cpu: cpuNs() };
  record('heldMs', now.at - last.at - beatMs);
  record('heldCpuMs', (now.cpu - last.cpu) / 1e6);
  last = now;
}, beatMs);

process.on('message', () => {
  process.send({ type: 'report', cpuNs: cpuNs(), ...longest });
  for (const name of Object.keys(longest)) longest[name] = 0;
});
process.once('disconnect', () => process.exit());

const server = createServer(handle).listen(0, '127.0.0.1', () => {
  process.send({ type: 'listening', port: server.address().port });
});
