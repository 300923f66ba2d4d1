// One sample of the memory of held frames.
//
//   node --expose-gc bench/memory/sample.mjs held <holder> <size> <keep>…           what a holder keeps alive, if it holds one frame of `keep`
//   node --expose-gc bench/memory/sample.mjs ring <size> <capacity> <capacityBytes>   a queue without a consumer, and a million dropped frames
import { NEVER, Subject } from 'rxjs';
import { mergeMapBounded } from '../../dist/index.js';
import { alive, feeder } from './chunks.mjs';
import { holders } from './holders.mjs';

/** Measures a holder that gets one frame of `keep`. Memory that was allocated before doesn't count. */
const heldBy = async (name, size, keep, wanted) => {
  const subject = new Subject();
  const holder = holders[name](subject.asObservable());
  const before = await alive();
  await feeder(subject, size, keep)(wanted);
  const after = await alive();
  const frames = holder.count?.() ?? wanted;
  return {
    ratio: (after.buffers - before.buffers) / (frames * size),
    heapPerFrame: (after.heap - before.heap) / frames,
  };
};

const held = async (name, ...numbers) => {
  const [size, ...keeps] = numbers.map(Number);
  /** A few MB, much more than the memory that doesn't grow with the frames. */
  const wanted = Math.max(160, Math.min(20_000, Math.round(8e6 / size)));
  await feeder(new Subject(), size)(2_000);
  const rows = [];
  for (const keep of keeps) rows.push(await heldBy(name, size, keep, wanted));
  return { rows };
};

const ring = async (...limits) => {
  const [size, capacity, capacityBytes] = limits.map(Number);
  const drops = 1_000_000;
  const measurements = 10;
  await feeder(new Subject(), size)(2_000);
  let dropped = 0;
  const subject = new Subject();
  const subscription = subject
    .pipe(mergeMapBounded(() => NEVER, { capacity, capacityBytes, onDrop: ({ total }) => (dropped = total) }))
    .subscribe();
  const emit = feeder(subject, size);
  const before = await alive();
  const totals = [];
  const buffers = [];
  // Until the queue is full and the code is compiled.
  await emit(Math.min(capacity, Math.ceil(capacityBytes / size)) + 20_000);
  for (let n = 0; n <= measurements; n += 1) {
    if (n > 0) await emit(drops / measurements);
    const now = await alive();
    buffers.push(now.buffers - before.buffers);
    totals.push(buffers.at(-1) + now.heap - before.heap);
  }
  // Reports the last drops.
  subscription.unsubscribe();
  if (dropped < drops) throw new Error(`The queue has dropped ${dropped} frames.`);
  return {
    /** The last measurement over the first. */
    growth: totals.at(-1) / totals[0],
    /** The largest share of `capacityBytes` that is in use. */
    most: Math.max(...buffers) / capacityBytes,
  };
};

const [what, ...args] = process.argv.slice(2);
console.log(JSON.stringify(await { held, ring }[what](...args)));
// The consumers of the queues never finish.
process.exit();
