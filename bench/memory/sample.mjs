// One sample of the memory of held frames.
//
//   node --expose-gc bench/memory/sample.mjs held <holder> <size> <keep>…             what a holder keeps alive, if it holds one frame of `keep`
//   node --expose-gc bench/memory/sample.mjs socket <holder> <size> <keep> <security>   the same for frames of a real socket, `plain` or `tls`
//   node --expose-gc bench/memory/sample.mjs ring <size> <capacity> <capacityBytes>     a queue without a consumer, and a million dropped frames
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { filter, NEVER, Subject, take } from 'rxjs';
import { mergeMapBounded, tradeFeed$ } from '../../dist/index.js';
import { startSender } from '../support/child.mjs';
import { alive, feeder } from './chunks.mjs';
import { holders } from './holders.mjs';

/** Measures a holder while `emit` emits frames on its source. Memory that was allocated before doesn't count. */
const heldBy = async (name, size, wanted, emit) => {
  const subject = new Subject();
  const held = holders[name](subject.asObservable());
  const before = await alive();
  await emit(subject);
  const after = await alive();
  const frames = held.count?.() ?? wanted;
  const buffers = after.buffers - before.buffers;
  return { buffers, ratio: buffers / (frames * size), heapPerFrame: (after.heap - before.heap) / frames };
};

const held = async (name, size, ...keeps) => {
  /** A few MB, much more than the memory that doesn't grow with the frames. */
  const wanted = Math.max(160, Math.min(20_000, Math.round(8e6 / Number(size))));
  await feeder(new Subject(), Number(size))(2_000);
  const rows = [];
  for (const keep of keeps.map(Number))
    rows.push(await heldBy(name, Number(size), wanted, (subject) => feeder(subject, Number(size), keep)(wanted)));
  return { rows };
};

const socket = async (name, size, keep, security) => {
  const isTls = security === 'tls';
  const wanted = Math.min(4_000, Math.round(4e6 / Number(size)));
  const { port, caFile, stop } = await startSender('flood-sender', isTls ? ['--tls'] : []);
  const options = {
    baseUrl: `${isTls ? 'https' : 'http'}://127.0.0.1:${port}/${size}/binary/plain`,
    apiKey: 'bench',
    ...(isTls && { tls: { ca: readFileSync(caFile) } }),
  };
  /** Forwards some frames to a holder, but not the end of the feed. Waits until the connection and its buffers are released. */
  const receive = async (subject, many) => {
    const some = [filter((_, n) => n % Number(keep) === 0), take(many)];
    await tradeFeed$('market', options)
      .pipe(...some)
      .forEach((frame) => subject.next(frame));
    await setTimeout(1_200);
  };
  await receive(new Subject(), 500);
  const measured = await heldBy(name, Number(size), wanted, (subject) => receive(subject, wanted));
  await stop();
  return measured;
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
    buffers: buffers.at(-1),
    /** The last measurement over the first. */
    growth: totals.at(-1) / totals[0],
    /** The largest share of `capacityBytes` that is in use. */
    most: Math.max(...buffers) / capacityBytes,
  };
};

const [what, ...args] = process.argv.slice(2);
console.log(JSON.stringify(await { held, socket, ring }[what](...args)));
// The consumers of the queues never finish.
process.exit();
