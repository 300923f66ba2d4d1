// What a receiver's process measures: CPU time a frame, after a warm-up.

/** CPU time before a figure counts, in which the hot code is compiled, and CPU time that counts, in ms. */
const WARM_UP_MS = 300;
const COUNTED_MS = 250;
/** How much is received between two looks at the clock. */
const STRIDE_BYTES = 4 * 2 ** 20;

const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const now = () => ({ cpu: cpuMs(), wall: performance.now() });

/**
 * Gives a counter for a receiver: `take(length)` for each frame, or `takeBytes(bytes)` for a peer that knows no frames.
 *
 * `result` resolves once enough was taken. CPU time is that of the whole process, garbage collection and compilation with it.
 * `unitsPerFrame` is the mean length taken, so that whoever reads the figures can see that every peer was given the same.
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
    // From the first frames on: what was loaded and connected before is no part of it.
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
