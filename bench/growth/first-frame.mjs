// One sample: the time from subscribing to the first frame, twice. `node bench/growth/first-frame.mjs <plain|tls>`
import { readFileSync } from 'node:fs';
import { take, takeWhile, tap } from 'rxjs';
import { tradeFeedEvents$ } from '../../dist/index.js';
import { startSender } from '../support/start.mjs';

const isTls = process.argv[2] === 'tls';
const settings = { framesPerSecond: 1_000, frameBytes: 256, tls: isTls, tickMs: 1 };
const { baseUrl, caFile, stop } = await startSender('paced-sender', [JSON.stringify(settings)]);
const options = { baseUrl, apiKey: 'bench', ...(isTls && { tls: { ca: readFileSync(caFile) } }) };

const once = () =>
  new Promise((resolve, reject) => {
    const from = performance.now();
    const at = {};
    tradeFeedEvents$('market', options)
      .pipe(
        tap(({ type }) => (at[type] ??= performance.now())),
        takeWhile(({ type }) => type !== 'frame', true),
        take(100),
      )
      .subscribe({
        complete: () =>
          resolve({
            ticket: at['ticket-issued'] - from,
            handshake: at.opened - at['ticket-issued'],
            frame: at.frame - at.opened,
            all: at.frame - from,
          }),
        error: reject,
      });
  });
const cold = await once();
const warm = await once();
await stop();
console.log(JSON.stringify({ cold, warm }));
process.exit();
