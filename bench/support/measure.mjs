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

const now = () => ({ cpu: cpuNs() / 1e6, wall: performance.now() });

/**
 * Creates a counter for a receiver: `take(length)` for each frame, or `takeBytes(bytes)` for a peer that doesn't parse frames.
 *
 * `result` resolves after enough frames. The CPU time is that of the whole process, including garbage collection and compilation.
 * `unitsPerFrame` is the mean length of a frame: it shows that every peer received the same.
 */
export const counter = ({ frameBytes, warmUpMs = WARM_UP_MS, countedMs = COUNTED_MS }) => {
  const stride = Math.max(16, Math.round(STRIDE_BYTES / frameBytes));
  let [taken, units, bytes, mark] = [0, 0, 0, stride];
  let [first, begun, resolve] = [];
  const result = new Promise((done) => (resolve = done));

  const figures = (end) => {
    const frames = taken - begun.taken;
    const wallMs = end.wall - begun.wall;
    return {
      frames,
      ns: ((end.cpu - begun.cpu) * 1e6) / frames,
      wallNs: (wallMs * 1e6) / frames,
      framesPerSecond: (frames * 1e3) / wallMs,
      megabytesPerSecond: (frames * frameBytes) / wallMs / 1e3,
      unitsPerFrame: (units - begun.units) / frames,
    };
  };
  const onMark = () => {
    mark += stride;
    const end = now();
    // From the first frames on, without the time to load and connect.
    first ??= end;
    if (begun === undefined) {
      if (end.cpu - first.cpu < warmUpMs) return;
      globalThis.gc?.();
      begun = { taken, units, ...now() };
    } else if (end.cpu - begun.cpu >= countedMs) {
      mark = Infinity;
      resolve(figures(end));
    }
  };
  const take = (length) => {
    units += length;
    taken += 1;
    if (taken >= mark) onMark();
  };
  const takeBytes = (count) => {
    units += count;
    bytes += count;
    taken = Math.floor(bytes / frameBytes);
    if (taken >= mark) onMark();
  };
  return { take, takeBytes, result };
};
