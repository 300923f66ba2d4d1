// One sample: the CPU time of an operator for each frame, with N subscribers, windows or keys. `node --expose-gc bench/growth/operators.mjs <case> <n>`
import { asyncScheduler, Subject } from 'rxjs';
import { conflate, Frame, shareFeed, slidingWindow, tumblingWindow } from '../../dist/index.js';
import { cpuNs } from '../support/cpu.mjs';

const [name, many] = process.argv.slice(2);
const n = Number(many);
const began = Date.now();
const FRAME_BYTES = 64;
const noop = () => {};
// Spreads the frames over the keys, the same in every run.
const keyOf = (frame) => (Math.imul(frame.connection, 2_654_435_761) >>> 0) % n;
const perMs = 10;
let sent = 0;
const at = () => began + Math.floor(sent / perMs);
// The clock of the frames. By the clock of a busy machine frames would be late, and late frames are in fewer windows.
const scheduler = { now: at, schedule: (...args) => asyncScheduler.schedule(...args) };

/** Each returns the source, and the number of steps for each frame, by which the cost is divided. */
const cases = {
  subscribers: () => {
    const source = new Subject();
    const shared = source.pipe(shareFeed());
    for (let k = 0; k < n; k += 1) shared.subscribe(noop);
    return { source, steps: n };
  },
  windows: () => {
    const source = new Subject();
    source
      .pipe(slidingWindow({ lengthMs: n, everyMs: 1, scheduler, seed: () => 0, add: (sum) => sum + 1 }))
      .subscribe(noop);
    return { source, steps: n };
  },
  'windows of frames': () => {
    const source = new Subject();
    source.pipe(slidingWindow({ lengthMs: n, everyMs: 1, scheduler })).subscribe(noop);
    return { source, steps: n };
  },
  'keys of conflate': () => {
    const source = new Subject();
    // With a long period all keys wait most of the time.
    source.pipe(conflate(keyOf, 500)).subscribe(noop);
    return { source, steps: 1 };
  },
  'keys of an accumulator': () => {
    const source = new Subject();
    const add = (counts, frame) => {
      const key = keyOf(frame);
      return counts.set(key, (counts.get(key) ?? 0) + 1);
    };
    source.pipe(tumblingWindow({ lengthMs: 20_000, scheduler, seed: () => new Map(), add })).subscribe(noop);
    return { source, steps: 1 };
  },
};

const { source, steps } = cases[name]();
source.next({ type: 'opened', at: began, feed: 'market', connection: 1 });
const send = (frames) => {
  // Views of one buffer, as after one read of a socket.
  const read = Buffer.allocUnsafeSlow(frames * FRAME_BYTES);
  for (let k = 0; k < frames; k += 1) {
    const data = read.subarray(k * FRAME_BYTES, (k + 1) * FRAME_BYTES);
    source.next(new Frame('market', data, false, at(), sent));
    sent += 1;
  }
};
const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Sends frames for a CPU time, one read in each turn of the event loop, as a socket does. */
const sendFor = async (ms, atLeast) => {
  const from = { cpu: cpuNs(), sent };
  while (cpuNs(from.cpu) < ms * 1e6 || sent - from.sent < atLeast) {
    send(Math.max(1, Math.min(320, Math.ceil(20_000 / steps))));
    await turn();
  }
  return cpuNs(from.cpu) / (sent - from.sent);
};

// Until each window has begun and each key has occurred.
await sendFor(400, name.startsWith('windows') ? (n + 10) * perMs : Math.min(4 * n, 100_000));
globalThis.gc();
const ns = await sendFor(200, 100);
console.log(JSON.stringify({ name, n, ns, nsPerStep: ns / steps }));
process.exit();
