// Prints how many bytes of buffers an operator retains for each byte of its frames, next to `conflate` on one shared feed.
// Argument: the operator. Needs --expose-gc.
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { filter, NEVER, share, Subject } from 'rxjs';
import { conflate, Frame, mergeMapBounded, tumblingWindow } from 'rx-trade-feed';

const reads = 200;
const frameBytes = 1_000;
const hourMs = 3_600_000;

/** Creates the frames of one read of 64 KiB. @param first - the number of the first frame */
const framesFrom = (first) => {
  const read = Buffer.allocUnsafeSlow(65_536);
  return Array.from({ length: 65 }, (_, n) => {
    const data = read.subarray(4 + n * 1_004, 4 + n * 1_004 + frameBytes);
    data.writeUInt32LE(first + n);
    return new Frame('market', data, true, Date.now(), 1);
  });
};

const numberOf = (frame) => frame.data.readUInt32LE();
/** Keys for which only a few frames of each read stay the newest. */
const keyOf = (frame) => Math.floor(4_000 * (((numberOf(frame) * 2_654_435_761) >>> 0) / 2 ** 32) ** 2);
const oneOfRead = filter((frame) => numberOf(frame) % 65 === 7);
const queue = (capacityBytes) => mergeMapBounded(() => NEVER, { capacity: 1e6, capacityBytes });

const operators = {
  queue: [queue(1_000_000), 1_000_000],
  'window of a part': [(frames) => frames.pipe(oneOfRead, tumblingWindow({ lengthMs: hourMs })), reads * frameBytes],
};

const afterCollection = async () => {
  globalThis.gc();
  // Another thread frees buffers, and may get no CPU time on a busy machine.
  await delay(10);
  return process.memoryUsage().arrayBuffers;
};

/** Collects garbage until the size is stable: V8 frees buffers later, in another thread. */
const aliveBytes = async () => {
  let least = await afterCollection();
  for (let same = 0; same < 20; same += 1) {
    const next = await afterCollection();
    if (next < least) [least, same] = [next, 0];
  }
  return least;
};

const [operator, heldBytes] = operators[process.argv[2]];
const subject = new Subject();
const shared = subject.pipe(share());
const before = await aliveBytes();
const other = shared.pipe(conflate(keyOf, hourMs)).subscribe();
const subscription = shared.pipe(operator).subscribe();
for (let read = 0; read < reads; read += 1) {
  for (const frame of framesFrom(read * 65)) subject.next(frame);
  await turn();
}
other.unsubscribe();
console.log(((await aliveBytes()) - before) / heldBytes);
subscription.unsubscribe();
