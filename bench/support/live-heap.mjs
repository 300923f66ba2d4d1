// Live objects, as an application has them: V8 marks and moves them while frames are received.

/** How many objects take a megabyte in V8. Each takes 122 bytes, with its strings and its place in a list. */
const OBJECTS_PER_MEGABYTE = 8_566;
const LIST = 1_000;
const live = [];

/** Creates live objects of this many megabytes, which stay until the process exits. */
export const fillHeap = (megabytes) => {
  const count = Math.round(megabytes * OBJECTS_PER_MEGABYTE);
  let previous;
  for (let n = 0; n < count; n += 1) {
    if (n % LIST === 0) live.push([]);
    previous = { id: n, price: n + 0.5, size: n % 100, isOpen: n % 2 === 0, venue: `venue ${n % 50}`, previous };
    live.at(-1).push(previous);
    if (n % 100 === 0) previous = undefined;
  }
  // The objects are long-lived: without this, they would still be moved to the old generation during the measurement.
  globalThis.gc?.();
};
