// Samples the resources of the process, after a garbage collection.
import { readdirSync } from 'node:fs';

const MB = 2 ** 20;

// Reading the folder opens one descriptor. Only Linux has it.
const descriptors = () => (process.platform === 'linux' ? readdirSync('/proc/self/fd').length - 1 : 0);

/** Returns the number of active resources by type (`TCPSocketWrap`, `Timeout`, …) and of file descriptors. */
export const heldNow = () => {
  const held = new Map([['file descriptor', descriptors()]]);
  for (const kind of process.getActiveResourcesInfo()) held.set(kind, (held.get(kind) ?? 0) + 1);
  return held;
};

/** Lists the resources that are open now and weren't open before. The text is empty if all were released. */
export const remaining = (before) =>
  [...heldNow()]
    .map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)])
    .filter(([, more]) => more > 0)
    .map(([kind, more]) => `${more} ${kind}`)
    .join(', ');

/** Takes a sample. */
export const takeSample = (startedAt, isStable) => {
  // The first collection frees buffers in a background thread; the second one waits for it.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  return {
    atS: (performance.now() - startedAt) / 1_000,
    isStable,
    heap: heapUsed / MB,
    external: external / MB,
    buffers: arrayBuffers / MB,
    rss: rss / MB,
    handles: process.getActiveResourcesInfo().length,
    fds: descriptors(),
  };
};
