// Measures the CPU time for each frame in the process of a receiver, after a warm-up.
import { cpuNs } from './cpu.mjs';

/**
 * The CPU time of the warm-up, in which the code is compiled, and the CPU time of the measurement, in ms. The fastest code needs 200 ms
 * on a fast machine, and a slow machine needs three times as long.
 */
const WARM_UP_MS = 900;
const COUNTED_MS = 250;
/** How many bytes are received before the clock is read again. */
const STRIDE_BYTES = 4 * 2 ** 20;

const cpuMs = () => cpuNs() / 1e6;

/**
 * Creates a counter for a receiver, which calls `take(length)` for each frame.
 *
 * `result` resolves after enough frames. The CPU time is that of the whole process, including garbage collection and compilation.
 * `unitsPerFrame` is the mean length of a frame: it shows that every peer received the same.
 */
export const counter = ({ frameBytes, warmUpMs = WARM_UP_MS, countedMs = COUNTED_MS }) => {
  const stride = Math.max(16, Math.round(STRIDE_BYTES / frameBytes));
  let [taken, units, mark] = [0, 0, stride];
  let [first, begun, resolve] = [];
  const result = new Promise((done) => (resolve = done));

  const onMark = () => {
    mark += stride;
    const now = cpuMs();
    // From the first frames on, without the time to load and connect.
    first ??= now;
    if (begun === undefined) {
      if (now - first < warmUpMs) return;
      globalThis.gc?.();
      begun = { taken, units, cpu: cpuMs() };
    } else if (now - begun.cpu >= countedMs) {
      mark = Infinity;
      const frames = taken - begun.taken;
      resolve({ frames, ns: ((now - begun.cpu) * 1e6) / frames, unitsPerFrame: (units - begun.units) / frames });
    }
  };
  const take = (length) => {
    units += length;
    taken += 1;
    if (taken >= mark) onMark();
  };
  return { take, result };
};
