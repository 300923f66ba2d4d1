// One sample: every Nth frame of a real socket is held. `node --expose-gc bench/memory/socket.mjs <holder> <size> <keep> <plain|tls>`
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { filter, Subject, take } from 'rxjs';
import { tradeFeed$ } from '../../dist/index.js';
import { startSender } from '../support/start.mjs';
import { alive } from './chunks.mjs';
import { holders } from './holders.mjs';

const [name, size, keep, security] = process.argv.slice(2);
const isTls = security === 'tls';
const wanted = Math.min(4_000, Math.round(4e6 / Number(size)));
const { port, caFile, stop } = await startSender('flood-sender', isTls ? ['--tls'] : []);
const options = {
  baseUrl: `${isTls ? 'https' : 'http'}://127.0.0.1:${port}/${size}/binary/plain`,
  apiKey: 'bench',
  ...(isTls && { tls: { ca: readFileSync(caFile) } }),
};

/** Forwards some frames to a holder, but not the end of the feed. */
const receive = (subject, many) =>
  new Promise((resolve, reject) => {
    tradeFeed$('market', options)
      .pipe(
        filter((_, n) => n % Number(keep) === 0),
        take(many),
      )
      .subscribe({ next: (frame) => subject.next(frame), complete: resolve, error: reject });
  });

await receive(new Subject(), 500);
// Until the last connection and its buffers are released.
await setTimeout(1_200);
const subject = new Subject();
const held = holders[name](subject.asObservable());
const before = await alive();
await receive(subject, wanted);
await setTimeout(1_200);
const after = await alive();
await stop();
const payload = (held.count?.() ?? wanted) * Number(size);
console.log(JSON.stringify({ name, size: Number(size), ratio: (after.buffers - before.buffers) / payload }));
process.exit();
