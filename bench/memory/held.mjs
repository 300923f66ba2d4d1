// One sample: the memory that a holder of frames keeps alive. `node --expose-gc bench/memory/held.mjs <holder> <size> <keep>…`
import { Subject } from 'rxjs';
import { alive, feed } from './chunks.mjs';
import { holders } from './holders.mjs';

const [name, size, ...keeps] = process.argv.slice(2);
const frameBytes = Number(size);
/** The number of held frames: a few MB, much more than the memory that doesn't grow with them. */
const wanted = Math.max(160, Math.min(20_000, Math.round(8e6 / frameBytes)));

const measured = async (keep) => {
  const subject = new Subject();
  const held = holders[name](subject.asObservable());
  // Memory that was allocated before doesn't count.
  const before = await alive();
  await feed(subject, { size: frameBytes, keep, wanted });
  const after = await alive();
  const frames = held.count?.() ?? wanted;
  const payload = frames * frameBytes;
  return {
    keep,
    frames,
    payload,
    buffers: after.buffers - before.buffers,
    ratio: (after.buffers - before.buffers) / payload,
    heapPerFrame: (after.heap - before.heap) / frames,
    held: held !== undefined,
  };
};

await feed(new Subject(), { size: frameBytes, keep: 1, wanted: 2_000 });
const rows = [];
for (const keep of keeps.map(Number)) rows.push(await measured(keep));
console.log(JSON.stringify({ name, size: frameBytes, rows }));
// The consumers of the queues never finish.
process.exit();
