// Everything that holds frames. Each subscribes to a Subject and returns an object that must stay alive while it holds frames. `count` is
// the number of held frames if it isn't the number of emitted frames.
import { NEVER, tap } from 'rxjs';
import {
  conflate,
  countWindow,
  mergeMapBounded,
  shareFeed,
  slidingWindow,
  toAsyncIterable,
  toReadable,
  tumblingWindow,
} from '../../dist/index.js';

const longMs = 3_600_000;
const roomy = { capacity: 10_000_000, capacityBytes: 2 ** 40 };

const inWindow = (operator) => (frames) => {
  const windows = [];
  const subscription = frames.pipe(operator).subscribe((window) => windows.push(window));
  return { windows, subscription };
};

/** Pushes the frames to an array, unchanged: the memory without copies. */
const control = (frames) => {
  const held = [];
  frames.subscribe((frame) => held.push(frame));
  return held;
};

export const holders = {
  control,
  tumblingWindow: inWindow(tumblingWindow({ lengthMs: longMs })),
  slidingWindow: inWindow(slidingWindow({ lengthMs: longMs, everyMs: longMs / 4 })),
  countWindow: inWindow(countWindow(10_000_000)),
  'countWindow(10), emitted': inWindow(countWindow(10)),
  'conflate, a key each': inWindow(conflate((frame) => frame.data.readUInt32LE(), longMs, { maxKeys: 10_000_000 })),
  'conflate, rare keys and hot ones': (frames) => {
    const keys = new Set();
    // Of 1,000 keys, the first occur many hundred times as often as the last.
    const keyOf = (frame) => Math.floor(1_000 * (((frame.data.readUInt32LE() * 2_654_435_761) >>> 0) / 2 ** 32) ** 4);
    const subscription = frames
      .pipe(
        tap((frame) => keys.add(keyOf(frame))),
        conflate(keyOf, longMs),
      )
      .subscribe();
    return { subscription, count: () => keys.size };
  },
  mergeMapBounded: (frames) => frames.pipe(mergeMapBounded(() => NEVER, roomy)).subscribe(),
  toAsyncIterable: (frames) => {
    const loop = toAsyncIterable(roomy)(frames)[Symbol.asyncIterator]();
    void loop.next();
    return loop;
  },
  toReadable: (frames) => {
    const stream = toReadable(roomy)(frames);
    stream.read();
    return stream;
  },
  'shareFeed, 2 windows and a queue': (frames) => {
    const shared = frames.pipe(shareFeed());
    return [holders.tumblingWindow(shared), holders.countWindow(shared), holders.mergeMapBounded(shared)];
  },
};
