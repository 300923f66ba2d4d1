// One sample: a queue without a consumer while a million frames are dropped.
//
//   node --expose-gc bench/memory/ring.mjs <size> <capacity> <capacityBytes>
import { setImmediate as turn } from 'node:timers/promises';
import { NEVER, Subject } from 'rxjs';
import { mergeMapBounded } from '../../dist/index.js';
import { alive, feed, reader } from './chunks.mjs';

const [size, capacity, capacityBytes] = process.argv.slice(2).map(Number);
const DROPS = 1_000_000;
const MEASUREMENTS = 10;

await feed(new Subject(), { size, keep: 1, wanted: 2_000 });
let dropped = 0;
const subject = new Subject();
const subscription = subject
  .pipe(mergeMapBounded(() => NEVER, { capacity, capacityBytes, onDrop: ({ total }) => (dropped = total) }))
  .subscribe();

const before = await alive();
const read = reader(size);
const totals = [];
const buffers = [];
let sent = 0;
const sendUntil = async (many) => {
  while (sent < many) {
    for (const frame of read()) {
      subject.next(frame);
      sent += 1;
    }
    await turn();
  }
};
// Until the queue is full and the code is compiled.
const full = Math.min(capacity, Math.ceil(capacityBytes / size)) + 20_000;
for (let n = 0; n <= MEASUREMENTS; n += 1) {
  await sendUntil(full + (DROPS / MEASUREMENTS) * n);
  const now = await alive();
  buffers.push(now.buffers - before.buffers);
  totals.push(buffers.at(-1) + now.heap - before.heap);
}
subscription.unsubscribe();
if (dropped < DROPS) throw new Error(`The queue has dropped ${dropped} frames.`);

const result = {
  buffers: buffers.at(-1),
  /** The last measurement over the first. */
  growth: totals.at(-1) / totals[0],
  /** The largest share of `capacityBytes` that is in use. */
  most: Math.max(...buffers) / capacityBytes,
};
console.log(JSON.stringify(result));
