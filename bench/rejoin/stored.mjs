// Pages that come back to a relay which has restarted, so that they read a log: `npm run bench -- rejoin-stored [PAGES]`. Each lacks
// 8 MiB of frames of 1 KB. Prints for how long they held the event loop, and the CPU time of it, which counts the pages too but no other process.
// Fails if that was more than 25 ms, with the 8 pages that read at once.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { firstValueFrom, from, lastValueFrom } from 'rxjs';
import { Frame } from 'rx-trade-feed';
import { feedLog } from 'rx-trade-feed/log';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { cpuNs } from '../support/cpu.mjs';

const pages = Number(process.argv[2] ?? 8);
const rounds = 5;
const [payloadBytes, replayBytes] = [1_000, 8 * 1024 * 1024];
const frames = Math.floor(replayBytes / (payloadBytes + 130));

const folder = mkdtempSync(join(tmpdir(), 'rejoin-stored-'));
const log = feedLog(folder);
const at = Date.now();
const data = Buffer.alloc(payloadBytes, 'a');
const events = Array.from({ length: frames }, (_, n) => new Frame('market', data, false, at - frames + n, 1));
await lastValueFrom(
  from([{ type: 'opened', at: at - frames, feed: 'market', connection: 1 }, ...events]).pipe(log.append()),
);
const { position } = await firstValueFrom(log.read$({ from: { offset: 1 }, follow: false }));
const id = `l${position.line}-${position.gen.toString(36)}.1.0.${at - frames}`;

/** Requests the pages in another thread. */
const requestPages = (port) => `
  const { get } = require('node:http');
  const { parentPort } = require('node:worker_threads');
  let waiting = ${pages};
  const last = (text, response) => {
    if (!text.includes('"receivedAt":${events.at(-1).receivedAt},')) return;
    response.destroy();
    if ((waiting -= 1) === 0) parentPort.postMessage('done');
  };
  const request = { port: ${port}, path: '/feed', headers: { 'last-event-id': '${id}' } };
  for (let n = 0; n < ${pages}; n += 1)
    get(request, (response) => {
      let tail = '';
      response.on('data', (bytes) => last((tail = tail.slice(-200) + bytes), response)).on('error', () => undefined);
    });
`;

const beatMs = 1;
const rows = [];
for (let round = 0; round < rounds; round += 1) {
  const relay = createRelay(log.read$({ from: 'latest' }), { log, maxReplayBytes: 2 * replayBytes });
  relay.hold();
  const server = createServer(relayHandler(relay, { authorize: () => true })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const worker = new Worker(requestPages(server.address().port), { eval: true });
  let [held, heldCpu, last] = [0, 0, { at: performance.now(), cpu: cpuNs() }];
  const begun = last;
  const beat = setInterval(() => {
    const now = { at: performance.now(), cpu: cpuNs() };
    held = Math.max(held, now.at - last.at - beatMs);
    heldCpu = Math.max(heldCpu, (now.cpu - last.cpu) / 1e6);
    last = now;
  }, beatMs);
  await once(worker, 'message');
  clearInterval(beat);
  rows.push({ heldMs: held, heldCpuMs: heldCpu, ms: last.at - begun.at });
  relay.close();
  server.close();
  await worker.terminate();
}
rmSync(folder, { recursive: true });
console.table(rows);
const { heldCpuMs } = rows.toSorted((one, other) => one.heldCpuMs - other.heldCpuMs)[Math.floor(rounds / 2)];
if (heldCpuMs > 25) process.exitCode = 1;
process.exit();
